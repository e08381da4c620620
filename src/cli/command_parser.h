// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_COMMAND_PARSER_H_
#define PERSEUS_CLI_COMMAND_PARSER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/option_data.h"
#include "perseus/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): not ours.
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace perseus::cli {

// The CLI11 parser of all commands, and what it cannot hold itself. The
// commands add themselves (command_options.h): AddCommand first, then SetGroup
// and options, which go to the newest command and group.
class CommandParser {
 public:
  // What a shell completes the value of an option with.
  struct Details {
    ValueKind kind = ValueKind::kText;
    std::vector<std::string> choices;
  };
  // Takes the text of an option; an error gets the option's name.
  using Set = std::function<Result<void>(const std::string&)>;

  explicit CommandParser(Invocation* invocation);
  CommandParser(const CommandParser&) = delete;
  CommandParser& operator=(const CommandParser&) = delete;
  ~CommandParser();

  void AddCommand(Command command, const std::string& name, const std::string& description,
                  std::vector<ExampleData> examples);
  void SetGroup(const std::string& group) { group_ = group; }

  void AddInput(std::string* target, const std::string& value, const std::string& help,
                Details details = {ValueKind::kFile, {}});
  void AddText(const std::string& names, const std::string& value, const std::string& help, Set set,
               Details details);
  // May be given several times; `set` is called for each.
  void AddRepeated(const std::string& names, const std::string& value, const std::string& help,
                   Set set);
  void AddFlag(bool* target, const std::string& names, const std::string& help);
  void AddCount(std::optional<int>* target, const std::string& names, const std::string& help,
                int least, int most);
  // --output, with a name that is not empty. `kind`: kDirectory or kFile.
  template <typename Target>
  void AddOutput(Target* target, ValueKind kind, const std::string& help) {
    const bool is_folder = kind == ValueKind::kDirectory;
    AddText("-o,--output", is_folder ? "DIR" : "FILE", help,
            [target, is_folder](const std::string& text) -> Result<void> {
              if (text.empty()) {
                return InvalidInput(is_folder ? "the name of the folder is empty"
                                              : "the name of the file is empty");
              }
              *target = text;
              return {};
            },
            {kind, {}});
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

  Result<ParsedCommandLine> Parse(const std::vector<std::string>& arguments, int columns);
  CommandData Describe() const;

 private:
  CommandData DescribeApp(const CLI::App& app) const;
  std::vector<std::string> CommandNames() const;
  std::vector<std::string> LongNames(const CLI::App& app) const;
  const CLI::App* ParsedCommand() const;
  std::vector<std::string> PlanArguments(const CLI::App& command) const;
  bool FollowsDoubleDash(const std::string& word) const;
  Error Explain(const CLI::ParseError& error) const;

  std::unique_ptr<CLI::App> app_;
  Invocation* invocation_;
  std::vector<std::string> arguments_;  // Being parsed.
  CLI::App* command_ = nullptr;         // The newest.
  std::string group_ = "Options";
  std::map<const CLI::Option*, Details> details_;
  std::set<const CLI::Option*> repeated_;
  std::map<const CLI::App*, std::vector<ExampleData>> examples_;
  std::map<const CLI::App*, Command> commands_;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_COMMAND_PARSER_H_
