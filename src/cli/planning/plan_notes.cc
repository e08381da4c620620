// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/plan_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/planning/job.h"
#include "cli/planning/plan_summary.h"
#include "common/belief.h"
#include "common/printable.h"

namespace perseus::cli {

std::string FormatNotes(const std::vector<Note>& notes, const Style& style) {
  std::string out;
  for (const Note& note : notes) {
    const std::string text = NoteText(note);
    out += Fact(note.severity == Severity::kOdd ? "Note" : "WARNING",
                text + (text.ends_with('?') ? "" : "."), style);
  }
  return out;
}

Printout InsteadOfFigures(std::string notes, const Style& style) {
  Printout printout(
      std::move(notes) +
      Fact(
          "Figures",
          fmt::format("{0}, so they are not shown: {1}, and plan again. If it is meant, plan again "
                      "with --accept-implausible. (--json prints the figures as they are.)",
                      kNotBelievable, kCorrectFirst),
          style));
  printout.is_refusal = true;
  return printout;
}

void WriteNotes(const std::vector<Note>& notes) {
  for (const Note& note : notes) {
    WriteStandardError(
        fmt::format("perseus: {}{}\n",
                    note.severity == Severity::kOdd ? "" : "warning: ", Printable(NoteText(note))));
  }
}

std::vector<std::string> PipelineRemarks(const CostedPipeline& pipeline, int virtual_stages) {
  std::vector<std::string> remarks;
  const int ranks = pipeline.dag.num_ranks;
  if (virtual_stages > 1) {
    const int gpus = ranks * pipeline.tensor_parallel;
    remarks.push_back(fmt::format(
        "{} stages are {} on each of {} ranks: this pipeline is {}, not {}. To compare with one "
        "stage a rank on as many: 'perseus emulate' with --schedule 1f1b --virtual-stages 1 "
        "--sweep stages={}.",
        ranks * virtual_stages, virtual_stages, ranks, CountOf(gpus, "GPU"), gpus * virtual_stages,
        ranks));
  }
  const auto& computations = pipeline.dag.computations;
  if (std::any_of(computations.begin(), computations.end(), [](const Computation& each) {
        return each.fused && each.id.type == ComputationType::kForward;
      })) {
    remarks.emplace_back(
        "a fused forward and backward is planned as one computation at one knob, and takes the sum "
        "of both times: what the GPU gains by overlapping them is not in the profile.");
  }
  return remarks;
}

}  // namespace perseus::cli
