// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_JOB_FLAGS_H_
#define PERSEUS_CLI_PLANNING_JOB_FLAGS_H_

#include <string>
#include <string_view>

namespace perseus::cli {

// The flag of a job's field: "--blocking-power" of "blocking_power". Empty
// where there is none.
std::string_view FlagOfField(std::string_view key);

// How a command line says that what is implausible is meant: "give --accept-implausible".
std::string AcceptingFlag();

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_JOB_FLAGS_H_
