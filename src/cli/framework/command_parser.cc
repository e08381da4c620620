// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/framework/command_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>

#include "cli/framework/value_parsers.h"
#include "common/nearest_name.h"

namespace perseus::cli {

struct CommandParser::Node {
  std::string title;    // As it is typed: "perseus job straggler set".
  std::string command;  // The first word of the title after the program.
  CLI::App app;
  std::function<void()> chosen;  // Empty: nobody asks.
  std::vector<ExampleData> examples;
  std::vector<std::unique_ptr<Node>> children;
  std::set<std::string> common;  // Long names that --help shows; empty: all.

  Node(std::string typed, const std::string& description, const std::string& name)
      : title(std::move(typed)), app(description, name) {}
  const std::string& name() const { return app.get_name(); }
  // Of the words that name it.
  std::ptrdiff_t depth() const { return std::count(title.begin(), title.end(), ' '); }
  std::vector<std::string> ChildNames() const {
    std::vector<std::string> names;
    for (const auto& child : children) names.push_back(child->name());
    return names;
  }
};

namespace {

std::string LongName(const std::string& names) { return names.substr(names.find("--")); }

// CLI11 takes refusals as exceptions.
void Apply(const std::string& name, const CommandParser::Set& set, const std::string& text) {
  const Result<void> applied = set(text);
  if (!applied) throw CLI::ValidationError(fmt::format("{}: {}", name, applied.error().message));
}

std::vector<std::string> LongNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool FollowsDoubleDash(const std::vector<std::string>& arguments, const std::string& word) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  return std::find(dashes, arguments.end(), word) != arguments.end();
}

Error NoFurther(const std::string& word, const std::string& name) {
  return {ErrorCode::kInvalidInput,
          fmt::format("'{}' takes no further argument '{}'; '{} --help' shows what it takes", name,
                      word, name)};
}

// CLI11's exceptions in our words. `name` as it is typed.
Error Explain(const CLI::ParseError& error, const CLI::App& app, const std::string& name,
              const std::vector<std::string>& arguments) {
  const auto usage = [](std::string message) {
    return Error{ErrorCode::kInvalidInput, std::move(message)};
  };
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) return usage(error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> words = app.remaining();
    for (const std::string& word : words) {
      if (!word.starts_with('-') || word == "-" || word == "--") continue;
      const std::string flag = word.substr(0, word.find('='));
      if (FollowsDoubleDash(arguments, word)) {
        return usage(fmt::format(
            "after '--' every word is a name and no option; put '{}' before the '--'", flag));
      }
      const std::string nearest = NearestName(flag, LongNames(app));
      return usage(fmt::format("unknown option '{}' of '{}'; {}", flag, name,
                               nearest.empty() ? fmt::format("'{} --help' lists them", name)
                                               : fmt::format("did you mean '{}'?", nearest)));
    }
    return NoFurther(words.empty() ? "" : words.back(), name);
  }
  std::string what = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string option = what.substr(0, what.find(':'));
    return usage(what.find("received") != std::string::npos
                     ? fmt::format("{} is given more than once; keep one of them", option)
                     : fmt::format("{} needs a value; '{} --help' shows which", option, name));
  }
  std::replace(what.begin(), what.end(), '\n', ' ');
  return usage(fmt::format("{} ('{} --help' shows how options are given)", what, name));
}

}  // namespace

CommandParser::CommandParser(const std::string& name, const std::string& description,
                             const std::string& version, std::vector<ExampleData> examples)
    : root_(std::make_unique<Node>(name, description, name)) {
  CLI::App& app = root_->app;
  app.set_help_flag("-h,--help", "Print this text and end.");
  app.set_version_flag("-V,--version", version, "Print the version and end.");
  for (CLI::Option* option : app.get_options()) option->group("Options");
  root_->examples = std::move(examples);
}

CommandParser::~CommandParser() = default;

CommandParser::Node* CommandParser::AddNode(Node* parent, const std::string& name,
                                            const std::string& description,
                                            std::vector<ExampleData> examples) {
  parent->children.push_back(std::make_unique<Node>(parent->title + " " + name, description, name));
  newest_ = parent->children.back().get();
  newest_->command = parent->command;
  newest_->examples = std::move(examples);
  newest_->app.set_help_flag("-h,--help", "Print this text and end.")->group("Help");
  group_ = "Options";
  return newest_;
}

void CommandParser::AddCommand(const std::string& name, const std::string& description,
                               std::vector<ExampleData> examples) {
  newest_command_ = AddNode(root_.get(), name, description, std::move(examples));
  newest_command_->command = name;
}

void CommandParser::AddAction(std::string* target, const std::string& name,
                              const std::string& description, std::vector<ExampleData> examples) {
  Node* parent = newest_command_;
  std::string last = name;
  for (const auto& child : newest_command_->children) {
    if (!name.starts_with(child->name() + " ")) continue;
    parent = child.get();
    last = name.substr(child->name().size() + 1);
  }
  AddNode(parent, last, description, std::move(examples))->chosen = [=] { *target = name; };
}

void CommandParser::AddInput(std::string* target, const std::string& value, const std::string& help,
                             Details details) {
  // CLI11 wants a name for every positional; people see the value's.
  const std::string name = fmt::format("input{}", newest_->app.get_options().size());
  CLI::Option* option =
      newest_->app.add_option(name, *target, help)->type_name(value)->group("Input");
  details_[option] = std::move(details);
}

void CommandParser::AddInputs(const std::string& value, const std::string& help, Set set) {
  using Texts = std::vector<std::string>;
  const std::string name = fmt::format("input{}", newest_->app.get_options().size());
  CLI::Option* option = newest_->app.add_option_function<Texts>(
      name,
      [value, set = std::move(set)](const Texts& texts) {
        for (const std::string& text : texts) Apply(value, set, text);
      },
      help);
  option->type_name(value)->group("Input");
  details_[option] = {};
  repeated_.insert(option);
}

void CommandParser::AddText(const std::string& names, const std::string& value,
                            const std::string& help, Set set, Details details) {
  CLI::Option* option = newest_->app.add_option_function<std::string>(
      names,
      [name = LongName(names), set = std::move(set)](const std::string& text) {
        Apply(name, set, text);
      },
      help);
  option->type_name(value)->group(group_)->expected(1);
  details_[option] = std::move(details);
}

void CommandParser::AddRepeated(const std::string& names, const std::string& value,
                                const std::string& help, Set set) {
  using Texts = std::vector<std::string>;
  CLI::Option* option = newest_->app.add_option_function<Texts>(
      names,
      [name = LongName(names), set = std::move(set)](const Texts& texts) {
        for (const std::string& text : texts) Apply(name, set, text);
      },
      help);
  option->type_name(value)->group(group_)->allow_extra_args(false);
  details_[option] = {};
  repeated_.insert(option);
}

void CommandParser::AddCount(std::optional<int>* target, const std::string& names,
                             const std::string& help, int least, int most) {
  AddValue<int>(target, names, "N", help,
                [=](std::string_view text) { return ParseCount(text, least, most); });
}

void CommandParser::AddFlag(bool* target, const std::string& names, const std::string& help) {
  CLI::Option* option = newest_->app.add_flag(names, *target, help)->group(group_);
  details_[option] = {ValueKind::kNone, {}};
}

void CommandParser::AddHiddenFlag(bool* target, const std::string& names) {
  newest_->app.add_flag(names, *target)->group("");
}

void CommandParser::SetCommon(const std::vector<std::string>& long_names) {
  newest_->common.insert(long_names.begin(), long_names.end());
  newest_->common.insert({"--help", "--help-all"});
  newest_->app.set_help_all_flag("--help-all", "Print this text with all options and end.")
      ->group("Help");
}

CommandData CommandParser::DescribeNode(const Node& node) const {
  CommandData command;
  command.name = node.name();
  command.title = node.title;
  const std::string text = node.app.get_description();
  const std::size_t end = text.find("\n\n");
  command.summary = text.substr(0, end);
  if (command.summary.ends_with('.')) command.summary.pop_back();
  command.description = text;
  command.examples = node.examples;
  for (const CLI::Option* option : node.app.get_options()) {
    if (option->get_group().empty()) continue;
    OptionData data;
    if (!option->get_snames().empty()) data.short_name = "-" + option->get_snames().front();
    if (!option->get_lnames().empty()) data.long_name = "--" + option->get_lnames().front();
    data.help = option->get_description();
    data.group = option->get_group();
    data.common = node.common.empty() || node.common.contains(data.long_name);
    const auto details = details_.find(option);
    if (details != details_.end()) {
      data.kind = details->second.kind;
      data.choices = details->second.choices;
      data.repeated = repeated_.count(option) > 0;
      if (data.kind != ValueKind::kNone) data.value = option->get_type_name();
    }
    command.options.push_back(std::move(data));
  }
  // The parser declares --help first; people look for it last.
  std::stable_partition(command.options.begin(), command.options.end(),
                        [](const OptionData& option) { return option.group != "Help"; });
  for (const auto& child : node.children) command.commands.push_back(DescribeNode(*child));
  return command;
}

CommandData CommandParser::Describe() const { return DescribeNode(*root_); }

// Finds the command of the first words, up to an option or a command without actions.
Result<CommandParser::Node*> CommandParser::Find(const std::vector<std::string>& words) const {
  Node* node = root_.get();
  for (std::size_t k = 0; !node->children.empty(); ++k) {
    if (k == words.size() || words[k].starts_with('-')) return node;
    const bool is_root = node == root_.get();
    const std::vector<std::string> names = node->ChildNames();
    const auto found = std::find(names.begin(), names.end(), words[k]);
    if (found != names.end()) {
      node = node->children[static_cast<std::size_t>(found - names.begin())].get();
      continue;
    }
    const std::string nearest = NearestName(words[k], names);
    return InvalidInput(fmt::format(
        "unknown {}; {}",
        is_root ? fmt::format("command '{}'", words[k])
                : fmt::format("action '{}' of '{}'", words[k], node->title),
        !nearest.empty() ? fmt::format("did you mean '{}'?", nearest)
                         : fmt::format("the {} are {}", is_root ? "commands" : "actions",
                                       fmt::join(names, ", "))));
  }
  return node;
}

Error CommandParser::NothingToDo(const Node& node) const {
  const std::string names = fmt::format("{}", fmt::join(node.ChildNames(), ", "));
  return {ErrorCode::kInvalidInput,
          &node == root_.get()
              ? fmt::format("no command given; the commands are {} ('{} --help' shows examples)",
                            names, node.title)
              : fmt::format("'{}' needs an action, before any option: {}", node.title, names)};
}

Result<ParsedArguments> CommandParser::Parse(std::vector<std::string> arguments, int columns) {
  ParsedArguments parsed;
  const bool asks_for_help = !arguments.empty() && arguments.front() == "help";
  if (asks_for_help) arguments.erase(arguments.begin());
  const Result<Node*> found = Find(arguments);
  if (!found) return tl::unexpected(found.error());
  Node& node = **found;
  if (asks_for_help) {
    parsed.text = FormatHelp(DescribeNode(node), columns);
    return parsed;
  }
  arguments.erase(arguments.begin(), arguments.begin() + node.depth());
  const bool is_group = !node.children.empty();
  if (is_group && arguments.empty()) return tl::unexpected(NothingToDo(node));
  try {
    node.app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    parsed.text = FormatHelp(DescribeNode(node), columns);
    return parsed;
  } catch (const CLI::CallForAllHelp&) {
    parsed.text = FormatHelp(DescribeNode(node), columns, true);
    return parsed;
  } catch (const CLI::CallForVersion& version) {
    if (arguments.size() > 1) return tl::unexpected(NoFurther(arguments[1], node.title));
    parsed.text = fmt::format("{}\n", version.what());
    return parsed;
  } catch (const CLI::ParseError& error) {
    if (is_group && &node != root_.get()) return tl::unexpected(NothingToDo(node));
    return tl::unexpected(Explain(error, node.app, node.title, arguments));
  }
  if (is_group) return tl::unexpected(NothingToDo(node));  // "--" and nothing else.
  if (node.chosen) node.chosen();
  parsed.command = node.command;
  return parsed;
}

}  // namespace perseus::cli
