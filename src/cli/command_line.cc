// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "cli/command_options.h"
#include "cli/framework/command_parser.h"
#include "cli/package_commands.h"
#include "cli/planning/job.h"
#include "job/job_fields.h"
#include "perseus/version.h"

namespace perseus::cli {
namespace {

// In the order of the help.
void AddCommands(CommandParser* parser, Invocation* invocation) {
  AddPlanCommand(parser, invocation);
  AddFrontierCommand(parser, invocation);
  AddScheduleCommand(parser, invocation);
  AddExplainCommand(parser, invocation);
  AddDiffCommand(parser, invocation);
  AddCheckCommand(parser, invocation);
  AddSynthCommand(parser, invocation);
  AddEmulateCommand(parser, invocation);
  AddFleetCommand(parser, invocation);
  AddAgentCommand(parser, invocation);
  AddDoctorCommand(parser, invocation);
  AddSupportBundleCommand(parser, invocation);
  AddDemoCommand(parser, invocation);
  AddServeCommand(parser, invocation);
  AddStoreCommand(parser, invocation);
  AddJobCommand(parser, invocation);
  AddTopCommand(parser, invocation);
  AddProfileCommand(parser, invocation);
  AddReportCommand(parser, invocation);
  AddCompletionCommand(parser, invocation);
  AddManCommand(parser, invocation);
}

// Of what was given, what `plan` takes too and what is no part of an answer.
std::vector<std::string> PlanArguments(const CommandData& root,
                                       const std::vector<GivenOption>& given) {
  const auto plan = std::find_if(root.commands.begin(), root.commands.end(),
                                 [](const CommandData& each) { return each.name == "plan"; });
  std::set<std::string> taken;
  for (const OptionData& option : plan->options) taken.insert(option.long_name);
  for (const char* own : {"--at", "--effort", "--output", "--json", "--help"}) taken.erase(own);
  // Answers are about the profile's own times.
  for (const job::Field& field : job::Fields()) {
    if (field.condition()) taken.erase(FlagOfField(field.key));
  }
  const auto is_condition = [](const GivenOption& option) {
    const job::Field* const field = job::FindField(option.value.substr(0, option.value.find('=')));
    return option.name == "--set" && field != nullptr && field->condition();
  };
  std::vector<std::string> arguments;
  for (const GivenOption& option : given) {
    if (!option.name.empty() && !taken.contains(option.name)) continue;
    if (is_condition(option)) continue;
    if (!option.name.empty()) arguments.push_back(option.name);
    if (!option.value.empty()) arguments.push_back(option.value);
  }
  return arguments;
}

// Says where the command is, if it is one of the Python package.
Result<void> RefusePackageCommand(const std::vector<std::string>& arguments) {
  const std::string typed = fmt::format("{} ", fmt::join(arguments, " "));
  for (const std::string_view name : kPackageCommands) {
    if (!typed.starts_with(fmt::format("{} ", name))) continue;
    return InvalidInput(
        fmt::format("'perseus {0}' is in the Python package: run \"pip install '.[analysis]'\" in "
                    "Perseus' source, then 'python -m perseus {0}'",
                    name));
  }
  return {};
}

class PerseusParser : public CommandParser {
 public:
  explicit PerseusParser(Invocation* invocation)
      : CommandParser(
            "perseus",
            "Chooses a GPU clock for every computation of pipeline-parallel training, to save "
            "energy.\n\nPerseus reads what each stage of a training pipeline costs at each GPU "
            "clock (time and energy), finds the least energy for every iteration time, and gives "
            "every computation a clock, so that the iteration takes the time that you choose and "
            "uses the least energy.",
            fmt::format("perseus {}", Version()),
            {{"what can be saved, and which clock each computation gets",
              "perseus plan profile.csv --schedule 1f1b --microbatches 96 --blocking-power 75 "
              "-o plan/"},
             {"look at a schedule",
              "perseus schedule zbv-zero-bubble --stages 8 --virtual-stages 2 "
              "--microbatches 8"}}) {
    AddCommands(this, invocation);
  }
};

}  // namespace

std::string_view Version() { return PERSEUS_VERSION_STRING; }

Result<ParsedCommandLine> ParseCommandLine(const std::vector<std::string>& arguments, int columns) {
  if (auto good = RefusePackageCommand(arguments); !good) return tl::unexpected(good.error());
  ParsedCommandLine line;
  PerseusParser parser(&line.invocation);
  Result<ParsedArguments> parsed = parser.Parse(arguments, columns);
  if (!parsed) return tl::unexpected(parsed.error());
  line.text = std::move(parsed->text);
  line.invocation.command = parsed->command;
  line.invocation.plan_arguments = PlanArguments(parser.Describe(), parsed->given);
  return line;
}

CommandData DescribeCommandLine() {
  Invocation invocation;
  return PerseusParser(&invocation).Describe();
}

}  // namespace perseus::cli
