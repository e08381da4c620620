// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_CHECK_SPEC_H_
#define PERSEUS_EMULATE_CHECK_SPEC_H_

#include <cstdint>

#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/result.h"

namespace perseus::emulate {

// Limit of ranks over all pipelines. Each needs about 100 bytes.
inline constexpr std::int64_t kMostRanks = 4'000'000;
// Limits of the values in a power trace. If the user gave no interval, it is lengthened so that the
// trace has at most the first number.
inline constexpr std::int64_t kAdvisedPowerValues = 1'000'000;
inline constexpr std::int64_t kMostPowerValues = 10'000'000;
// Limit of all times in the input.
inline constexpr double kMostSeconds = 1e9;

// kInvalidInput: a number is out of range; the message names it.
Result<void> CheckSpec(const CostedPipeline& pipeline, const EmulationSpec& spec);

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_CHECK_SPEC_H_
