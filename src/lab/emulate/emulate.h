// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_EMULATE_H_
#define PERSEUS_EMULATE_EMULATE_H_

#include <cstddef>

#include "perseus/emulator.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/result.h"

namespace perseus::emulate {

// What is kept of replays and plans, so as not to make them again.
inline constexpr std::size_t kMostKeptBytes = std::size_t{128} << 20;

// Emulate() with a bound of one's own on what is kept of replays, and of plans
// that are not in use. It changes no number but Emulation::replayed_pipelines.
Result<Emulation> EmulateWithin(std::size_t most_kept_bytes, const Planner& planner,
                                const Policy& policy, const EmulationSpec& spec,
                                const ProgressFunction& progress);

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_EMULATE_H_
