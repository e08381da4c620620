// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/command_parser.h"
#include "common/file.h"
#include "common/nearest_name.h"
#include "perseus/version.h"

namespace perseus::cli {

void AddCompletionCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      "completion",
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
      "man",
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

Result<Printout> RunMan(const ManFlags& flags) {
  const std::vector<ManPage> pages =
      FormatManPages(DescribeCommandLine(), {Version(), PERSEUS_VERSION_DATE});
  if (!flags.output_directory.empty()) {
    if (!flags.page.empty()) {
      return InvalidInput("-o writes all pages; leave out the name of a page, or -o");
    }
    std::vector<OutputFile> files;
    files.reserve(pages.size());
    for (const ManPage& page : pages) files.push_back({page.name + ".1", page.text});
    const Result<void> written = WriteFilesAtomically(flags.output_directory, files);
    if (!written) return tl::unexpected(written.error());
    return Printout(
        fmt::format("Written  {} man pages into {}.\n", files.size(), flags.output_directory),
        flags.output_directory);
  }
  const std::string program = pages.front().name;
  const std::string prefix = program + "-";
  const bool is_whole = flags.page == program || flags.page.starts_with(prefix);
  const std::string name = flags.page.empty() ? program
                           : is_whole         ? flags.page
                                              : prefix + flags.page;
  std::vector<std::string> names;
  for (const ManPage& page : pages) {
    if (page.name == name) return page.text;
    if (page.name != program) names.push_back(page.name.substr(prefix.size()));
  }
  const std::string nearest = NearestName(flags.page, names);
  return InvalidInput(fmt::format("there is no man page '{}'; {}", flags.page,
                                  nearest.empty() ? "'perseus man' has the names of the commands"
                                                  : fmt::format("did you mean '{}'?", nearest)));
}

}  // namespace perseus::cli
