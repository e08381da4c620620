// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_RELEASE_H_
#define PERSEUS_AGENT_RELEASE_H_

#include <chrono>
#include <memory>
#include <string>

#include "agent/protocol.h"
#include "device/device.h"
#include "perseus/result.h"

namespace perseus::agent {

// Which clocks are to be given back.
struct ReleaseScope {
  std::string gpu;             // A UUID, or an index of the driver; empty: all GPUs of the node.
  bool journaled = false;      // Only those that the journal of a dead agent names.
  std::string gpu_locks = {};  // The folder of GpuClaim; empty: nobody is looked for.
};

// Over the socket of a running agent, which itself waits 5 s for its drivers: `patience`
// is to be longer. kIo: none answers, then it can be done directly.
// kDenied, kInvalidInput: it refuses.
Result<ReleaseAllAnswer> ReleaseThroughAgent(const std::string& socket_path,
                                             const ReleaseScope& scope,
                                             std::chrono::milliseconds patience);

// Whether the journal of a dead agent names GPUs, or cannot be read; false also
// where there is no journal. kIo: a living agent has it.
Result<bool> JournalNamesGpus(const std::string& journal_path);

// On the driver, all GPUs at once; those that answer in time are struck from the
// journal, if no agent has it. `journaled` leaves alone what another agent has. Errors: no
// right to set clocks (kDenied), no such GPU.
Result<ReleaseAllAnswer> ReleaseDirectly(const std::shared_ptr<device::Driver>& driver,
                                         const std::string& journal_path, const ReleaseScope& scope,
                                         std::chrono::milliseconds patience);

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_RELEASE_H_
