// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_COMMAND_OPTIONS_H_
#define PERSEUS_CLI_COMMAND_OPTIONS_H_

#include <optional>
#include <string>

#include "cli/command_line.h"
#include "cli/framework/command_parser.h"
#include "common/labels.h"

namespace perseus::cli {

// The limits of flags (docs/reference/files.md).
// Each adds one command with its options, which are kept in `invocation`.
void AddPlanCommand(CommandParser* parser, Invocation* invocation);
void AddFrontierCommand(CommandParser* parser, Invocation* invocation);
void AddScheduleCommand(CommandParser* parser, Invocation* invocation);
void AddExplainCommand(CommandParser* parser, Invocation* invocation);
void AddDiffCommand(CommandParser* parser, Invocation* invocation);
void AddCheckCommand(CommandParser* parser, Invocation* invocation);
void AddEmulateCommand(CommandParser* parser, Invocation* invocation);
void AddFleetCommand(CommandParser* parser, Invocation* invocation);
void AddAgentCommand(CommandParser* parser, Invocation* invocation);
void AddDoctorCommand(CommandParser* parser, Invocation* invocation);
void AddSupportBundleCommand(CommandParser* parser, Invocation* invocation);
void AddDemoCommand(CommandParser* parser, Invocation* invocation);
void AddServeCommand(CommandParser* parser, Invocation* invocation);
void AddStoreCommand(CommandParser* parser, Invocation* invocation);
void AddJobCommand(CommandParser* parser, Invocation* invocation);
void AddTopCommand(CommandParser* parser, Invocation* invocation);
void AddProfileCommand(CommandParser* parser, Invocation* invocation);
void AddReportCommand(CommandParser* parser, Invocation* invocation);
void AddCompletionCommand(CommandParser* parser, Invocation* invocation);
void AddManCommand(CommandParser* parser, Invocation* invocation);

// Options of all clients of a server. `server_help`: the help of --server.
void AddServerOptions(CommandParser* parser, ServerFlags* flags,
                      const std::string& server_help =
                          "The server: http://HOST:PORT, https://HOST:PORT or "
                          "unix:PATH.");

// --driver and --socket: where to look at a node.
void AddNodeOptions(CommandParser* parser, std::string* driver, std::string* agent_socket);

// --label NAME=VALUE, which may be given several times.
void AddLabelOption(CommandParser* parser, JobLabels* labels, const std::string& help);

// Options that commands share. `dp_help`: the help of --dp.
void AddPipelineOptions(CommandParser* parser, JobFlags* job, const std::string& dp_help);
void AddPlanOptions(CommandParser* parser, JobFlags* job, const std::string& effort_help);
// Noise and late clocks: a job's conditions.
void AddConditionOptions(CommandParser* parser, JobFlags* job);
// Trade-offs of a plan under conditions.
void AddRobustOptions(CommandParser* parser, JobFlags* job);
void AddSolverOptions(CommandParser* parser, JobFlags* job);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_COMMAND_OPTIONS_H_
