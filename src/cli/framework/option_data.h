// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FRAMEWORK_OPTION_DATA_H_
#define PERSEUS_CLI_FRAMEWORK_OPTION_DATA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace perseus::cli {

// The kind of an option's value, for a shell's completion.
enum class ValueKind : std::uint8_t { kNone, kText, kChoice, kFile, kDirectory, kJob, kProfile };

// The command line as plain data: the one source of --help, the man page and
// the shell completions. Built from the CLI11 parser (see command_line.h), so
// that none of them can differ from what is parsed.
struct OptionData {
  std::string short_name;  // "-o", or empty.
  std::string long_name;   // "--output"; empty for a positional.
  std::string value;       // "DIR"; empty for a flag.
  std::string help;
  std::string group;
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> choices;
  bool repeated = false;  // May be given several times.
  bool common = true;     // In --help, not only in --help-all.

  bool positional() const { return long_name.empty() && short_name.empty(); }
};

struct ExampleData {
  std::string says;  // What it does.
  std::string command;
};

struct CommandData {
  std::string name;                 // "perseus", "plan", ...
  std::string title;                // As it is typed: "perseus job straggler set".
  std::string summary;              // One line, no full stop.
  std::string description;          // Paragraphs, separated by empty lines.
  std::vector<OptionData> options;  // In order of declaration.
  std::vector<ExampleData> examples;
  std::vector<CommandData> commands;  // Where there are any: one of them is given, too.
};

// The text of --help, or of --help-all: `all` of the options.
std::string FormatHelp(const CommandData& command, int columns, bool all = false);

// A man page (section 1) in roff.
struct ManPage {
  std::string name;  // "perseus-job-create"
  std::string text;
};
struct ManPageFooter {
  std::string_view version;
  std::string_view date;  // "2026-11-27"
};

// One for the program, and one for each of its commands and their actions.
std::vector<ManPage> FormatManPages(const CommandData& root, const ManPageFooter& footer);

// Completion scripts to be evaluated by the shell.
std::string FormatBashCompletion(const CommandData& root);
std::string FormatZshCompletion(const CommandData& root);
std::string FormatFishCompletion(const CommandData& root);

// The text in single quotes, as a shell reads it.
std::string ShellQuoted(std::string_view text);

// The same, quoted only where it must be.
std::string ShellWord(std::string_view text);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FRAMEWORK_OPTION_DATA_H_
