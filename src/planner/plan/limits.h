// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_LIMITS_H_
#define PERSEUS_PLAN_LIMITS_H_

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace perseus::plan {

// The most computations of one plan. More would not fit the memory of most machines (about 1.3 kB
// each).
inline constexpr std::int64_t kMostComputations = 1'000'000;

// The most time and memory of a frontier, as estimated.
inline constexpr double kMostFrontierSeconds = 3600;
inline constexpr double kMostFrontierBytes = 16.0 * (1 << 30);

inline std::string TooManyToPlan(std::int64_t computations) {
  return fmt::format(
      "this pipeline has {} computations in an iteration, and a plan is made for at most {}: a "
      "frontier of more takes hours and many GB; plan fewer microbatches, of which the steady ones "
      "repeat",
      computations, kMostComputations);
}

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_LIMITS_H_
