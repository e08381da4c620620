// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_options.h"

namespace perseus::cli {

void AddFrontierCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kFrontier, "frontier",
      "Compute only the frontier: the least energy for every iteration time.\n\nThe frontier is an "
      "exact lower bound: no plan of one pipeline uses less energy in that time. Prints about "
      "twenty of its rows as a table, or all its corners (breakpoints) as CSV "
      "(iteration_time_s,energy_j,slope_w).",
      {{"the curve at a glance",
        "perseus frontier profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64"},
       {"every breakpoint into a file", "perseus frontier job.toml -o frontier.csv"}});
  AddPipelineOptions(parser, &invocation->job,
                     "Data-parallel pipelines of the job (default 1). Only the job's total depends "
                     "on this number.");
  AddSolverOptions(parser, &invocation->job);
  FrontierFlags* flags = &invocation->frontier;
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "Write all breakpoints to this CSV file.");
  parser->AddFlag(&flags->csv, "--csv", "Print all breakpoints as CSV instead of a table.");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
}

}  // namespace perseus::cli
