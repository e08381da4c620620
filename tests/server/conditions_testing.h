// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SERVER_CONDITIONS_TESTING_H_
#define PERSEUS_TESTS_SERVER_CONDITIONS_TESTING_H_

#include "server/detect/conditions_watch.h"

namespace perseus::server {

// Seconds since the last plans, after which others may come.
inline constexpr double kLongSincePlans = 1e6;

// What a rank tells of such noise and latency, without errors.
inline RankConditions Measured(double noise, double latency) {
  return {.noise_variance = RankFigure{noise * noise, 0.1 * noise * noise},
          .rank_noise_variance = RankFigure{0, 0.01 * noise * noise},
          .noise_correlation = RankFigure{0, 0.03},
          .latency_seconds = RankFigure{latency, 0.0003},
          .latency_spread_seconds = RankFigure{0.001, 0.0001},
          .iterations = 100,
          .computations = 3000,
          .calls = 64};
}

}  // namespace perseus::server

#endif  // PERSEUS_TESTS_SERVER_CONDITIONS_TESTING_H_
