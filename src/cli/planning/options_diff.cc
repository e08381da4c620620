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
      "conditions and constraints are the same. Plans of different jobs are refused, but their "
      "frontiers "
      "can be compared (--frontiers).",
      {{"what a slower iteration would change", "perseus diff plan/ slower/"},
       {"which of three schedules needs the least energy, as a plot",
        "perseus diff --frontiers 1f1b/ gpipe/ --with zero-bubble/ -o frontiers.html"}});
  parser->AddInput(&invocation->diff.before, "OLD", "The plan that is compared with.");
  parser->AddInput(&invocation->diff.after, "NEW", "The other plan.");
  DiffFlags* flags = &invocation->diff;
  parser->AddFlag(&flags->frontiers, "--frontiers",
                  "Compare the frontiers (frontier.csv beside each plan) instead, also of plans of "
                  "different jobs.");
  parser->AddRepeated("--with", "PLAN", "One more plan whose frontier is compared.",
                      CommandParser::AppendedTo(&flags->others, "the name of the plan is empty"));
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "With --frontiers: write a page with the plot of all of them to this file.");
  parser->AddFlag(&invocation->diff.json, "--json", "Print one JSON document instead of text.");
}

}  // namespace perseus::cli
