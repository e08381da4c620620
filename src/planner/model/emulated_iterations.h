// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_EMULATED_ITERATIONS_H_
#define PERSEUS_MODEL_EMULATED_ITERATIONS_H_

#include <algorithm>
#include <cstdint>

namespace perseus::model {

// Default of `perseus emulate`, and the number behind the figures that `perseus plan` shows.
inline constexpr std::int64_t kIterationsOfEmulate = 100;
inline constexpr std::int64_t kIterationsOfPlan = 200;

// How many iterations an emulation of a plan runs (ExpectedFigures::iterations): `most`, or fewer
// for large pipelines, to limit the work.
inline std::int64_t EmulatedIterations(int computations, int pipelines, std::int64_t most) {
  constexpr std::int64_t kLeast = 10;
  constexpr double kMostComputations = 4e6;  // Limit of replayed computations per plan and seed.
  const double each = static_cast<double>(computations) * pipelines;
  return std::clamp(static_cast<std::int64_t>(kMostComputations / each), kLeast, most);
}

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_EMULATED_ITERATIONS_H_
