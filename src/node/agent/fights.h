// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_FIGHTS_H_
#define PERSEUS_AGENT_FIGHTS_H_

#include <string>
#include <vector>

#include "device/device.h"

namespace perseus::agent {

// Sentences about conditions of a GPU that prevent it from following a plan's clocks, with advice.
// Reasons for throttling are included only while a clock is locked.
std::vector<std::string> FightsOf(const device::GpuConditions& conditions, bool is_locked);

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_FIGHTS_H_
