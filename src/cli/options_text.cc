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

void AddManCommand(CommandParser* parser, Invocation* /*invocation*/) {
  parser->AddCommand(
      Command::kMan, "man",
      "Print the man page.\n\n"
      "The page is made from the same data as this text; an installed perseus has it as "
      "perseus(1).",
      {{"read it without installing", "perseus man | man -l -"}});
}

}  // namespace perseus::cli
