// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_COMMANDS_H_
#define PERSEUS_CLI_COMMANDS_H_

#include <string>

#include "cli/command_line.h"
#include "cli/terminal.h"
#include "perseus/result.h"

namespace perseus::cli {

// Each runs one command to its end, writes the files that were asked for, and
// returns what belongs on standard output.
Result<std::string> RunPlan(const Invocation& invocation, const Style& style);
Result<std::string> RunFrontier(const Invocation& invocation, const Style& style);
Result<std::string> RunSchedule(const ScheduleFlags& flags);
Result<std::string> RunExplain(const ExplainFlags& flags, const Style& style);
Result<std::string> RunSynth(const SynthFlags& flags, const Style& style);
Result<std::string> RunEmulate(const Invocation& invocation, const Style& style);
Result<std::string> RunEvaluate(const EvaluateFlags& flags);
Result<std::string> RunCompletion(const std::string& shell);
Result<std::string> RunMan();

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_COMMANDS_H_
