// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/schedule.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/value_parsers.h"
#include "common/file.h"
#include "common/json_text.h"
#include "common/nearest_name.h"
#include "job/job_fields.h"
#include "pipeline/schedule_csv.h"

namespace perseus::cli {

void AddScheduleCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      "schedule",
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

namespace {

std::string ScheduleJson(const Schedule& schedule) {
  nlohmann::ordered_json json = {{"name", schedule.name},
                                 {"ranks", schedule.num_ranks},
                                 {"stages", schedule.num_stages},
                                 {"virtual_stages", schedule.virtual_stages()},
                                 {"microbatches", schedule.num_microbatches}};
  json["order"] = nlohmann::ordered_json::array();
  for (const auto& rank : schedule.ranks) {
    auto steps = nlohmann::ordered_json::array();
    for (const ScheduleStep& step : rank) steps.push_back(pipeline::StepText(step));
    json["order"].push_back(std::move(steps));
  }
  return FormatIndented(json);
}

Result<Schedule> LoadSchedule(const ScheduleFlags& flags) {
  const std::string& input = flags.input;
  if (input.empty()) {
    return InvalidInput(
        "the schedule is missing: give a name or a file, as in 'perseus schedule 1f1b --stages 4 "
        "--microbatches 8'");
  }
  if (!CanonicalScheduleName(input)) {
    // A word without a dot or slash is a name that somebody misspelled.
    if (input.find_first_of("./") == std::string::npos) {
      const std::string nearest = NearestName(input, ScheduleNames());
      return InvalidInput(fmt::format(
          "there is no schedule '{}'{}; the names are {}, and a file is given by its path (./{})",
          input, nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
          fmt::join(ScheduleNames(), ", "), input));
    }
    if (flags.stages || flags.microbatches) {
      return InvalidInput(
          fmt::format("--stages and --microbatches shape a schedule by name; the file '{}' has its "
                      "own shape, leave them out",
                      input));
    }
    return ReadSchedule(input);
  }
  if (!flags.stages || !flags.microbatches) {
    return InvalidInput(fmt::format(
        "{} is missing: a schedule by name needs its shape, as in 'perseus schedule {} --stages 8 "
        "--microbatches 8'",
        flags.stages ? "--microbatches" : "--stages", input));
  }
  ScheduleSpec spec;
  spec.name = input;
  spec.num_stages = *flags.stages;
  spec.virtual_stages = flags.virtual_stages;
  spec.num_microbatches = *flags.microbatches;
  spec.microbatch_group_size = flags.microbatch_group_size;
  Result<Schedule> schedule = BuildSchedule(spec);
  if (!schedule) return schedule;
  if (const Result<void> valid = ValidateSchedule(*schedule); !valid) {
    return tl::unexpected(valid.error());
  }
  return schedule;
}

std::string ShapeText(const Schedule& schedule) {
  std::string text = fmt::format("{}: {}, {}", schedule.name, CountOf(schedule.num_ranks, "rank"),
                                 CountOf(schedule.num_stages, "stage"));
  if (schedule.virtual_stages() > 1) text += fmt::format(" ({} each)", schedule.virtual_stages());
  return text + ", " + CountOf(schedule.num_microbatches, "microbatch");
}

}  // namespace

Result<Printout> RunSchedule(const ScheduleFlags& flags) {
  if (!flags.output_file.empty()) {
    const auto good = CheckOutputFile(flags.output_file, {{"the schedule's file", flags.input}});
    if (!good) return tl::unexpected(good.error());
  }
  const Result<Schedule> schedule = LoadSchedule(flags);
  if (!schedule) return tl::unexpected(schedule.error());
  std::string text;
  if (flags.validate) {
    text = ShapeText(*schedule) + "; valid, ends without deadlock.\n";
  } else if (flags.format == ScheduleFormat::kCsv) {
    text = FormatSchedule(*schedule);
  } else if (flags.format == ScheduleFormat::kJson) {
    text = ScheduleJson(*schedule);
  } else {
    text = ShapeText(*schedule) + "\n\n" + DrawSchedule(*schedule);
  }
  if (flags.output_file.empty()) return text;
  if (const Result<void> written = WriteFileAtomically(flags.output_file, text); !written) {
    return tl::unexpected(written.error());
  }
  return Printout(fmt::format("{}; written to {}.\n", ShapeText(*schedule), flags.output_file),
                  flags.output_file);
}

}  // namespace perseus::cli
