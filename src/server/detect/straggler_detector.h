// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_STRAGGLER_DETECTOR_H_
#define PERSEUS_SERVER_DETECT_STRAGGLER_DETECTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perseus/computation.h"
#include "server/domain/watch_settings.h"
#include "wire/reports.h"

namespace perseus::server {

// The quantile of the standard normal distribution at `p`, to 0.01 for p from 0.03 to 0.97 (an
// approximation by Tukey's lambda distribution).
double NormalQuantile(double p);

// Detects when a noisy series around 0 shifts upwards for good, and when the shift ends. The values
// are logarithms of ratios: 0.18 is 20 % slower.
//
// A shift is reported when three conditions hold:
//   - The median of the last `window` values is above three quarters of the threshold, and so is
//     the median of the newest three quarters of these values. (The limit is not the threshold
//     itself: if the shift equals the threshold, the median is above it only half the time.)
//   - Three quarters of these values are above half the threshold. This sign test excludes large
//     values that come only now and then.
//   - A CUSUM test reaches its limit. A single value counts as at most three standard deviations.
//     Siegmund's approximation sets the limit, so that a series without shift gives one false
//     alarm in 10^10 values. The standard deviation is increased if noise is correlated in time.
//     Three such tests run at once, for shifts of about 1, 4 and 16 times the threshold.
// A shift ends when the same CUSUM finds the series nearer to 0 than to the shift's level, and the
// whole newest quarter of the window is below half the threshold. That is quick, because a slow
// rank is not fast by chance, and a job wastes time while it allows for a straggler that is gone.
// If the series shifts again within eight windows, the next shift ends only after one window
// without it, then after two, four and eight windows. So a shift that comes and goes is reported
// twice and not every time. While a shift lasts, its level is updated when it is wrong by half the
// threshold.
// If noise is large, half of its deviation replaces the threshold, because no smaller shift can be
// distinguished from noise.
//
// Source: Page, "Continuous inspection schemes", Biometrika 41 (1954); Siegmund,
// "Sequential Analysis" (1985), 2.6. A value; not thread-safe.
class ShiftDetector {
 public:
  enum class Change : std::uint8_t { kNone, kShifted, kMoved, kRecovered };

  // Estimates the noise from values seen before the first Add(). Uses the newest of them.
  void Learn(std::span<const float> deviations);

  Change Add(double deviation, const ShiftSettings& settings);

  // Subtracts `by` from all values in the window, because their reference has changed.
  void Rebase(double by);

  // Restores a shift after a restart.
  void SetShifted(double level);

  bool shifted() const { return shifted_; }
  double level() const { return shifted_ ? level_ : 0; }
  // Whether the window alone suggests a shift, for callers that have other evidence: the medians
  // are above three quarters of the threshold, or above the limit that large noise sets instead.
  bool LooksShifted(const ShiftSettings& settings) const;
  // Starts a shift because of other evidence.
  void TellShift(const ShiftSettings& settings);
  // Ends the shift because of other evidence.
  void EndShift();
  // The shift of another series with the same cause has ended. If this series shifts next, that
  // counts as a return of that shift.
  void ShareHold(const ShiftDetector& other);
  // Number of values since the shift probably began, including the last one.
  int since() const { return since_; }
  // Robust estimate of the standard deviation of one value.
  double noise() const { return seen_noise_; }
  // Upper limit of the standard deviation for sums of values, which includes correlation in time.
  double lasting_noise() const { return lasting_noise_; }

 private:
  static constexpr std::size_t kNoiseValues = 64;
  // No shift is reported before there are this many values, or a window if that is shorter.
  static constexpr std::size_t kLeastNoiseValues = 16;
  static constexpr int kTests = 3;
  static constexpr std::int64_t kNoShift = std::int64_t{1} << 62;

  void Push(float value, std::size_t window);
  void Older(float value);
  void EstimateNoise();
  double Limit(double reference) const;
  double Threshold(const ShiftSettings& settings) const;
  double LeastTold(const ShiftSettings& settings) const;
  bool WindowIsAbove(double least, const ShiftSettings& settings) const;
  Change WhileWell(double deviation, const ShiftSettings& settings);
  Change WhileShifted(double deviation, const ShiftSettings& settings);
  bool MostAre(bool above, double than) const;
  double NewestMedian() const;
  bool NewestAreBelow(double than) const;

  std::vector<float> window_;  // A ring buffer. Once it is full, the oldest value is at next_.
  std::size_t next_ = 0;
  std::vector<float> older_;  // A ring buffer of values that have left the window, except shifts.
  std::size_t older_next_ = 0;
  int until_estimate_ = 0;
  double seen_noise_ = 0;
  double noise_ = 0;          // Upper limit of the noise.
  double lasting_noise_ = 0;  // The same, including correlation in time.
  std::array<double, kTests> up_ = {};
  int since_ = 0;
  double down_ = 0;
  int down_since_ = 0;                // Values since down_ was 0.
  int hold_ = 0;                      // Number of normal values that end the shift.
  std::int64_t well_for_ = kNoShift;  // Values since the last shift ended.
  bool shifted_ = false;
  double level_ = 0;
  int at_level_ = 0;  // Number of values since level_ was set.
};

using wire::SecondsByType;

// The times of one rank in one iteration, and the times that its plan predicts.
struct RankIteration {
  int rank = 0;
  int pp_rank = 0;
  int pipeline = -1;  // -1: not known.
  double time_seconds = 0;
  double busy_seconds = 0;           // Time in its own computations; 0: not reported.
  double expected_busy_seconds = 0;  // Predicted busy time; 0: not known, so it is not judged.
  double expected_time_seconds = 0;  // Predicted time of the job's iteration.
  SecondsByType busy_by_type = {};
  SecondsByType expected_by_type = {};
  double tokens = 0;        // 0: not reported.
  std::int64_t regime = 0;  // The plan in use: each plan has a prediction error of its own.
};

struct Finding {
  enum class Kind : std::uint8_t {
    kStraggler,       // A rank became slow, and stays so.
    kFactor,          // A slow rank's factor has changed.
    kRecovered,       // A slow rank is as fast as before.
    kDrift,           // Nearly all ranks became slow together.
    kDriftOver,       // A drift has ended.
    kSlowIterations,  // Iterations take longer than planned.
    kIterationsWell,  // Iterations take as long as planned again.
  };
  Kind kind = Kind::kStraggler;
  int rank = -1;      // Set for the first three kinds.
  double factor = 1;  // Computations (or iterations) take this many times as long.
  std::int64_t iteration = 0;
  int delay_iterations = 0;  // Iterations since the shift probably began, including that one.
  // The type of computation that causes 80 % of a straggler's slowdown. None if all types are
  // equally slow (then `all_types` is set), or if that is not known.
  std::optional<ComputationType> type = {};
  bool all_types = false;
  // Number of ranks of the same pipeline that are slow now, if more than one. They count as one
  // cause.
  int together = 0;
  bool is_of_told_cause = false;  // That cause was already reported for another of these ranks.
  // For kSlowIterations: the share of the iteration time that is spent outside of computations.
  double waiting_share = 0;
};

// A rank that is slow now.
struct SlowRank {
  double factor = 1;
  double reference = 0;  // To be passed to Adopt() after a restart.
  std::int64_t since_iteration = 0;
  bool adopted = false;
};

// Finds stragglers in the reports of one job's ranks. A pure state machine over complete
// iterations; not thread-safe.
//
// Each rank is compared with itself. Its deviation in an iteration is
//   log(busy time / predicted busy time) - log(tokens) - reference
// where tokens count only if the trainer reports them, and the reference is the median over the
// rank's first iterations (one window, or several if they are noisy). Waiting is not busy time, so
// a rank that waits for a straggler does not look like one. A slowdown that nearly all ranks share,
// such as a power cap or a driver, is drift: the lower quartile of the deviations over all ranks,
// if it is above 0, is subtracted from each. A ShiftDetector watches what remains.
//
// If a whole pipeline is slow (its node, its network), the slowdown of each rank may be too small
// to be distinguished from noise soon. So another ShiftDetector watches the median over each
// pipeline's ranks. When it reports a shift, the ranks of that pipeline whose own windows look slow
// are reported together.
//
// References follow slow changes, but too slowly to hide a drift: up by at most one threshold in
// 5,000 iterations and one threshold in all; down ten times as fast if the rank is faster than its
// reference by more than half a threshold.
// To find a rank that is slow from its first iteration, its reference is limited to half a
// threshold above those of its stage's other ranks, also of those that are learned later. Under a
// plan that a rank has not run before, its reference may move by half a threshold, because profiles
// are not exact.
class StragglerDetector {
 public:
  // Changes the settings from the next iteration on. Keeps all that was learned.
  void Set(const ShiftSettings& settings) { settings_ = settings; }

  // Adds an iteration. Ignores ranks whose busy time or predicted busy time is 0.
  std::vector<Finding> Add(std::int64_t iteration, const std::vector<RankIteration>& ranks);

  // Restores a slow rank after a restart, with its factor and reference from before.
  void Adopt(int number, double factor, double reference);
  // Forgets all about that rank.
  void Drop(int number);
  // Forgets everything, for example because the schedule of an iteration has changed.
  void Reset();

  std::map<int, SlowRank> SlowRanks() const;
  // How many times as long as usual each rank whose usual pace is known computed lately.
  std::map<int, double> Lateness() const;
  std::size_t learned() const { return learned_; }  // Number of ranks that are watched.
  double drift_factor() const;                      // Slowdown by drift; 1: none.
  double slow_factor() const;                       // Iteration time over plan; 1: as planned.
  // Whether slow_factor() says anything: the usual iteration time is known.
  bool knows_iterations() const { return times_learned_; }

 private:
  struct Rank {
    bool learned = false;
    bool has_tokens = false;
    bool adopted = false;
    std::vector<float> first;  // Deviations while the reference, or a new regime, is learned.
    std::array<std::vector<float>, kNumComputationTypes> newest;  // Ring buffers, by type.
    SecondsByType type_reference = {};
    std::size_t next = 0;
    double reference = 0;
    double first_reference = 0;
    double recent = 0;                      // Mean deviation of the last iterations.
    std::map<std::int64_t, double> biases;  // By regime.
    std::int64_t new_regime = kNoRegime;    // The regime that is being learned.
    std::int64_t slow_since = 0;
    int pp_rank = 0;
    int pipeline = -1;
    ShiftDetector shift;
  };
  struct Pipeline {
    ShiftDetector shift;
    bool is_told = false;  // It was reported that some of its ranks are slow.
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
  double Shared(const std::vector<Deviation>& deviations, std::size_t not_judged) const;
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
  double token_scale_ = 0;  // Unit of token counts: tokens of the first iteration that had any.
  ShiftDetector drift_;
  ShiftDetector slow_;
  std::vector<float> first_times_;
  std::vector<float> first_waits_;
  double time_reference_ = 0;
  double wait_reference_ = 0;
  std::vector<float> waits_;  // Ring buffer: share of the planned time that is not busy.
  std::size_t next_wait_ = 0;
  bool times_learned_ = false;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_STRAGGLER_DETECTOR_H_
