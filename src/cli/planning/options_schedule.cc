// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "job/limits.h"
#include "perseus/schedule.h"

namespace perseus::cli {

void AddScheduleCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kSchedule, "schedule",
      "Print, validate, convert or draw a pipeline schedule.\n\nTakes the name of a schedule and "
      "its shape, or a file in PyTorch's CSV text (compute_only, compute_comms, and old files with "
      "B and W). Perseus first runs a schedule to its end, and refuses it if it deadlocks.",
      {{"draw a schedule", "perseus schedule 1f1b --stages 4 --microbatches 8"},
       {"write it for PyTorch",
        "perseus schedule interleaved-1f1b --stages 8 --virtual-stages 2 --microbatches 8 "
        "--format csv -o schedule.csv"},
       {"is this file a valid schedule?", "perseus schedule schedule.csv --validate"}});
  ScheduleFlags* flags = &invocation->schedule;
  parser->AddInput(&flags->input, "NAME|FILE.csv",
                   fmt::format("A name ({}), or a file.", fmt::join(ScheduleNames(), ", ")),
                   {ValueKind::kChoice, ScheduleNames()});
  parser->SetGroup("Shape of a schedule by name");
  parser->AddCount(&flags->stages, "--stages", "Stages of the model = ranks x virtual stages.", 1,
                   job::kMaxStages);
  parser->AddValue<int>(&flags->virtual_stages, "--virtual-stages", "N",
                        "Stages that each rank holds (default 1).",
                        [](std::string_view text) { return ParseCount(text, 1, job::kMaxStages); });
  parser->AddCount(&flags->microbatches, "--microbatches", "Microbatches of one iteration.", 1,
                   job::kMaxMicrobatches);
  parser->AddValue<int>(
      &flags->microbatch_group_size, "--microbatch-group-size", "N",
      "megatron-interleaved only: microbatches of a group.",
      [](std::string_view text) { return ParseCount(text, 1, job::kMaxMicrobatches); });
  parser->SetGroup("Output");
  parser->AddText(
      "--format", "draw|csv|json", "draw (default), csv (as PyTorch reads it), or json.",
      [flags](const std::string& text) -> Result<void> {
        if (text == "draw") {
          flags->format = ScheduleFormat::kDraw;
        } else if (text == "csv") {
          flags->format = ScheduleFormat::kCsv;
        } else if (text == "json") {
          flags->format = ScheduleFormat::kJson;
        } else {
          return InvalidInput(fmt::format("expected draw, csv or json, got '{}'", text));
        }
        return {};
      },
      {ValueKind::kChoice, {"draw", "csv", "json"}});
  parser->AddFlag(&flags->validate, "--validate",
                  "Only print one line: whether the schedule is valid.");
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "Write to this file instead of standard output.");
}

}  // namespace perseus::cli
