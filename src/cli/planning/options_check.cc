// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_options.h"

namespace perseus::cli {

void AddCheckCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kCheck, "check",
      "Find wrong units and odd figures in a profile or a job, without planning.\n\nFinds, for "
      "example, times in milliseconds, energies in millijoules or of several GPUs, and clocks in "
      "GHz. Every other command prints the same notes before its figures. If you give a schedule, "
      "microbatches and blocking power (as options or in a job file), the job is checked as well "
      "as the profile. The exit code is 2 if something is implausible or cannot be read, and with "
      "--strict if anything is odd.",
      {{"check a profile", "perseus check profile.csv"},
       {"check a whole job", "perseus check job.toml"}});
  AddPipelineOptions(parser, &invocation->job,
                     "Data-parallel pipelines of the job (default 1). Only the job's total depends "
                     "on this number.");
  AddPlanOptions(parser, &invocation->job,
                 "How much work to search for a plan. This command ignores it.");
  AddConditionOptions(parser, &invocation->job);
  parser->SetGroup("Output");
  parser->AddFlag(&invocation->json, "--json", "Print one JSON document instead of text.");
}

}  // namespace perseus::cli
