// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string>
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
       {"a plan that allows for late clocks", "perseus demo --max-changes 16"},
       {"watch it in a browser", "perseus demo --page"},
       {"keep all logs and files", "perseus demo --keep demo/"}});
  DemoFlags* flags = &invocation->demo;
  parser->SetGroup("Options");
  parser->AddValue<int>(
      &flags->iterations, "--iterations", "N",
      "Iterations under the plan (default 30; 40 with --detect; 500 with --page).",
      [](std::string_view text) { return ParseCount(text, 1, 500); });
  parser->AddFlag(&flags->no_straggler, "--no-straggler", "No pipeline becomes slow.");
  parser->AddFlag(&flags->detect, "--detect",
                  "Nobody reports the slow pipeline: the server has to find it. It stays slow "
                  "until iteration 25.");
  parser->AddText(
      "--call-ahead", "none|predicted",
      "When a clock is asked for: as its computation starts (none), or early enough that it is in "
      "effect by then (predicted, the default).",
      [flags](const std::string& text) -> Result<void> {
        flags->ahead = text == "predicted";
        if (flags->ahead || text == "none") return {};
        return InvalidInput(fmt::format("expected none or predicted, got '{}'", text));
      },
      {ValueKind::kChoice, {"none", "predicted"}});
  parser->AddValue<double>(&flags->switch_latency_seconds, "--switch-latency", "TIME",
                           "How long a simulated GPU takes to set a clock (default 15ms).",
                           [](std::string_view text) -> Result<double> {
                             Result<double> seconds = ParseDuration(text);
                             if (!seconds || *seconds <= 1) return seconds;
                             return InvalidInput(fmt::format(
                                 "expected a time from 0 to 1 s, such as 15ms, got '{}'", text));
                           });
  parser->AddValue<int>(&flags->max_changes, "--max-changes", "N",
                        "Make a plan that allows for late clocks, and that changes clocks at most "
                        "N times in an iteration of a pipeline.",
                        [](std::string_view text) { return ParseCount(text, 0, 1000); });
  parser->AddFlag(&flags->page, "--page",
                  "Say where the server's page is, train for 500 iterations unless told otherwise, "
                  "and leave the server open after them, until Ctrl-C.");
  parser->AddText(
      "--keep", "DIR", "Keep logs, store and profile in this new folder.",
      CommandParser::NotEmpty(&flags->keep_directory, "the name of the folder is empty"),
      {ValueKind::kDirectory, {}});
}

}  // namespace perseus::cli
