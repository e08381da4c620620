// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <climits>
#include <string>
#include <string_view>

#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "perseus/effort.h"

namespace perseus::cli {

void AddTraceCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kTrace, "trace",
      "Say what stragglers cost a job that was recorded, and what plans would have saved.\n\n"
      "Reads the operations of every rank in a few steps (CSV or CSV.gz, "
      "docs/explanation/traces.md), rebuilds "
      "what waits for what, replays the steps, and replays them without stragglers: by stage, "
      "pipeline, rank and kind of operation. With a profile, also energies.",
      {{"what did stragglers cost?", "perseus trace trace.csv.gz"},
       {"a page with heat map and timeline", "perseus trace trace.csv.gz -o answer"},
       {"what would plans have saved?",
        "perseus trace trace.csv.gz --profile profile.csv --blocking-power 83.64"}});
  TraceFlags* flags = &invocation->trace;
  parser->AddInput(&flags->input, "TRACE.csv", "The recorded operations; gzip is unpacked.");
  parser->SetGroup("Energy");
  parser->AddText(
      "--profile", "FILE",
      "Option tables; their costs are taken relative to the highest clock, at which the job is "
      "taken to have run.",
      [flags](const std::string& text) -> Result<void> {
        if (text.empty()) return InvalidInput("the name of the profile is empty");
        flags->profile = text;
        return {};
      },
      {ValueKind::kFile, {}});
  parser->AddFlag(&flags->strict, "--strict",
                  "Refuse a profile with odd cells, instead of noting them.");
  parser->AddValue<double>(&flags->blocking_power_watts, "--blocking-power", "WATTS",
                           "Power of one GPU that waits (83.64 or 83.64W); needed with --profile.",
                           [](std::string_view text) {
                             return ParseQuantity(text, {0, 1e6}, job::kInWatts);
                           });
  parser->AddCount(
      &flags->gpus_per_rank, "--tp",
      "GPUs of each recorded rank, tensor and sequence parallel together (default: derived "
      "from gaps in the rank numbers).",
      1, 1024);
  parser->AddValue<int>(&flags->detector_steps, "--detector-steps", "N",
                        "Recorded steps that a straggler has to be seen in before plans answer it "
                        "(default 12).",
                        [](std::string_view text) { return ParseCount(text, 1, 1'000'000); });
  parser->AddValue<double>(&flags->effort, "--effort", "FACTOR",
                           fmt::format("How much work to search for each plan (default {}); see "
                                       "'perseus plan'.",
                                       kTraceEffort),
                           [](std::string_view text) {
                             return ParseQuantity(text, {0.001, 1000});
                           });
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_directory, ValueKind::kDirectory,
                    "Write trace.html and trace.json into this folder.");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
}

}  // namespace perseus::cli
