// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_INPUT_LIMITS_H_
#define PERSEUS_COMMON_INPUT_LIMITS_H_

#include <cstdint>

// Limits of numbers that several rooms read or check. Errors name them, so callers need no
// constant.
namespace perseus {

// How many times as much work as the profile's a computation may be: sums stay finite.
inline constexpr double kLeastWork = 1e-6;
inline constexpr double kMostWork = 1e6;

// A relative standard deviation.
inline constexpr double kMostNoise = 0.25;

// Half the sampling rate of the longest jobs whose power is followed.
inline constexpr double kMostBandHz = 25;
inline constexpr double kMostRampWattsPerSecond = 1e15;

// Of one emulation; a record of 64 bytes is kept of each.
inline constexpr std::int64_t kMaxIterations = 10'000'000;

}  // namespace perseus

#endif  // PERSEUS_COMMON_INPUT_LIMITS_H_
