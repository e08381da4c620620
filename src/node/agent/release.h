// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_RELEASE_H_
#define PERSEUS_AGENT_RELEASE_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "agent/journal.h"
#include "agent/protocol.h"
#include "common/log.h"
#include "device/device.h"
#include "perseus/result.h"

// Gives back clocks that no living owner has.
namespace perseus::agent {

// Which clocks to give back.
struct ReleaseScope {
  std::string gpu;             // A UUID, or an index of the driver; empty: all GPUs of the node.
  bool journaled = false;      // Only clocks that the journal of a dead agent names.
  std::string gpu_locks = {};  // The folder of GpuClaim; empty: do not look for other agents.
};

// Asks a running agent over its socket. The agent waits up to 5 s for its drivers, so `patience`
// must be longer. kIo: no agent answers; use ReleaseDirectly() then. kDenied, kInvalidInput: the
// agent refuses.
Result<ReleaseAllAnswer> ReleaseThroughAgent(const std::string& socket_path,
                                             const ReleaseScope& scope,
                                             std::chrono::milliseconds patience);

// Whether the journal of a dead agent names GPUs or cannot be read. False: there is no journal, or
// it is empty. kIo: a running agent has it.
Result<bool> JournalNamesGpus(const std::string& journal_path);

// Calls the driver for all GPUs at the same time. Removes GPUs that succeed in time from the
// journal, unless an agent has it. With `journaled`, it skips GPUs that another agent owns. Errors:
// no right to set clocks (kDenied), no such GPU.
Result<ReleaseAllAnswer> ReleaseDirectly(const std::shared_ptr<device::Driver>& driver,
                                         const std::string& journal_path, const ReleaseScope& scope,
                                         std::chrono::milliseconds patience);

// State that an agent takes over from its predecessor.
struct Takeover {
  std::unique_ptr<Journal> journal;
  // For each GPU of the driver:
  std::vector<std::shared_ptr<GpuClaim>> claims;
  std::vector<bool> is_dirty;  // Its clock may be locked.
};

// Opens the journal, repairs it if necessary, and claims all GPUs (GpuClaim). kConflict: another
// agent owns one of them. kIo: the journal cannot be written, so the agent cannot start; the clocks
// that it names are given back first, within `patience`.
Result<Takeover> TakeOver(const std::string& journal_path, const std::string& gpu_locks,
                          const std::shared_ptr<device::Driver>& driver,
                          std::chrono::milliseconds patience, Log* log);

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_RELEASE_H_
