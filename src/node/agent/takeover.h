// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_TAKEOVER_H_
#define PERSEUS_AGENT_TAKEOVER_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "agent/gpu_claim.h"
#include "agent/journal.h"
#include "common/log.h"
#include "device/device.h"
#include "perseus/result.h"

namespace perseus::agent {

// What an agent takes over from the one before it.
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

#endif  // PERSEUS_AGENT_TAKEOVER_H_
