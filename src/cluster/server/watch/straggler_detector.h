// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_WATCH_STRAGGLER_DETECTOR_H_
#define PERSEUS_SERVER_WATCH_STRAGGLER_DETECTOR_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perseus/computation.h"
#include "server/watch/shift_detector.h"

namespace perseus::server {

using SecondsByType = std::array<double, kNumComputationTypes>;

// What one rank did in one iteration, and what its plan says of it.
struct RankIteration {
  int rank = 0;
  int pp_rank = 0;
  int pipeline = -1;  // -1: not known.
  double time_seconds = 0;
  double busy_seconds = 0;           // In its own computations; 0: not said.
  double expected_busy_seconds = 0;  // By its plan; 0: not known, so no data.
  double expected_time_seconds = 0;  // Of the job's iteration, by the plans.
  SecondsByType busy_by_type = {};
  SecondsByType expected_by_type = {};
  double tokens = 0;        // 0: not said.
  std::int64_t regime = 0;  // Which plan; how good it predicts differs among plans.
};

struct Finding {
  enum class Kind : std::uint8_t {
    kStraggler,  // A rank got slow, for good.
    kFactor,     // It is so slow now.
    kRecovered,  // It is as before.
    kDrift,      // Nearly all ranks got slow together.
    kDriftOver,
    kSlowIterations,  // Iterations take longer than planned,
    kIterationsWell,  // or as planned again.
  };
  Kind kind = Kind::kStraggler;
  int rank = -1;      // Of the first three.
  double factor = 1;  // By which computations (iterations) take longer.
  std::int64_t iteration = 0;
  int delay_iterations = 0;  // Since the shift seems to have begun, that one included.
  // The type that makes up 80 % of a straggler's slowdown; none where all are
  // slow alike (`all_types`) or nobody knows.
  std::optional<ComputationType> type = {};
  bool all_types = false;
  // The ranks of its pipeline that are slow now, where they are several: they are one cause.
  int together = 0;
  bool is_of_told_cause = false;  // That was told of another of them, at this iteration or before.
  // Of slow iterations: the share of them that is spent outside of computations.
  double waiting_share = 0;
};

// A rank that is slow now.
struct SlowRank {
  double factor = 1;
  double reference = 0;  // As Adopt() takes it.
  std::int64_t since_iteration = 0;
  bool adopted = false;
};

// Finds stragglers in what the ranks of one job report. A pure state machine over
// complete iterations; not thread-safe.
//
// A rank is held against itself: the logarithm of its busy time over its plan's,
// less that of its tokens where the trainer says them, less its reference, which
// is the median of its first iterations (one window, or several where they are noisy). (Waiting is
// not in it: a rank that waits for a straggler is no straggler.) From that goes what nearly all
// ranks share at that iteration (the lower quartile over ranks, where it is above 0): a power cap
// or a driver slows all, which is drift. A ShiftDetector watches the rest.
//
// What slows a whole pipeline (its node, its network) slows each of its ranks too little to be
// told from noise soon: another ShiftDetector watches the median over each pipeline's ranks.
// When that one is sure, its ranks that look slow by their windows are told, and together.
//
// References are learned again, but never so fast that a slow drift hides: up by a
// threshold in 5,000 iterations, and by one threshold in all; down ten times as fast
// where the rank is faster by more than half a threshold.
// A rank that is slow from its first iteration is found where its stage's other
// ranks are not: its reference is half a threshold above theirs at most. Under a plan
// that it has not run before, a rank's reference may move by half a threshold,
// as profiles are not exact.
class StragglerDetector {
 public:
  // At the next iteration; what is known stays.
  void Set(const ShiftSettings& settings) { settings_ = settings; }

  // Ranks of which nothing is known (0 expected or busy) are left out.
  std::vector<Finding> Add(std::int64_t iteration, const std::vector<RankIteration>& ranks);

  // The rank `number` was found slow before a restart; its reference of then.
  void Adopt(int number, double factor, double reference);
  // Nothing is known of that rank any more.
  void Drop(int number);
  // Begins anew, as after another shape of the iteration.
  void Reset();

  std::map<int, SlowRank> SlowRanks() const;
  std::size_t learned() const { return learned_; }  // Ranks that are watched.
  double drift_factor() const;                      // 1: none.
  double slow_factor() const;                       // Of iterations; 1: as planned.

 private:
  struct Rank {
    bool learned = false;
    bool has_tokens = false;
    bool adopted = false;
    std::vector<float> first;  // Log ratios while learning, then of a new regime.
    std::array<std::vector<float>, kNumComputationTypes> newest;  // Rings by type.
    SecondsByType type_reference = {};
    std::size_t next = 0;
    double reference = 0;
    double first_reference = 0;
    double recent = 0;                      // Mean deviation of the last iterations.
    std::map<std::int64_t, double> biases;  // By regime.
    std::int64_t new_regime = kNoRegime;    // Being learned.
    std::int64_t slow_since = 0;
    int pp_rank = 0;
    int pipeline = -1;
    ShiftDetector shift;
  };
  struct Pipeline {
    ShiftDetector shift;
    bool is_told = false;  // Some of its ranks are slow, and that was told.
  };
  struct Deviation {
    Rank* rank = nullptr;
    int number = 0;
    std::int64_t regime = 0;
    double value = 0;
    const RankIteration* seen = nullptr;
  };
  static constexpr std::int64_t kNoRegime = -1;

  std::optional<Deviation> Read(const RankIteration& seen);
  void Remember(Rank* rank, const RankIteration& seen);
  void FinishLearning();
  bool IsLearned(std::vector<float> seen) const;
  double Shared(const std::vector<Deviation>& deviations) const;
  void WatchPipelines(std::int64_t iteration, const std::vector<Deviation>& own,
                      std::vector<Finding>* findings);
  Finding Straggler(const Deviation& deviation, std::int64_t iteration) const;
  void NameCauses(std::vector<Finding>* findings);
  void LearnRegime(Rank* rank, std::int64_t regime, double deviation);
  void Relearn(Rank* rank, double deviation) const;
  void NameType(const Rank& rank, const RankIteration& seen, Finding* finding) const;
  void WatchIterations(std::int64_t iteration, const std::vector<RankIteration>& ranks,
                       std::vector<Finding>* findings);

  ShiftSettings settings_;
  std::map<int, Rank> ranks_;
  std::map<int, Pipeline> pipelines_;
  std::size_t learned_ = 0;
  double token_scale_ = 0;  // Tokens of the first iteration that had any; only a unit.
  ShiftDetector drift_;
  ShiftDetector slow_;
  std::vector<float> first_times_;
  std::vector<float> first_waits_;
  double time_reference_ = 0;
  double wait_reference_ = 0;
  std::vector<float> waits_;  // Ring: share of the planned time that is not busy.
  std::size_t next_wait_ = 0;
  bool times_learned_ = false;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_WATCH_STRAGGLER_DETECTOR_H_
