// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_options.h"

namespace perseus::cli {

void AddCompletionCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kCompletion, "completion",
      "Print a completion script for a shell.\n\n"
      "The script completes commands, options, schedule names and files.",
      {{"bash, for this session", "source <(perseus completion bash)"},
       {"zsh, for this session", "source <(perseus completion zsh)"},
       {"fish, for good", "perseus completion fish > ~/.config/fish/completions/perseus.fish"}});
  parser->AddInput(&invocation->shell, "bash|zsh|fish", "The shell.",
                   {ValueKind::kChoice, {"bash", "zsh", "fish"}});
}

void AddManCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kMan, "man",
      "Print a man page, or write all of them.\n\n"
      "Each command and each action has a page, made from the same data as its --help. An "
      "installed perseus has them: 'man perseus', 'man perseus-plan', 'man perseus-job-create'.",
      {{"read a page without installing", "perseus man job-create | man -l -"},
       {"write all pages into a folder", "perseus man -o share/man/man1"}});
  parser->AddInput(&invocation->man.page, "PAGE",
                   "The page: 'plan', 'job-create' (default: that of perseus itself).", {});
  parser->AddOutput(&invocation->man.output_directory, ValueKind::kDirectory,
                    "Write all pages into this folder.");
}

}  // namespace perseus::cli
