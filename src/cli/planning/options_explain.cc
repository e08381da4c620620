// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_options.h"

namespace perseus::cli {

void AddExplainCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kExplain, "explain",
      "Say which stage is critical and where the savings of a plan come from.\n\n"
      "Reads a plan.json that `perseus plan -o` wrote, and divides its saving by stage, by type of "
      "computation and by warm-up, steady state and cool-down.",
      {{"explain a plan", "perseus explain plan/plan.json"}});
  parser->AddInput(&invocation->explain.input, "PLAN.json", "The plan.");
  parser->SetGroup("Output");
  parser->AddFlag(&invocation->explain.json, "--json", "Print one JSON document instead of text.");
}

}  // namespace perseus::cli
