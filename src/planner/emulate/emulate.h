// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_EMULATE_H_
#define PERSEUS_EMULATE_EMULATE_H_

#include <cstddef>

#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/result.h"

namespace perseus::emulate {

// Memory limit for replays and plans that are kept for reuse.
inline constexpr std::size_t kMostKeptBytes = std::size_t{128} << 20;

// Emulate() with another memory limit for replays and for plans that are not in use. The limit
// changes no result except Emulation::replayed_pipelines.
Result<Emulation> EmulateWithin(std::size_t most_kept_bytes, const Planner& planner,
                                const Policy& policy, const EmulationSpec& spec,
                                const ProgressFunction& progress);

// Errors name the number that is out of range.
Result<void> CheckSpec(const CostedPipeline& pipeline, const EmulationSpec& spec);

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_EMULATE_H_
