// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/framework/option_data.h"

namespace perseus::cli {

Result<Printout> RunCompletion(const std::string& shell) {
  if (shell == "bash") return FormatBashCompletion(DescribeCommandLine());
  if (shell == "zsh") return FormatZshCompletion(DescribeCommandLine());
  if (shell == "fish") return FormatFishCompletion(DescribeCommandLine());
  if (shell.empty()) {
    return InvalidInput("the shell is missing: bash, zsh or fish, as in 'perseus completion bash'");
  }
  return InvalidInput(
      fmt::format("there is no completion for '{}'; the shells are bash, zsh and fish", shell));
}

Result<Printout> RunMan() { return FormatManPage(DescribeCommandLine(), Version()); }

}  // namespace perseus::cli
