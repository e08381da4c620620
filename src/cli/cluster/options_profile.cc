// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <utility>
#include <vector>

#include "cli/cluster/profile_flags.h"
#include "cli/command_options.h"

namespace perseus::cli {

void AddProfileCommand(CommandParser* parser, Invocation* invocation) {
  ProfileFlags* flags = &invocation->profile;
  parser->AddCommand(Command::kProfile, "profile",
                     "Manage the profiles that jobs measured and a server keeps.\n\nA job with a "
                     "label for its model (perseus job create --model) takes over the profile of "
                     "an earlier job with the same label, layout and GPUs. The server is that of "
                     "--server, else of PERSEUS_SERVER, else http://127.0.0.1:7787. The token is "
                     "in the file of --token-file, else of PERSEUS_TOKEN_FILE.",
                     {{"all profiles", "perseus profile list"},
                      {"a profile as a CSV, to plan from",
                       "perseus profile export p-1f2e3d4c5b6a7988 -o profile.csv"}});
  const auto add = [=](const std::string& name, const std::string& description,
                       std::vector<ExampleData> examples = {}) {
    parser->AddAction(&flags->action, name, description, std::move(examples));
  };
  const auto add_profile = [=] {
    parser->AddInput(&flags->profile, "ID", "A profile of the library.", {ValueKind::kProfile, {}});
  };
  const auto add_json = [=] {
    parser->SetGroup("Output");
    parser->AddFlag(&flags->json, "--json", "Print JSON.");
  };
  const auto add_server = [=] { AddServerOptions(parser, &flags->server); };
  add("list", "Show all profiles, a line each.");
  add_json();
  parser->AddHiddenFlag(&flags->names, "--names");
  add_server();
  add("show", "Show what was measured, and under which conditions.");
  add_profile();
  add_json();
  add_server();
  add("compare", "Show how two profiles differ.",
      {{"what changed since", "perseus profile compare p-1f2e3d4c5b6a7988 p-8897a6b5c4d3e2f1"}});
  parser->AddInput(&flags->profile, "ID|FILE", "A profile of the library, or a file.");
  parser->AddInput(&flags->other, "ID|FILE", "The profile or file to compare it with.");
  add_json();
  add_server();
  add("export", "Print a profile as CSV, for perseus plan.");
  add_profile();
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "Write to this file instead of standard output.");
  add_server();
  add("delete", "Delete a profile from the library.");
  add_profile();
  add_server();
}

}  // namespace perseus::cli
