// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_COMMANDS_H_
#define PERSEUS_CLI_COMMANDS_H_

#include <string>

#include "cli/command_line.h"
#include "cli/framework/outputs.h"
#include "cli/framework/terminal.h"
#include "perseus/result.h"

namespace perseus::cli {

// Each runs one command to its end, writes the files that were asked for, and
// returns what belongs on standard output.
Result<Printout> RunPlan(const Invocation& invocation, const Style& style);
Result<Printout> RunFrontier(const Invocation& invocation, const Style& style);
Result<Printout> RunSchedule(const ScheduleFlags& flags);
Result<Printout> RunExplain(const ExplainFlags& flags, const Style& style);
Result<Printout> RunDiff(const DiffFlags& flags, const Style& style);
Result<Printout> RunCheck(const Invocation& invocation, const Style& style);
Result<Printout> RunEmulate(const Invocation& invocation, const Style& style);
Result<Printout> RunFleet(const FleetFlags& flags, const Style& style);
// `run` ends when a signal asks it to.
Result<Printout> RunAgent(const AgentFlags& flags, const Style& style);
Result<Printout> RunDoctor(const DoctorFlags& flags, const Style& style);
Result<Printout> RunSupportBundle(const SupportBundleFlags& flags, const Style& style);
Result<Printout> RunDemo(const DemoFlags& flags, const Style& style);
// Ends when a signal asks it to.
Result<Printout> RunServe(const ServeFlags& flags);
Result<Printout> RunStore(const StoreFlags& flags, const Style& style);
Result<Printout> RunJob(const JobClientFlags& flags, const Style& style);
Result<Printout> RunTop(const TopFlags& flags, const Style& style);
Result<Printout> RunProfile(const ProfileFlags& flags, const Style& style);
Result<Printout> RunReport(const ReportFlags& flags, const Style& style);
Result<Printout> RunCompletion(const std::string& shell);
Result<Printout> RunMan(const ManFlags& flags);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_COMMANDS_H_
