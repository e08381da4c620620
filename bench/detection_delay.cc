// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How soon the detector finds a straggler, how soon it knows that it is over, and
// how often it is wrong, on simulated jobs: the table of docs/stragglers.md.

#include <fmt/format.h>

#include <cstdint>

#include "server/detection_series.h"
#include "server/watch/straggler_detector.h"

namespace perseus::server {
namespace {

constexpr int kJobs = 20;
constexpr int kBegin = 1000;
constexpr int kEnd = 2000;
constexpr int kIterations = 3000;
constexpr int kSlowRank = 5;

struct Delays {
  int found = 0;
  int over = 0;
  int wrong = 0;
  double found_iterations = 0;
  double over_iterations = 0;
};

void RunOne(std::uint64_t seed, double noise, double correlation, double shift, Delays* delays) {
  SimulatedJob job(seed);
  job.noise = noise;
  job.correlation = correlation;
  job.outliers = 0.05;
  job.slowed = [=](int rank, int iteration) {
    return rank == kSlowRank && iteration >= kBegin && iteration < kEnd ? 1 + shift : 1.0;
  };
  StragglerDetector detector;
  bool found = false;
  bool over = false;
  for (const Finding& finding : FindIn(&detector, &job, 0, kIterations)) {
    const bool is_slow = finding.iteration >= kBegin && finding.iteration < kEnd;
    if (finding.kind == Finding::Kind::kStraggler) {
      if (finding.rank != kSlowRank || !is_slow || shift == 0) {
        ++delays->wrong;
      } else if (!found) {
        found = true;
        ++delays->found;
        delays->found_iterations += static_cast<double>(finding.iteration - kBegin + 1);
      }
    }
    if (finding.kind == Finding::Kind::kDrift) ++delays->wrong;
    if (finding.kind == Finding::Kind::kRecovered && finding.rank == kSlowRank && found && !over &&
        finding.iteration >= kEnd) {
      over = true;
      ++delays->over;
      delays->over_iterations += static_cast<double>(finding.iteration - kEnd + 1);
    }
  }
}

void RunAll() {
  fmt::print("{} jobs of 8 ranks x {} iterations; slow from {} to {}\n", kJobs, kIterations, kBegin,
             kEnd);
  for (const double noise : {0.003, 0.01, 0.03, 0.1, 0.3}) {
    for (const double correlation : {0.0, 0.7}) {
      for (const double shift : {0.0, 0.07, 0.2, 0.5}) {
        Delays delays;
        for (int seed = 0; seed < kJobs; ++seed) {
          RunOne(static_cast<std::uint64_t>(seed), noise, correlation, shift, &delays);
        }
        fmt::print(
            "noise {:4.1f} % (correlation {}), slower by {:2.0f} %: found in {:2} after {:5.1f} "
            "iterations, over in {:2} after {:5.1f}; {} false\n",
            100 * noise, correlation, 100 * shift, delays.found,
            delays.found > 0 ? delays.found_iterations / delays.found : 0, delays.over,
            delays.over > 0 ? delays.over_iterations / delays.over : 0, delays.wrong);
      }
    }
  }
}

}  // namespace
}  // namespace perseus::server

int main() {
  perseus::server::RunAll();
  return 0;
}
