// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

#include "cli/commands.h"
#include "cli/framework/command_parser.h"
#include "cli/planning/job.h"
#include "job/job_fields.h"
#include "perseus/version.h"

namespace perseus::cli {
namespace {

struct CommandEntry {
  std::string_view name;
  void (*add)(CommandParser* parser, Invocation* invocation);
  Result<Printout> (*run)(const Invocation& invocation, const Style& style);
};

// Runs a command that needs its own flags only.
template <auto kFlags, auto kRun>
Result<Printout> RunWith(const Invocation& invocation, const Style& style) {
  if constexpr (std::is_invocable_v<decltype(kRun), decltype(invocation.*kFlags)>) {
    return kRun(invocation.*kFlags);
  } else {
    return kRun(invocation.*kFlags, style);
  }
}

// In the order of the help.
constexpr CommandEntry kCommands[] = {
    {"plan", AddPlanCommand, RunPlan},
    {"frontier", AddFrontierCommand, RunFrontier},
    {"schedule", AddScheduleCommand, RunWith<&Invocation::schedule, RunSchedule>},
    {"explain", AddExplainCommand, RunWith<&Invocation::explain, RunExplain>},
    {"diff", AddDiffCommand, RunWith<&Invocation::diff, RunDiff>},
    {"check", AddCheckCommand, RunCheck},
    {"emulate", AddEmulateCommand, RunEmulate},
    {"fleet", AddFleetCommand, RunWith<&Invocation::fleet, RunFleet>},
    {"agent", AddAgentCommand, RunWith<&Invocation::agent, RunAgent>},
    {"doctor", AddDoctorCommand, RunWith<&Invocation::doctor, RunDoctor>},
    {"support-bundle", AddSupportBundleCommand,
     RunWith<&Invocation::support_bundle, RunSupportBundle>},
    {"demo", AddDemoCommand, RunWith<&Invocation::demo, RunDemo>},
    {"serve", AddServeCommand, RunWith<&Invocation::serve, RunServe>},
    {"store", AddStoreCommand, RunWith<&Invocation::store, RunStore>},
    {"job", AddJobCommand, RunWith<&Invocation::job_client, RunJob>},
    {"top", AddTopCommand, RunWith<&Invocation::top, RunTop>},
    {"profile", AddProfileCommand, RunWith<&Invocation::profile, RunProfile>},
    {"report", AddReportCommand, RunWith<&Invocation::report, RunReport>},
    {"completion", AddCompletionCommand, RunWith<&Invocation::shell, RunCompletion>},
    {"man", AddManCommand, RunWith<&Invocation::man, RunMan>},
};

const CommandEntry* CommandNamed(std::string_view name) {
  const auto* found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                   [&](const CommandEntry& each) { return each.name == name; });
  return found == std::end(kCommands) ? nullptr : found;
}

// Commands that perseus.analysis of the Python package answers (python/perseus/analysis/__init__.py
// has the same), as they are typed.
constexpr std::string_view kPackageCommands[] = {"fleet emulate", "policy", "power", "synth",
                                                 "trace"};

// The command that the arguments begin with, or --version: what else there is need not be known.
// Empty: all of it, to describe the program, or what an unknown word may have meant.
std::string_view Needed(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return {};
  const std::string_view first = arguments.front();
  const bool is_known = first == "--version" || first == "-V" || CommandNamed(first) != nullptr;
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
  line.invocation.command = std::move(parsed->command);
  return line;
}

Result<Printout> RunCommand(const Invocation& invocation, const Style& style) {
  const CommandEntry* command = CommandNamed(invocation.command);
  if (command == nullptr) return MakeError(ErrorCode::kInternal, "a command without code");
  return command->run(invocation, style);
}

CommandData DescribeCommandLine() {
  Invocation invocation;
  return PerseusParser(&invocation, {}).Describe();
}

}  // namespace perseus::cli
