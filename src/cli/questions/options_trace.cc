// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <climits>
#include <string>
#include <string_view>

#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "job/job_fields.h"
#include "perseus/effort.h"

namespace perseus::cli {

void AddTraceCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kTrace, "trace",
      "Show what stragglers cost a recorded job, and what plans would have saved.\n\nReads what "
      "every rank did in a few steps (CSV or CSV.gz; docs/explanation/traces.md has the format). "
      "Works out which operation waited for which, and replays the steps without the stragglers of "
      "each stage, pipeline, rank and kind of operation. With a profile, it also shows energies.",
      {{"what did stragglers cost?", "perseus trace trace.csv.gz"},
       {"a page with heat map and timeline", "perseus trace trace.csv.gz -o answer"},
       {"what would plans have saved?",
        "perseus trace trace.csv.gz --profile profile.csv --blocking-power 83.64"}});
  TraceFlags* flags = &invocation->trace;
  parser->AddInput(&flags->input, "TRACE.csv", "The recorded operations; gzip is unpacked.");
  parser->SetGroup("Energy");
  parser->AddText(
      "--profile", "FILE",
      "A profile. Perseus assumes that the recorded job ran at the profile's highest clock.",
      CommandParser::NotEmpty(&flags->profile, "the name of the profile is empty"),
      {ValueKind::kFile, {}});
  parser->AddFlag(&flags->strict, "--strict",
                  "Refuse a profile with odd cells, instead of noting them.");
  const job::Field& accepting = *job::FindField("accept_implausible");
  parser->AddFlag(&flags->accept_implausible, std::string(accepting.flag),
                  std::string(accepting.help));
  parser->AddValue<double>(&flags->blocking_power_watts, "--blocking-power", "WATTS",
                           "Power of one GPU that waits (83.64 or 83.64W); needed with --profile.",
                           [](std::string_view text) {
                             return ParseQuantity(text, {0, 1e6}, job::kInWatts);
                           });
  parser->AddCount(&flags->gpus_per_rank, "--tp",
                   "GPUs that share the work of each recorded rank, by tensor or sequence "
                   "parallelism (default: derived from gaps in the rank numbers).",
                   1, 1024);
  parser->AddValue<int>(
      &flags->detector_steps, "--detector-steps", "N",
      "How many recorded steps are looked at to find a straggler. A pipeline that was slow in "
      "three quarters of them is one; the others then get slower plans (default 12).",
      [](std::string_view text) { return ParseCount(text, 1, 1'000'000); });
  parser->AddValue<double>(
      &flags->effort, "--effort", "FACTOR",
      fmt::format("How much work to search for each plan (default {}); see 'perseus plan --help'.",
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
