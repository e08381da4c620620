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
  parser->AddCommand(
      Command::kProfile, "profile",
      "Look at what jobs measured: the profile library of a server.\n\n"
      "A job that names its model (perseus job create --model) takes over the profile of an "
      "earlier "
      "one that is the same in model, layout and GPUs. Which server: --server, else "
      "PERSEUS_SERVER, else http://127.0.0.1:7787; a token: --token-file, else "
      "PERSEUS_TOKEN_FILE.",
      {{"what is known", "perseus profile list"},
       {"plan by hand from it", "perseus profile export p-1f2e3d4c5b6a7988 -o profile.csv"}});
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
  add("compare", "Show in what two profiles differ.",
      {{"what changed since", "perseus profile compare p-1f2e3d4c5b6a7988 p-8897a6b5c4d3e2f1"}});
  parser->AddInput(&flags->profile, "ID|FILE", "A profile of the library, or a file.");
  parser->AddInput(&flags->other, "ID|FILE", "With which.");
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
