// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_COMMANDS_H_
#define PERSEUS_CLI_COMMANDS_H_

#include <optional>
#include <string>

#include "cli/command_line.h"
#include "cli/framework/command_parser.h"
#include "cli/framework/terminal.h"
#include "common/labels.h"
#include "perseus/result.h"

namespace perseus::cli {

// Functions of the files of commands, for the table of command_line.cc. These run a command:
Result<Printout> RunPlan(const Invocation& invocation, const Style& style);
Result<Printout> RunFrontier(const Invocation& invocation, const Style& style);
Result<Printout> RunSchedule(const ScheduleFlags& flags);
Result<Printout> RunExplain(const ExplainFlags& flags, const Style& style);
Result<Printout> RunDiff(const DiffFlags& flags, const Style& style);
Result<Printout> RunCheck(const Invocation& invocation, const Style& style);
Result<Printout> RunEmulate(const Invocation& invocation, const Style& style);
Result<Printout> RunFleet(const FleetFlags& flags, const Style& style);
Result<Printout> RunAgent(const AgentFlags& flags, const Style& style);
Result<Printout> RunDoctor(const DoctorFlags& flags, const Style& style);
Result<Printout> RunSupportBundle(const SupportBundleFlags& flags, const Style& style);
Result<Printout> RunDemo(const DemoFlags& flags, const Style& style);
Result<Printout> RunServe(const ServeFlags& flags);
Result<Printout> RunStore(const StoreFlags& flags, const Style& style);
Result<Printout> RunJob(const JobClientFlags& flags, const Style& style);
Result<Printout> RunTop(const TopFlags& flags, const Style& style);
Result<Printout> RunProfile(const ProfileFlags& flags, const Style& style);
Result<Printout> RunReport(const ReportFlags& flags, const Style& style);
Result<Printout> RunCompletion(const std::string& shell);
Result<Printout> RunMan(const ManFlags& flags);

// These add a command with its options, which are kept in `invocation`:
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
                          "The server: http://HOST:PORT, https://HOST:PORT or unix:PATH; several, "
                          "of which one is active, with commas.");

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

#endif  // PERSEUS_CLI_COMMANDS_H_
