// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_CONDITIONS_OF_H_
#define PERSEUS_CLI_PLANNING_CONDITIONS_OF_H_

#include <string>

#include "cli/framework/server_flags.h"
#include "perseus/job_file.h"
#include "perseus/result.h"

namespace perseus::cli {

// Sets the noise and the latency that a job of a server measured, or that a profile of its library
// has from the jobs that used it, where the settings say nothing. Fails if there is nothing.
Result<void> TakeConditionsOf(const std::string& name, const ServerFlags& server,
                              JobFile* settings);

// The same for the table [conditions] of this file, which may hold nothing else.
Result<void> TakeConditionsFrom(const std::string& path, JobFile* settings);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_CONDITIONS_OF_H_
