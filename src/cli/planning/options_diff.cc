// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_options.h"

namespace perseus::cli {

void AddDiffCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kDiff, "diff",
      "Show what changes from one plan of a job to another one.\n\nReads two plan.json files that "
      "`perseus plan -o` wrote (or their folders), and shows iteration time, energy, saving and "
      "changes of clock of both, the stages and ranks whose clocks differ, and whether profile, "
      "conditions and constraints are the same. Plans of different jobs are refused.",
      {{"what a slower iteration would change", "perseus diff plan/ slower/"}});
  parser->AddInput(&invocation->diff.before, "OLD", "The plan that is compared with.");
  parser->AddInput(&invocation->diff.after, "NEW", "The other plan.");
  parser->SetGroup("Output");
  parser->AddFlag(&invocation->diff.json, "--json", "Print one JSON document instead of text.");
}

}  // namespace perseus::cli
