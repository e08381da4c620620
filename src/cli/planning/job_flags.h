// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_JOB_FLAGS_H_
#define PERSEUS_CLI_PLANNING_JOB_FLAGS_H_

#include <string_view>

namespace perseus::cli {

// The flag of a job's field: "--blocking-power" of "blocking_power". Empty
// where there is none.
std::string_view FlagOfField(std::string_view key);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_JOB_FLAGS_H_
