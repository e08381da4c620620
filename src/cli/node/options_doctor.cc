// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "agent/protocol.h"
#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"

namespace perseus::cli {

void AddNodeOptions(CommandParser* parser, std::string* driver, std::string* agent_socket) {
  constexpr const char* kNothing = "expected a name, got nothing";
  parser->AddText(
      "--driver", "DRIVER",
      "How to reach the GPUs: nvml (default), nvml:LIBRARY, zeusd:SOCKET, or simulated:FILE.",
      CommandParser::NotEmpty(driver, kNothing), {ValueKind::kText, {}});
  parser->AddText("--socket", "PATH",
                  fmt::format("The agent's socket (default {}).", agent::kDefaultSocketPath),
                  CommandParser::NotEmpty(agent_socket, kNothing), {ValueKind::kFile, {}});
}

void AddDoctorCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kDoctor, "doctor",
      "Check whether this node's GPUs can follow a plan, or whether a server is well.\n\nOn a "
      "node: looks for the driver, the right to set clocks, an agent, and whatever else changes "
      "the GPUs' clocks (power limits, power profiles, throttling). Measures how often their "
      "energy counters step. Changes nothing on a GPU without --set-clocks.\n\nWith --server: "
      "looks at a server's store, certificate and limits, and at what its jobs complain of. "
      "Changes nothing.\n\nThe exit code is 2 if something is a fault, else 0.",
      {{"look at this node", "perseus doctor"},
       {"also measure what setting clocks takes and costs, as root and without jobs",
        "perseus doctor --set-clocks -o conditions.toml"},
       {"look at a server and its jobs", "perseus doctor --server https://perseus.example:7787"},
       {"for a program", "perseus doctor --json"}});
  DoctorFlags* flags = &invocation->doctor;
  parser->SetGroup("Where to look");
  AddNodeOptions(parser, &flags->driver, &flags->agent_socket);
  parser->AddOldName("--agent", "--socket");
  parser->SetGroup("What to measure");
  parser->AddValue<double>(&flags->seconds, "--seconds", "SECONDS",
                           "How long energy counters are read, 100 times a second (default 2).",
                           [](std::string_view text) {
                             return ParseQuantity(text, {0.1, 60}, job::kInSeconds);
                           });
  parser->AddFlag(
      &flags->set_clocks, "--set-clocks",
      "Set clocks on each GPU, and measure how long a clock takes to be in effect, what a call "
      "costs "
      "the work that runs, whether the driver serves one call at a time, and how late the energy "
      "counter is. Takes half a minute a GPU. This disturbs running jobs, and removes a lock that "
      "somebody else has set on a clock. However it ends, the clocks are given back.");
  parser->AddValue<double>(&flags->call_interval_seconds, "--call-interval", "TIME",
                           "With --set-clocks: the time between two calls while their cost is "
                           "measured (default 50ms). Take that of a plan.",
                           [](std::string_view text) {
                             return ParseQuantity(text, {0.005, 1}, job::kInSeconds);
                           });
  AddServerOptions(parser, &flags->server,
                   "Look at this server in place of this node: http://HOST:PORT, "
                   "https://HOST:PORT or unix:PATH.");
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "With --set-clocks: write what was measured into this file, for perseus plan "
                    "--conditions.");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
}

}  // namespace perseus::cli
