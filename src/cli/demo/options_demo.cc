// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <string_view>

#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "common/numbers.h"

namespace perseus::cli {

void AddDemoCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kDemo, "demo",
      "Show the whole system at work on this machine, without a GPU.\n\n"
      "Starts a server, an agent on eight simulated GPUs, and a modelled GPT-3 job of 2 pipelines "
      "x "
      "4 stages as eight processes that train with the client library. Measures some iterations "
      "at maximum clocks, then follows the plan; at iteration 10 one pipeline becomes a straggler, "
      "at 20 it is well again. Takes under a minute, and leaves nothing behind.",
      {{"the whole story", "perseus demo"},
       {"a plan that holds with clocks that come late", "perseus demo --max-changes 16"},
       {"keep all logs and files", "perseus demo --keep demo/"}});
  DemoFlags* flags = &invocation->demo;
  parser->SetGroup("Options");
  parser->AddValue<int>(&flags->iterations, "--iterations", "N",
                        "Iterations under the plan (default 30; 40 with --detect).",
                        [](std::string_view text) { return ParseCount(text, 1, 500); });
  parser->AddFlag(&flags->no_straggler, "--no-straggler", "No pipeline falls behind.");
  parser->AddFlag(&flags->detect, "--detect",
                  "Nobody says who falls behind: the server finds out. It is slow until 25.");
  parser->AddFlag(&flags->no_ahead, "--no-ahead",
                  "Ask for a clock when its computation begins, not ahead of time: to compare.");
  parser->AddValue<double>(
      &flags->clock_latency_ms, "--clock-latency", "MS",
      "How long a simulated GPU takes to set a clock, in milliseconds (default 15).",
      [](std::string_view text) {
        constexpr UnitScale kUnits[] = {{"ms", 1}};
        return ParseQuantity(text, {0, 1000}, {"milliseconds", "15 or 15ms", kUnits});
      });
  parser->AddValue<int>(
      &flags->max_changes, "--max-changes", "N",
      "Plan for clocks that come late, as they do here, and change them at most N "
      "times in an iteration of a pipeline.",
      [](std::string_view text) { return ParseCount(text, 0, 1000); });
  parser->AddText("--keep", "DIR", "Keep logs, store and profile in this new folder.",
                  [flags](const std::string& text) -> Result<void> {
                    if (text.empty()) return InvalidInput("the name of the folder is empty");
                    flags->keep_directory = text;
                    return {};
                  },
                  {ValueKind::kDirectory, {}});
}

}  // namespace perseus::cli
