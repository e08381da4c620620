// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_TAKEOVER_H_
#define PERSEUS_AGENT_TAKEOVER_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "agent/journal.h"
#include "common/log.h"
#include "device/device.h"
#include "perseus/result.h"

namespace perseus::agent {

// What an agent has from the one before it.
struct Takeover {
  std::unique_ptr<Journal> journal;
  std::vector<bool> is_dirty;  // Of each GPU of the driver: its clock may be locked.
};

// Opens the journal, and makes it fit to be written. Where it cannot be written (kIo) no agent
// can start, so the clocks that it names are given back first, within `patience`.
Result<Takeover> TakeOver(const std::string& journal_path,
                          const std::shared_ptr<device::Driver>& driver,
                          std::chrono::milliseconds patience, Log* log);

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_TAKEOVER_H_
