// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_CHECK_SPEC_H_
#define PERSEUS_EMULATE_CHECK_SPEC_H_

#include <cstdint>

#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/result.h"

namespace perseus::emulate {

// Ranks of all pipelines together: each has a state of some 100 bytes.
inline constexpr std::int64_t kMostRanks = 4'000'000;
// Values of a power trace. Where the user gave no interval it is lengthened
// before the trace has more than the first.
inline constexpr std::int64_t kAdvisedPowerValues = 1'000'000;
inline constexpr std::int64_t kMostPowerValues = 10'000'000;
// Seconds that an input may have.
inline constexpr double kMostSeconds = 1e9;

// kInvalidInput, and which number it is, where one is out of range.
Result<void> CheckSpec(const CostedPipeline& pipeline, const EmulationSpec& spec);

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_CHECK_SPEC_H_
