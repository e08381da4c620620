// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_options.h"

namespace perseus::cli {

void AddCheckCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kCheck, "check",
      "Say what is odd or implausible in a profile or a job, without planning.\n\n"
      "Wrong units, most of all: times in milliseconds, energies in millijoules or of several "
      "GPUs, "
      "clocks in GHz. Every other command says the same before its figures. A profile alone is "
      "checked by itself; with a schedule, microbatches and blocking power (options, or a job "
      "file) the job is checked, too. The exit code is 2 where something is implausible, or "
      "cannot be read at all, and with --strict where anything is odd.",
      {{"check a profile", "perseus check profile.csv"},
       {"check a whole job", "perseus check job.toml"}});
  AddPipelineOptions(parser, &invocation->job,
                     "Pipelines of the job; only the job's total depends on it (default 1).");
  AddPlanOptions(parser, &invocation->job, "How long plans are searched for; not checked.");
  AddConditionOptions(parser, &invocation->job);
  parser->SetGroup("Output");
  parser->AddFlag(&invocation->json, "--json", "Print one JSON document instead of text.");
}

}  // namespace perseus::cli
