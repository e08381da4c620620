// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_GPU_LOCKS_H_
#define PERSEUS_CLI_NODE_GPU_LOCKS_H_

#include <string>
#include <string_view>

#include "agent/agent.h"

namespace perseus::cli {

// The folder of an agent's lock files, where none is given. Simulated GPUs belong to their file,
// and whoever can write that.
inline std::string GpuLocksOf(const std::string& driver) {
  constexpr std::string_view kSimulated = "simulated:";
  if (!driver.starts_with(kSimulated)) return agent::kDefaultGpuLocks;
  return driver.substr(kSimulated.size()) + ".locks";
}

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_GPU_LOCKS_H_
