// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How soon the detector finds a straggler, how soon it knows that it is over, and
// how often it is wrong, on simulated jobs: the table of docs/how-to/stragglers.md.

#include <fmt/format.h>

#include <cstdint>
#include <set>

#include "server/detect/straggler_detector.h"
#include "server/detection_series.h"

namespace perseus::server {
namespace {

constexpr int kJobs = 10;
constexpr int kQuietJobs = 60;  // Without any slow rank: for false alarms.
constexpr int kBegin = 1000;
constexpr int kEnd = 2000;
constexpr int kIterations = 3000;
constexpr double kIterationSeconds = 5;
constexpr int kSlowRank = 5;
constexpr int kSlowPipeline = 1;

struct Delays {
  int jobs_found = 0;
  int ranks_found = 0;
  int over = 0;
  int wrong = 0;
  double first_iterations = 0;
  double over_iterations = 0;
};

struct Case {
  double noise = 0;
  double correlation = 0;
  double shift = 0;
  bool whole_pipeline = false;

  bool IsSlow(const SimulatedJob& job, int rank) const {
    return whole_pipeline ? rank / job.stages == kSlowPipeline : rank == kSlowRank;
  }
};

void RunOne(std::uint64_t seed, const Case& of, Delays* delays) {
  SimulatedJob job(seed);
  job.noise = of.noise;
  job.correlation = of.correlation;
  job.outliers = 0.05;
  job.slowed = [&](int rank, int iteration) {
    return of.IsSlow(job, rank) && iteration >= kBegin && iteration < kEnd ? 1 + of.shift : 1.0;
  };
  StragglerDetector detector;
  std::set<int> found;
  std::set<int> over;
  for (const Finding& finding : FindIn(&detector, &job, 0, kIterations)) {
    const bool is_slow = finding.iteration >= kBegin && finding.iteration < kEnd;
    if (finding.kind == Finding::Kind::kStraggler) {
      if (!of.IsSlow(job, finding.rank) || !is_slow || of.shift == 0) {
        ++delays->wrong;
      } else {
        if (found.empty()) {
          delays->first_iterations += static_cast<double>(finding.iteration - kBegin + 1);
          ++delays->jobs_found;
        }
        delays->ranks_found += found.insert(finding.rank).second ? 1 : 0;
      }
    }
    if (finding.kind == Finding::Kind::kDrift) ++delays->wrong;
    if (finding.kind == Finding::Kind::kRecovered && found.contains(finding.rank) &&
        finding.iteration >= kEnd && over.insert(finding.rank).second) {
      ++delays->over;
      delays->over_iterations += static_cast<double>(finding.iteration - kEnd + 1);
    }
  }
}

Delays RunJobs(int jobs, const Case& of) {
  Delays delays;
  for (int seed = 0; seed < jobs; ++seed) RunOne(static_cast<std::uint64_t>(seed), of, &delays);
  return delays;
}

void RunAll() {
  fmt::print(
      "jobs of 8 ranks in 2 pipelines x {} iterations; 5 % of all values are outliers\n"
      "slow from {} to {}: jobs in which it is found (of {}), iterations until its first rank is, "
      "ranks found (of 1 or 4 a job), iterations until it is known to be over\n",
      kIterations, kBegin, kEnd, kJobs);
  for (const double noise : {0.003, 0.01, 0.02, 0.03, 0.1, 0.3}) {
    for (const double correlation : {0.0, 0.7}) {
      const Delays quiet = RunJobs(kQuietJobs, {noise, correlation});
      fmt::print("noise {:.1f} %, correlation {}: {} false alarms in {:.0f} hours of iterations\n",
                 100 * noise, correlation, quiet.wrong,
                 kQuietJobs * kIterations * kIterationSeconds / 3600);
      for (const bool whole_pipeline : {false, true}) {
        for (const double shift : {0.05, 0.07, 0.2, 0.5}) {
          const Delays delays = RunJobs(kJobs, {noise, correlation, shift, whole_pipeline});
          fmt::print(
              "  {} slower by {:2.0f} %: {:2} jobs, {:5.1f} iterations, {:2} ranks, over after "
              "{:5.1f}; {} false\n",
              whole_pipeline ? "pipeline" : "one rank", 100 * shift, delays.jobs_found,
              delays.jobs_found > 0 ? delays.first_iterations / delays.jobs_found : 0,
              delays.ranks_found, delays.over > 0 ? delays.over_iterations / delays.over : 0,
              delays.wrong);
        }
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
