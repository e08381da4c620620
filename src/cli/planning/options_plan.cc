// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_options.h"

namespace perseus::cli {

void AddPlanCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kPlan, "plan",
      "Show what can be saved, and write a plan of clocks.\n\nReads a profile, computes the least "
      "energy for every iteration time (the frontier), and makes plans for some of these times: no "
      "slowdown, +1 %, +2 % and so on. Each plan has a gap: the best plan of the same time uses "
      "less energy by at most this much. Without -o no file is written.",
      {{"what is saved without slowing down, and what a little more time would buy",
        "perseus plan profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64"},
       {"write the plan that may take 2 % longer, with report and timeline",
        "perseus plan profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64 "
        "--at 1.02x -o plan/"},
       {"everything from a job file, but 48 microbatches",
        "perseus plan job.toml --microbatches 48"},
       {"one clock for each stage, as JSON", "perseus plan job.toml --granularity stage --json"}});
  AddPipelineOptions(parser, &invocation->job,
                     "Data-parallel pipelines of the job (default 1). Under conditions, an "
                     "iteration lasts as long as the slowest of them. Without conditions, only the "
                     "job's total depends on this number.");
  AddPlanOptions(parser, &invocation->job,
                 "How much work to search for a plan. 1 (default) takes about a second of CPU for "
                 "8 stages and 96 microbatches, and half a minute under conditions. More work "
                 "never makes the plan worse, but gains little: 4 adds some hundredths of a "
                 "percentage point to the saving, or nothing.");
  parser->SetGroup("Conditions");
  parser->AddValue<std::string>(
      &invocation->conditions_of, "--conditions-of", "JOB|PROFILE",
      "Plan for the noise, latency, pauses and transfers that this job of a server measured (its "
      "id, name or "
      "client key), or that jobs measured with this profile of the server's library (its id). A "
      "value that is given beside it is taken instead.",
      [](std::string_view text) -> Result<std::string> { return std::string(text); });
  parser->AddText(
      "--conditions", "FILE",
      "Plan for the conditions in this file: the table [conditions] of a job file. A value that "
      "is given beside it is taken instead.",
      CommandParser::NotEmpty(&invocation->conditions_file, "expected a file, got nothing"),
      {ValueKind::kFile, {}});
  AddConditionOptions(parser, &invocation->job);
  AddRobustOptions(parser, &invocation->job);
  AddSolverOptions(parser, &invocation->job);
  parser->SetGroup("Output");
  parser->AddOutput(&invocation->job.overrides.output, ValueKind::kDirectory,
                    "Write plan.json, frontier.csv, timeline.pftrace, report.html and the plan "
                    "file for Zeus into this folder. After an error, none of them is written.");
  parser->AddFlag(&invocation->json, "--json", "Print one JSON document instead of text.");
  AddServerOptions(parser, &invocation->server, "The server that --conditions-of asks.");
}

}  // namespace perseus::cli
