// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_options.h"

namespace perseus::cli {

void AddExplainCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kExplain, "explain",
      "Show which stages the others wait for, and where a plan saves energy.\n\nReads a plan.json "
      "that `perseus plan -o` wrote, and shows its saving for each stage, each type of "
      "computation, and each phase (warm-up, steady state, cool-down).",
      {{"explain a plan", "perseus explain plan/plan.json"}});
  parser->AddInput(&invocation->explain.input, "PLAN.json", "The plan.");
  parser->SetGroup("Output");
  parser->AddFlag(&invocation->explain.json, "--json", "Print one JSON document instead of text.");
}

}  // namespace perseus::cli
