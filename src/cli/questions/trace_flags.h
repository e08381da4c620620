// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_QUESTIONS_TRACE_FLAGS_H_
#define PERSEUS_CLI_QUESTIONS_TRACE_FLAGS_H_

#include <optional>
#include <string>

namespace perseus::cli {

struct TraceFlags {
  std::string input;
  std::string profile;  // Empty: no energies.
  bool strict = false;  // Of the profile.
  bool accept_implausible = false;
  std::optional<double> blocking_power_watts;
  std::optional<int> gpus_per_rank;
  int detector_steps = 12;
  std::optional<double> effort;
  std::string output_directory;
  bool json = false;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_QUESTIONS_TRACE_FLAGS_H_
