// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string_view>

#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "job/limits.h"
#include "site/site.h"

namespace perseus::cli {
namespace {

void AddFleetPlan(CommandParser* parser, FleetFlags* flags) {
  parser->AddAction(
      &flags->action, "plan",
      "Divide a power budget among many jobs.\n\nReads a site file (docs/reference/files.md): a "
      "power budget, the jobs, and what each may be asked for. Finds the division of the power "
      "with which the jobs do the most work, makes a plan for each job, and says how far these "
      "plans are from the best that is possible. Changes nothing on any GPU.",
      {{"what each job gets of 40 kW", "perseus fleet plan site.toml"},
       {"write the plan of each job", "perseus fleet plan site.toml -o fleet/"},
       {"divide among the jobs of a server, and print JSON",
        "perseus fleet plan site.toml --server http://127.0.0.1:7787 --json"}});
  parser->AddInput(&flags->input, "SITE.toml", "The site file.");
  parser->AddValue<double>(
      &flags->effort, "--effort", "FACTOR",
      fmt::format("How much work to search for each plan (default {}); see 'perseus plan --help'.",
                  site::kFleetEffort),
      [](std::string_view text) {
        return ParseQuantity(text, {job::kMinEffort, job::kMaxEffort});
      });
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_directory, ValueKind::kDirectory,
                    "Write fleet.json into this folder, and for each job a folder of its name with "
                    "plan.json and frontier.csv.");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
  AddServerOptions(parser, &flags->server,
                   "Divide among the jobs of this server, too: http://HOST:PORT, "
                   "https://HOST:PORT or unix:PATH. A job of the site file without a frontier of "
                   "its own then says more of the server's job of this name.");
}

}  // namespace

void AddFleetCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(Command::kFleet, "fleet",
                     "Divide the power of a site among its jobs, on paper.",
                     {{"what each job gets of a budget", "perseus fleet plan site.toml"}});
  AddFleetPlan(parser, &invocation->fleet);
}

}  // namespace perseus::cli
