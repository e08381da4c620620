// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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

struct CommandEntry {
  std::string_view name;
  void (*add)(CommandParser* parser, Invocation* invocation);
};

// In the order of the help.
constexpr CommandEntry kCommands[] = {
    {"plan", AddPlanCommand},
    {"frontier", AddFrontierCommand},
    {"schedule", AddScheduleCommand},
    {"explain", AddExplainCommand},
    {"diff", AddDiffCommand},
    {"check", AddCheckCommand},
    {"emulate", AddEmulateCommand},
    {"fleet", AddFleetCommand},
    {"agent", AddAgentCommand},
    {"doctor", AddDoctorCommand},
    {"support-bundle", AddSupportBundleCommand},
    {"demo", AddDemoCommand},
    {"serve", AddServeCommand},
    {"store", AddStoreCommand},
    {"job", AddJobCommand},
    {"top", AddTopCommand},
    {"profile", AddProfileCommand},
    {"report", AddReportCommand},
    {"completion", AddCompletionCommand},
    {"man", AddManCommand},
};

// The command that the arguments begin with, or --version: what else there is need not be known.
// Empty: all of it, to describe the program, or what an unknown word may have meant.
std::string_view Needed(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return {};
  const std::string_view first = arguments.front();
  const bool is_known = first == "--version" || first == "-V" ||
                        std::any_of(std::begin(kCommands), std::end(kCommands),
                                    [&](const CommandEntry& each) { return each.name == first; });
  return is_known ? first : std::string_view();
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
  // `needed`: the only command; empty: all.
  PerseusParser(Invocation* invocation, std::string_view needed)
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
    for (const CommandEntry& command : kCommands) {
      if (needed.empty() || needed == command.name) command.add(this, invocation);
    }
  }
};

}  // namespace

std::string_view Version() { return PERSEUS_VERSION_STRING; }

Result<ParsedCommandLine> ParseCommandLine(const std::vector<std::string>& arguments, int columns) {
  if (auto good = RefusePackageCommand(arguments); !good) return tl::unexpected(good.error());
  ParsedCommandLine line;
  PerseusParser parser(&line.invocation, Needed(arguments));
  Result<ParsedArguments> parsed = parser.Parse(arguments, columns);
  if (!parsed) return tl::unexpected(parsed.error());
  line.text = std::move(parsed->text);
  line.invocation.command = parsed->command;
  return line;
}

CommandData DescribeCommandLine() {
  Invocation invocation;
  return PerseusParser(&invocation, {}).Describe();
}

}  // namespace perseus::cli
