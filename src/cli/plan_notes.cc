// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/plan_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/table.h"

namespace perseus::cli {
namespace {

void NoteLowerClocks(const Profile& profile, std::vector<std::string>* notes) {
  if (!profile.knobs_are_numbers) return;
  std::string note;
  int others = 0;
  for (const OptionTable& table : profile.tables) {
    const int highest = table.options[table.baseline].knob;
    if (highest == 0) continue;
    if (!note.empty()) {
      ++others;
      continue;
    }
    note =
        fmt::format("stage {} {} has no row at {}; its highest is {}, and savings count from there",
                    table.stage, ComputationTypeName(table.type), profile.knobs.front().label,
                    profile.knobs[highest].label);
  }
  if (note.empty()) return;
  if (others > 0)
    note += fmt::format(" (so with {} of the profile)", CountOf(others, "other kind"));
  notes->push_back(note + ".");
}

void NoteSchedule(const CostedPipeline& pipeline, int virtual_stages,
                  std::vector<std::string>* notes) {
  const std::string& name = pipeline.dag.schedule_name;
  const bool interleaves = name == "interleaved-1f1b" || name == "megatron-interleaved" ||
                           name == "interleaved-zero-bubble";
  if (interleaves && virtual_stages == 1) {
    notes->push_back(fmt::format(
        "each rank holds one stage, so {} has nothing to interleave; give --virtual-stages.",
        name));
  }
  const int ranks = pipeline.dag.num_ranks;
  if (virtual_stages > 1) {
    const int gpus = ranks * pipeline.tensor_parallel;
    notes->push_back(fmt::format(
        "{} stages are {} on each of {} ranks: this pipeline is {}, not {}. To compare with one "
        "stage a rank on as many: 'perseus emulate' with --schedule 1f1b --virtual-stages 1 "
        "--sweep stages={}.",
        ranks * virtual_stages, virtual_stages, ranks, CountOf(gpus, "GPU"), gpus * virtual_stages,
        ranks));
  }
  const auto& computations = pipeline.dag.computations;
  if (std::any_of(computations.begin(), computations.end(),
                  [](const Computation& each) { return each.fused.has_value(); })) {
    notes->push_back(
        "a fused forward and backward is planned as one computation at one knob, and takes the sum "
        "of both times: what the GPU gains by overlapping them is not in the profile.");
  }
}

void NotePower(const CostedPipeline& pipeline, const Plan& baseline,
               std::vector<std::string>* notes) {
  constexpr double kMostWatts = 3000;
  constexpr double kLeastWatts = 1;
  const double per_gpu =
      baseline.average_power_watts / (pipeline.tensor_parallel * pipeline.dag.num_ranks);
  if (per_gpu > kMostWatts || per_gpu < kLeastWatts) {
    notes->push_back(
        fmt::format("a GPU draws {:.3g} W on average at maximum clocks, which no GPU does; check "
                    "the units (seconds, joules).",
                    per_gpu));
  }
  for (int rank = 0; rank < pipeline.dag.num_ranks; ++rank) {
    double joules = 0;
    double seconds = 0;
    for (const int computation : pipeline.dag.rank_order[rank]) {
      const CostOption& option = pipeline.TableOf(computation).baseline;
      joules += option.energy_joules;
      seconds += option.time_seconds;
    }
    const double waiting = pipeline.rank_blocking_power_watts[rank];
    if (!(joules < waiting * seconds)) continue;
    notes->push_back(fmt::format(
        "rank {} draws more while it waits ({:.4g} W for each GPU, --blocking-power) than while it "
        "computes at maximum clocks ({:.4g} W on average); check the units (watts, seconds, "
        "joules).",
        rank, waiting / pipeline.tensor_parallel, joules / seconds / pipeline.tensor_parallel));
    return;
  }
}

}  // namespace

std::vector<std::string> InputNotes(const Profile& profile, const CostedPipeline& pipeline,
                                    const Plan& baseline, int virtual_stages) {
  std::vector<std::string> notes;
  for (const ProfileNote& note : profile.notes) notes.push_back(NoteText(profile, note) + ".");
  for (const std::string& note : pipeline.notes) notes.push_back(note + ".");
  NoteLowerClocks(profile, &notes);
  NoteSchedule(pipeline, virtual_stages, &notes);
  NotePower(pipeline, baseline, &notes);
  return notes;
}

}  // namespace perseus::cli
