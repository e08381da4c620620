// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <set>

#include "cli/job_flags.h"
#include "cli/value_parsers.h"
#include "common/nearest_name.h"
#include "job/job_fields.h"

namespace perseus::cli {
namespace {

std::string LongName(const std::string& names) { return names.substr(names.find("--")); }

// CLI11 takes refusals as exceptions.
void Apply(const std::string& name, const CommandParser::Set& set, const std::string& text) {
  const Result<void> applied = set(text);
  if (!applied) throw CLI::ValidationError(fmt::format("{}: {}", name, applied.error().message));
}

}  // namespace

CommandParser::CommandParser(Invocation* invocation)
    : app_(std::make_unique<CLI::App>(
          "Plans the cheapest clock for every computation of pipeline-parallel training.\n\n"
          "Perseus reads what each stage of a training pipeline costs at each GPU clock (time and "
          "energy), computes the exact frontier between iteration time and energy, and gives "
          "every computation a clock so that the iteration ends as early as you ask for at the "
          "least energy.",
          "perseus")),
      invocation_(invocation) {
  app_->set_help_flag("-h,--help", "Print this text and end.");
  app_->set_version_flag("--version", std::string(Version()), "Print the version and end.");
  for (CLI::Option* option : app_->get_options()) option->group("Options");
  examples_[app_.get()] = {
      {"what can be saved, and which clock each computation gets",
       "perseus plan profile.csv --schedule 1f1b --microbatches 96 --blocking-power 75 -o plan/"},
      {"look at a schedule",
       "perseus schedule zbv-zero-bubble --stages 8 --virtual-stages 2 "
       "--microbatches 8"}};
}

CommandParser::~CommandParser() = default;

void CommandParser::AddCommand(Command command, const std::string& name,
                               const std::string& description, std::vector<ExampleData> examples) {
  command_ = app_->add_subcommand(name, description);
  command_->fallthrough(false);
  command_->get_help_ptr()->group("Help");
  commands_[command_] = command;
  examples_[command_] = std::move(examples);
  group_ = "Options";
}

void CommandParser::AddInput(std::string* target, const std::string& value, const std::string& help,
                             Details details) {
  // CLI11 wants a name for every positional; people see the value's.
  const std::string name = fmt::format("input{}", command_->get_options().size());
  CLI::Option* option = command_->add_option(name, *target, help)->type_name(value)->group("Input");
  details_[option] = std::move(details);
}

void CommandParser::AddText(const std::string& names, const std::string& value,
                            const std::string& help, Set set, Details details) {
  CLI::Option* option = command_->add_option_function<std::string>(
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
  CLI::Option* option = command_->add_option_function<Texts>(
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
  CLI::Option* option = command_->add_flag(names, *target, help)->group(group_);
  details_[option] = {ValueKind::kNone, {}};
}

std::vector<std::string> CommandParser::CommandNames() const {
  std::vector<std::string> names;
  for (const CLI::App* app : app_->get_subcommands({})) names.push_back(app->get_name());
  return names;
}

std::vector<std::string> CommandParser::LongNames(const CLI::App& app) const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

const CLI::App* CommandParser::ParsedCommand() const {
  const std::vector<CLI::App*> parsed = app_->get_subcommands();
  return parsed.empty() ? app_.get() : parsed.front();
}

CommandData CommandParser::DescribeApp(const CLI::App& app) const {
  CommandData command;
  command.name = app.get_name();
  const std::string text = app.get_description();
  const std::size_t end = text.find("\n\n");
  command.summary = text.substr(0, end);
  if (command.summary.ends_with('.')) command.summary.pop_back();
  command.description = text;
  const auto examples = examples_.find(&app);
  if (examples != examples_.end()) command.examples = examples->second;
  for (const CLI::Option* option : app.get_options()) {
    OptionData data;
    if (!option->get_snames().empty()) data.short_name = "-" + option->get_snames().front();
    if (!option->get_lnames().empty()) data.long_name = "--" + option->get_lnames().front();
    data.help = option->get_description();
    data.group = option->get_group();
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
                        [](const OptionData& option) { return option.long_name != "--help"; });
  return command;
}

CommandData CommandParser::Describe() const {
  CommandData root = DescribeApp(*app_);
  for (const CLI::App* app : app_->get_subcommands({})) root.commands.push_back(DescribeApp(*app));
  return root;
}

std::vector<std::string> CommandParser::PlanArguments(const CLI::App& command) const {
  std::vector<std::string> arguments;
  const CLI::App* plan = app_->get_subcommand("plan");
  // Answers are about the profile's own times.
  std::set<std::string_view> conditions = {"--switch-ahead"};
  for (const job::Field& field : job::Fields()) {
    if (field.condition) conditions.insert(FlagOfField(field.key));
  }
  for (const CLI::Option* option : command.parse_order()) {
    const std::string name = option->get_single_name();
    if (option->get_lnames().empty()) {
      arguments.push_back(option->results().front());
    } else if (plan->get_option_no_throw("--" + name) != nullptr && name != "at" &&
               name != "effort" && name != "output" && name != "json" &&
               !conditions.contains("--" + name)) {
      arguments.push_back("--" + name);
      if (option->get_expected_max() > 0) arguments.push_back(option->results().front());
    }
  }
  return arguments;
}

bool CommandParser::FollowsDoubleDash(const std::string& word) const {
  const auto dashes = std::find(arguments_.begin(), arguments_.end(), "--");
  return std::find(dashes, arguments_.end(), word) != arguments_.end();
}

// CLI11's exceptions in our words.
Error CommandParser::Explain(const CLI::ParseError& error) const {
  const CLI::App* command = ParsedCommand();
  const std::string name = command == app_.get() ? "perseus" : "perseus " + command->get_name();
  const auto usage = [](std::string message) {
    return Error{ErrorCode::kInvalidInput, std::move(message)};
  };
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) return usage(error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    for (const std::string& word : app_->remaining(/*recurse=*/true)) {
      if (!word.starts_with('-') || word == "-" || word == "--") continue;
      const std::string flag = word.substr(0, word.find('='));
      if (FollowsDoubleDash(word)) {
        return usage(fmt::format(
            "after '--' every word is a name and no option; put '{}' before the '--'", flag));
      }
      const std::string nearest = NearestName(flag, LongNames(*command));
      return usage(fmt::format("unknown option '{}' of '{}'; {}", flag, name,
                               nearest.empty() ? fmt::format("'{} --help' lists them", name)
                                               : fmt::format("did you mean '{}'?", nearest)));
    }
    const std::vector<std::string> words = app_->remaining(/*recurse=*/true);
    return usage(fmt::format("'{}' takes no further argument '{}'; '{} --help' shows what it takes",
                             name, words.empty() ? "" : words.back(), name));
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

Result<ParsedCommandLine> CommandParser::Parse(const std::vector<std::string>& arguments,
                                               int columns) {
  ParsedCommandLine parsed;
  const std::vector<std::string> names = CommandNames();
  if (arguments.empty()) {
    return InvalidInput(
        fmt::format("no command given; the commands are {} ('perseus --help' shows "
                    "examples)",
                    fmt::join(names, ", ")));
  }
  const std::string& first = arguments.front();
  if (!first.starts_with('-') && std::find(names.begin(), names.end(), first) == names.end()) {
    const std::string nearest = NearestName(first, names);
    return InvalidInput(fmt::format("unknown command '{}'; {}", first,
                                    nearest.empty()
                                        ? fmt::format("the commands are {}", fmt::join(names, ", "))
                                        : fmt::format("did you mean '{}'?", nearest)));
  }
  arguments_ = arguments;
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    const CommandData root = Describe();
    const CLI::App* asked = ParsedCommand();
    const auto found =
        std::find_if(root.commands.begin(), root.commands.end(),
                     [&](const auto& each) { return each.name == asked->get_name(); });
    parsed.text = FormatHelp(root, found == root.commands.end() ? nullptr : &*found, columns);
    return parsed;
  } catch (const CLI::CallForVersion&) {
    parsed.text = fmt::format("perseus {}\n", Version());
    return parsed;
  } catch (const CLI::ParseError& error) {
    return tl::unexpected(Explain(error));
  }
  const auto command = commands_.find(ParsedCommand());
  if (command == commands_.end()) {
    return InvalidInput("no command given; 'perseus --help' lists the commands");
  }
  invocation_->command = command->second;
  invocation_->plan_arguments = PlanArguments(*ParsedCommand());
  parsed.invocation = *invocation_;
  return parsed;
}

}  // namespace perseus::cli
