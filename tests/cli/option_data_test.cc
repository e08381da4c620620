// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/framework/command_parser.h"
#include "cli/run_perseus.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using ::testing::HasSubstr;

// The program, its commands and their actions.
std::vector<CommandData> AllOf(const CommandData& command) {
  std::vector<CommandData> all = {command};
  for (const CommandData& each : command.commands) {
    for (CommandData& one : AllOf(each)) all.push_back(std::move(one));
  }
  return all;
}

constexpr ManPageFooter kFooter = {"1.0", "2026-01-31"};

bool HasTool(const std::string& name) { return RunShell("command -v " + name, "").exit_code == 0; }

TEST(OptionDataTest, HelpFitsItsWidth) {
  for (const CommandData& command : AllOf(DescribeCommandLine())) {
    const std::string help = FormatHelp(command, 80);
    const std::string before_examples = help.substr(0, help.find("\nExample"));
    for (std::size_t at = 0; at < before_examples.size();) {
      const std::size_t end = std::min(before_examples.find('\n', at), before_examples.size());
      EXPECT_LE(end - at, 80u) << before_examples.substr(at, end - at);
      at = end + 1;
    }
  }
}

// The place of a straggler that was given without one can be read nowhere else in the terminal.
TEST(OptionDataTest, HelpOfEmulateNamesDefaults) {
  const CommandData root = DescribeCommandLine();
  const auto emulate = std::find_if(root.commands.begin(), root.commands.end(),
                                    [](const auto& each) { return each.name == "emulate"; });
  ASSERT_NE(emulate, root.commands.end());
  std::string help;
  for (const OptionData& option : emulate->options) help += option.help + "\n";
  EXPECT_THAT(help, Mentions("default", "0"));
  EXPECT_THAT(help, Mentions("--straggler", "slow=1.2"));
  EXPECT_THAT(help, Mentions("ranks", "virtual"));
  EXPECT_THAT(help, Mentions("--at", "1.02x"));
}

TEST(OptionDataTest, EveryOptionIsInEveryText) {
  const CommandData root = DescribeCommandLine();
  const std::string bash = FormatBashCompletion(root);
  const std::string zsh = FormatZshCompletion(root);
  const std::string fish = FormatFishCompletion(root);
  const std::vector<ManPage> pages = FormatManPages(root, kFooter);
  const std::vector<CommandData> commands = AllOf(root);
  ASSERT_EQ(pages.size(), commands.size());
  for (std::size_t k = 0; k < commands.size(); ++k) {
    const CommandData& command = commands[k];
    std::string plain;
    for (const char c : pages[k].text) {
      if (c != '\\') plain += c;
    }
    EXPECT_NE(plain.find(command.title), std::string::npos) << command.title;
    for (const OptionData& option : command.options) {
      if (option.long_name.empty()) continue;
      EXPECT_FALSE(option.help.empty()) << option.long_name;
      EXPECT_NE(bash.find(option.long_name), std::string::npos) << option.long_name;
      EXPECT_NE(zsh.find(option.long_name + "["), std::string::npos) << option.long_name;
      EXPECT_NE(fish.find(" -l " + option.long_name.substr(2)), std::string::npos);
      EXPECT_NE(plain.find(option.long_name), std::string::npos) << option.long_name;
    }
  }
}

TEST(OptionDataTest, BashReadsItsCompletionAndCompletes) {
  if (!HasTool("bash")) GTEST_SKIP() << "bash is not installed";
  const std::string script = FormatBashCompletion(DescribeCommandLine());
  EXPECT_EQ(RunShell("bash -n", script).exit_code, 0);
  const auto complete = [&](const std::string& words, int at) {
    return RunShell("bash", script + "\nCOMP_WORDS=(" + words + "); COMP_CWORD=" +
                                std::to_string(at) + "; _perseus; echo \"${COMPREPLY[*]}\"\n")
        .out;
  };
  EXPECT_EQ(complete("perseus pl", 1), "plan\n");
  EXPECT_EQ(complete("perseus plan --micro", 2), "--microbatches\n");
  EXPECT_EQ(complete("perseus plan --schedule dual", 3), "dualpipev\n");
  EXPECT_EQ(complete("perseus schedule zb", 2), "zbv-zero-bubble\n");
  EXPECT_EQ(complete("perseus emulate -o doc", 3), "docs\n");
  EXPECT_EQ(complete("perseus job straggler ", 3), "set clear -h --help\n");
  EXPECT_EQ(complete("perseus job straggler set a --fac", 5), "--factor\n");
  EXPECT_EQ(complete("perseus job de", 2), "detection delete\n");
  // A job may be called like a command; its name comes from the program.
  EXPECT_EQ(complete("echo job show list", 3), "list\n");
  EXPECT_EQ(complete("echo job point plan 1", 4), "\n");
}

TEST(OptionDataTest, ZshOffersRepeatedOptionsAgain) {
  const std::string zsh = FormatZshCompletion(DescribeCommandLine());
  EXPECT_NE(zsh.find("'*--straggler["), std::string::npos);
  EXPECT_NE(zsh.find("'--noise["), std::string::npos);
}

TEST(OptionDataTest, ShellQuotes) {
  EXPECT_EQ(ShellQuoted("it's $1"), "'it'\\''s $1'");
  EXPECT_EQ(ShellWord("a-b_c/1.02x"), "a-b_c/1.02x");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(OptionDataTest, ZshAndFishReadTheirCompletions) {
  const CommandData root = DescribeCommandLine();
  if (!HasTool("zsh") && !HasTool("fish")) GTEST_SKIP() << "neither zsh nor fish is installed";
  if (HasTool("zsh")) {
    EXPECT_EQ(RunShell("zsh -n /dev/stdin", FormatZshCompletion(root)).err, "");
  }
  if (HasTool("fish")) {
    EXPECT_EQ(RunShell("fish -n", FormatFishCompletion(root)).err, "");
  }
}

TEST(OptionDataTest, ManPagesHaveNoWarnings) {
  const bool has_groff = HasTool("groff");
  const bool has_mandoc = HasTool("mandoc");
  if (!has_groff && !has_mandoc) GTEST_SKIP() << "neither groff nor mandoc is installed";
  for (const ManPage& page : FormatManPages(DescribeCommandLine(), kFooter)) {
    SCOPED_TRACE(page.name);
    if (has_groff) {
      EXPECT_EQ(RunShell("groff -ww -man -Tascii >/dev/null", page.text).err, "");
    }
    if (has_mandoc) {
      EXPECT_EQ(RunShell("mandoc -T lint", page.text).out, "");
    }
  }
}

TEST(OptionDataTest, EachCommandHasItsManPage) {
  const std::vector<ManPage> pages = FormatManPages(DescribeCommandLine(), kFooter);
  const auto page = std::find_if(pages.begin(), pages.end(), [](const ManPage& each) {
    return each.name == "perseus-job-create";
  });
  ASSERT_NE(page, pages.end());
  EXPECT_THAT(page->text, HasSubstr(".TH PERSEUS-JOB-CREATE 1 \"2026-01-31\" \"perseus 1.0\""));
  EXPECT_THAT(page->text, HasSubstr(".SH SEE ALSO\n\\fBperseus\\-job\\fR(1),\n"));
  EXPECT_EQ(pages.front().name, "perseus");
  EXPECT_THAT(pages.front().text, HasSubstr("\\fBperseus\\-plan\\fR(1)\n"));
}

// A word that comes to the start of a line is no request, and a command that is broken into lines
// is still one.
TEST(OptionDataTest, LongTextsAreBrokenIntoLines) {
  CommandData command;
  command.name = command.title = "perseus";
  command.description = std::string(78, 'a') + " .5 'x'";
  command.examples = {{"so", "perseus " + std::string(70, 'b') + " .end"}};
  const std::string text = FormatManPages(command, kFooter).front().text;
  EXPECT_THAT(text, HasSubstr(std::string(78, 'a') + "\n\\&.5 \\&'x'\n"));
  EXPECT_THAT(text, HasSubstr(std::string(70, 'b') + " \\\n\\&.end\n"));
}

}  // namespace
}  // namespace perseus::cli
