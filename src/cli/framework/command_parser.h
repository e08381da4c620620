// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FRAMEWORK_COMMAND_PARSER_H_
#define PERSEUS_CLI_FRAMEWORK_COMMAND_PARSER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perseus/result.h"

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

namespace CLI {  // NOLINT(readability-identifier-naming): not ours.
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace perseus::cli {

struct ParsedArguments {
  std::optional<std::string> text;  // Help or version: print it and end.
  std::string command;              // Its name: "plan".
};

// The parser of all commands: of each, and of each of its actions, a CLI11 parser of its own, and
// what that cannot hold. The commands add themselves (commands.h): AddCommand first, then
// inputs, SetGroup and options, or AddAction and those of each action. They go to what was added
// last.
class CommandParser {
 public:
  // Data for a shell's completion of an option's value.
  struct Details {
    ValueKind kind = ValueKind::kText;
    std::vector<std::string> choices;
  };
  // Takes the text of an option; an error gets the option's name.
  using Set = std::function<Result<void>(const std::string&)>;

  // The program itself.
  CommandParser(const std::string& name, const std::string& description, const std::string& version,
                std::vector<ExampleData> examples);
  CommandParser(const CommandParser&) = delete;
  CommandParser& operator=(const CommandParser&) = delete;
  ~CommandParser();

  void AddCommand(const std::string& name, const std::string& description,
                  std::vector<ExampleData> examples);
  // An action of the newest command: "list"; or of one of its actions: "straggler set", after
  // "straggler". Where it is given, `target` becomes its name.
  void AddAction(std::string* target, const std::string& name, const std::string& description,
                 std::vector<ExampleData> examples = {});
  // Of the options that follow; an empty one is in no text.
  void SetGroup(const std::string& group) { group_ = group; }
  // Of the newest command: the options that --help shows, by their long names. --help-all, which
  // it then has, shows all.
  void SetCommon(const std::vector<std::string>& long_names);

  void AddInput(std::string* target, const std::string& value, const std::string& help,
                Details details = {ValueKind::kFile, {}});
  // The last input: as many words as are given; `set` is called for each.
  void AddInputs(const std::string& value, const std::string& help, Set set);
  void AddText(const std::string& names, const std::string& value, const std::string& help, Set set,
               Details details);
  // May be given several times; `set` is called for each.
  void AddRepeated(const std::string& names, const std::string& value, const std::string& help,
                   Set set);
  void AddFlag(bool* target, const std::string& names, const std::string& help);
  // A flag for completions, which no text tells of.
  void AddHiddenFlag(bool* target, const std::string& names);
  void AddCount(std::optional<int>* target, const std::string& names, const std::string& help,
                int least, int most);
  // --output, with a name that is not empty. `kind`: kDirectory or kFile.
  template <typename Target>
  void AddOutput(Target* target, ValueKind kind, const std::string& help) {
    const bool is_folder = kind == ValueKind::kDirectory;
    AddText("-o,--output", is_folder ? "DIR" : "FILE", help,
            NotEmpty(target, is_folder ? "the name of the folder is empty"
                                       : "the name of the file is empty"),
            {kind, {}});
  }

  // Setters that keep a text, or append it to a list, unless it is empty. `empty`: the error's
  // sentence if it is.
  template <typename Target>
  static Set NotEmpty(Target* target, const char* empty = "the value is empty") {
    return [target, empty](const std::string& text) -> Result<void> {
      if (text.empty()) return InvalidInput(empty);
      *target = text;
      return {};
    };
  }
  static Set AppendedTo(std::vector<std::string>* target, const char* empty) {
    return [target, empty](const std::string& text) -> Result<void> {
      if (text.empty()) return InvalidInput(empty);
      target->push_back(text);
      return {};
    };
  }

  // An option whose text `read` parses into a Result<T>.
  template <typename T, typename Target, typename Read>
  void AddValue(Target* target, const std::string& names, const std::string& value,
                const std::string& help, const Read& read) {
    AddText(names, value, help,
            [target, read](const std::string& text) -> Result<void> {
              Result<T> parsed = read(text);
              if (!parsed) return tl::unexpected(parsed.error());
              *target = *std::move(parsed);
              return {};
            },
            {});
  }

  // `perseus COMMAND --help` is also `perseus help COMMAND`.
  Result<ParsedArguments> Parse(std::vector<std::string> arguments, int columns);
  CommandData Describe() const;

 private:
  struct Node;  // The program, a command or an action.

  Node* AddNode(Node* parent, const std::string& name, const std::string& description,
                std::vector<ExampleData> examples);
  Result<Node*> Find(const std::vector<std::string>& words) const;
  Error NothingToDo(const Node& node) const;
  CommandData DescribeNode(const Node& node) const;

  std::unique_ptr<Node> root_;
  Node* newest_command_ = nullptr;
  Node* newest_ = nullptr;
  std::string group_ = "Options";
  std::map<const CLI::Option*, Details> details_;
  std::set<const CLI::Option*> repeated_;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FRAMEWORK_COMMAND_PARSER_H_
