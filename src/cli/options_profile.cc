// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_options.h"
#include "cli/profile_flags.h"

namespace perseus::cli {

void AddProfileCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kProfile, "profile",
      "Look at what jobs measured: the profile library of a server.\n\n"
      "list; show ID; compare ID|FILE ID|FILE; export ID; delete ID. A job that names its model "
      "(perseus job create --model) takes over the profile of an earlier one that is the same in "
      "model, layout and GPUs. Which server: --server, else PERSEUS_SERVER, else "
      "http://127.0.0.1:7787; a token: --token-file, else PERSEUS_TOKEN_FILE.",
      {{"what is known", "perseus profile list"},
       {"what changed since", "perseus profile compare p-1f2e3d4c5b6a7988 p-8897a6b5c4d3e2f1"},
       {"plan by hand from it", "perseus profile export p-1f2e3d4c5b6a7988 -o profile.csv"}});
  ProfileFlags* flags = &invocation->profile;
  parser->AddInput(&flags->words[0], "ACTION", "What to do.",
                   {ValueKind::kChoice, {"list", "show", "compare", "export", "delete"}});
  parser->AddInput(&flags->words[1], "ID|FILE", "Which profile.");
  parser->AddInput(&flags->words[2], "ID|FILE", "compare: with which.");
  AddServerOptions(parser, &flags->server);
  parser->SetGroup("Output");
  parser->AddFlag(&flags->json, "--json", "Print JSON.");
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "export: write to this file instead of standard output.");
}

}  // namespace perseus::cli
