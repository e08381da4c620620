// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_line.h"

#include "cli/command_options.h"
#include "cli/command_parser.h"

namespace perseus::cli {
namespace {

// In the order of the help.
void AddCommands(CommandParser* parser, Invocation* invocation) {
  AddPlanCommand(parser, invocation);
  AddFrontierCommand(parser, invocation);
  AddScheduleCommand(parser, invocation);
  AddExplainCommand(parser, invocation);
  AddCheckCommand(parser, invocation);
  AddSynthCommand(parser, invocation);
  AddEmulateCommand(parser, invocation);
  AddTraceCommand(parser, invocation);
  AddEvaluateCommand(parser, invocation);
  AddAgentCommand(parser, invocation);
  AddDoctorCommand(parser, invocation);
  AddDemoCommand(parser, invocation);
  AddServeCommand(parser, invocation);
  AddJobCommand(parser, invocation);
  AddProfileCommand(parser, invocation);
  AddCompletionCommand(parser, invocation);
  AddManCommand(parser, invocation);
}

}  // namespace

std::string_view Version() { return PERSEUS_VERSION; }

Result<ParsedCommandLine> ParseCommandLine(const std::vector<std::string>& arguments, int columns) {
  Invocation invocation;
  CommandParser parser(&invocation);
  AddCommands(&parser, &invocation);
  return parser.Parse(arguments, columns);
}

CommandData DescribeCommandLine() {
  Invocation invocation;
  CommandParser parser(&invocation);
  AddCommands(&parser, &invocation);
  return parser.Describe();
}

}  // namespace perseus::cli
