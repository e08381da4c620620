// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_DOCTOR_CONDITIONS_H_
#define PERSEUS_CLI_NODE_DOCTOR_CONDITIONS_H_

#include <string>

#include "cli/node/doctor_examination.h"
#include "perseus/result.h"

namespace perseus::cli {

// The table [conditions] of a job file with what was measured of the node's clocks. Empty: nobody
// saw when a clock was in effect.
std::string ConditionsFile(const Examination& examination);

// Writes it into this file, and adds a finding that says so, or a fault that says why not. Fails if
// the file cannot be written.
Result<void> WriteConditions(const std::string& path, Examination* examination);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_DOCTOR_CONDITIONS_H_
