// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_options.h"

namespace perseus::cli {

void AddPlanCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kPlan, "plan",
      "Show what can be saved, and write a plan of clocks.\n\n"
      "Reads a profile, computes the exact time-energy frontier of one iteration, and makes real "
      "plans at the points of it that matter. Every plan is replayed on the measured times: the "
      "figures are what it costs, and the gap says how far below it any plan could be. Without -o "
      "nothing is written.",
      {{"what is saved without slowing down, and what a little more time would buy",
        "perseus plan profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64"},
       {"write the plan that may take 2 % longer, with report and timeline",
        "perseus plan profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64 "
        "--at 1.02x -o plan/"},
       {"everything from a job file, but 48 microbatches",
        "perseus plan job.toml --microbatches 48"},
       {"clocks change at most every 50 ms, as JSON",
        "perseus plan job.toml --min-dwell 50ms --json"}});
  AddPipelineOptions(
      parser, &invocation->job,
      "Pipelines of the job (default 1). Under conditions an iteration lasts as long as the "
      "slowest of them; without, only the job's total depends on it.");
  AddPlanOptions(parser, &invocation->job,
                 "How much work to search for a plan. 1 (default) is about a second of CPU at 8 "
                 "stages x 96 microbatches, and half a minute under conditions. More is never "
                 "worse, but soon gains little: four times as much some hundredths of a point of "
                 "saving, or nothing.");
  parser->SetGroup("Conditions");
  AddConditionOptions(parser, &invocation->job);
  AddRobustOptions(parser, &invocation->job);
  AddSolverOptions(parser, &invocation->job);
  parser->SetGroup("Output");
  parser->AddOutput(
      &invocation->job.overrides.output, ValueKind::kDirectory,
      "Write plan.json, frontier.csv, timeline.pftrace, "
      "report.html and the plan file for Zeus into this folder: all of them or none.");
  parser->AddFlag(&invocation->json, "--json", "Print one JSON document instead of text.");
}

}  // namespace perseus::cli
