// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SERVER_DETECTION_SERIES_H_
#define PERSEUS_TESTS_SERVER_DETECTION_SERIES_H_

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "server/detect/straggler_detector.h"

namespace perseus::server {

// A simulated job: ranks whose busy times are their plan's times noise, which may
// last (AR(1)), with outliers, tokens and whatever else a test adds.
struct SimulatedJob {
  int ranks = 8;
  int stages = 4;
  double noise = 0.01;
  double correlation = 0;
  double outliers = 0;      // Share of iterations of a rank.
  double outlier_size = 3;  // Times as long.
  double token_spread = 0;  // 0.5: 0.5 to 1.5 times the usual, each rank its own.
  // By how much more a rank takes at an iteration: 1 is nothing.
  std::function<double(int rank, int iteration)> slowed = [](int, int) { return 1.0; };

  explicit SimulatedJob(std::uint64_t seed) : random(seed) {}

  std::vector<RankIteration> Iterate(int iteration) {
    std::vector<RankIteration> reports;
    double tokens_of_all = 0;
    if (state.empty()) state.assign(static_cast<std::size_t>(ranks), 0.0);
    for (int rank = 0; rank < ranks; ++rank) {
      double& own = state[static_cast<std::size_t>(rank)];
      own = correlation * own + std::sqrt(1 - correlation * correlation) * normal(random);
      const double tokens = 1 + token_spread * (2 * uniform(random) - 1);
      double factor = std::exp(noise * own) * slowed(rank, iteration) * tokens;
      if (uniform(random) < outliers) factor *= outlier_size;
      RankIteration report{.rank = rank, .pp_rank = rank % stages, .pipeline = rank / stages};
      report.expected_by_type = {0.4, 0.6, 0, 0};
      report.expected_busy_seconds = 1;
      report.expected_time_seconds = 2;
      // Whoever made the profile was 1 % off for each rank after the other.
      report.busy_by_type = {0.4 * factor * (1 + 0.01 * rank), 0.6 * factor * (1 + 0.01 * rank), 0,
                             0};
      report.busy_seconds = report.busy_by_type[0] + report.busy_by_type[1];
      report.time_seconds = 2;
      if (token_spread > 0) report.tokens = 4096 * tokens;
      tokens_of_all += tokens;
      reports.push_back(report);
    }
    for (RankIteration& report : reports) report.time_seconds *= tokens_of_all / ranks;
    return reports;
  }

  std::mt19937_64 random;
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<double> state;
};

// Everything that is found in iterations `from` to `to`.
inline std::vector<Finding> FindIn(StragglerDetector* detector, SimulatedJob* job, int from,
                                   int to) {
  std::vector<Finding> found;
  for (int iteration = from; iteration < to; ++iteration) {
    for (const Finding& finding : detector->Add(iteration, job->Iterate(iteration))) {
      found.push_back(finding);
    }
  }
  return found;
}

}  // namespace perseus::server

#endif  // PERSEUS_TESTS_SERVER_DETECTION_SERIES_H_
