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

void AddFleetEmulate(CommandParser* parser, FleetFlags* flags) {
  constexpr double kMostDays = 366;
  constexpr int kMostSeeds = 1000;
  parser->AddAction(
      &flags->action, "emulate",
      "Run a site for some days on paper, under one rule after the other.\n\nReads a site file "
      "with "
      "a table [emulate] (docs/reference/files.md): arrivals, stragglers, events of the grid, "
      "ramps, "
      "prices. Several rules divide the power in the same days: power caps, one clock for all, "
      "shedding, requests, and Perseus. Shows for each the work that is lost, energy and cost, "
      "watts "
      "over the limit, deadlines missed and fairness. The same arguments give the same numbers.",
      {{"a week, with its spread over five seeds", "perseus fleet emulate site.toml --seeds 5"},
       {"a day, with report and power minute by minute",
        "perseus fleet emulate site.toml --days 1 -o week/"}});
  parser->AddInput(&flags->input, "SITE.toml", "The site file.");
  parser->AddValue<double>(&flags->days, "--days", "N",
                           "How many days (default 7); 0.5 is half a day.",
                           [](std::string_view text) {
                             return ParseQuantity(text, {.least = 0.001, .most = kMostDays});
                           });
  parser->AddCount(
      &flags->seeds, "--seeds",
      "Emulate this many times with other arrivals and stragglers (default 1). Figures "
      "are then means, with the standard deviation.",
      1, kMostSeeds);
  parser->AddValue<std::uint64_t>(&flags->seed, "--seed", "N",
                                  "Seed of all random numbers (default 0), the first of --seeds.",
                                  ParseSeed);
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_directory, ValueKind::kDirectory,
                    "Write fleet-days.json, power.csv and report.html into this folder.");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
}

}  // namespace

void AddFleetCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(Command::kFleet, "fleet",
                     "Divide the power of a site among its jobs, on paper.",
                     {{"what each job gets of a budget", "perseus fleet plan site.toml"},
                      {"a week under several rules", "perseus fleet emulate site.toml"}});
  AddFleetPlan(parser, &invocation->fleet);
  AddFleetEmulate(parser, &invocation->fleet);
}

}  // namespace perseus::cli
