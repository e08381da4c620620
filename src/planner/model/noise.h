// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_NOISE_H_
#define PERSEUS_MODEL_NOISE_H_

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/word_hash.h"
#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/result.h"

namespace perseus::model {

// Whether rare computations have a length without a share, or a share without a length. That says
// nothing, so all who read conditions refuse it.
inline bool HasHalfOfRareNoise(const TimeNoise& noise) {
  return (noise.rare_length > 0) != (noise.rare_share > 0);
}

// Whether `value` is from 0 to `most`. `what` follows "expected ": "seconds", "a share".
Result<void> CheckCondition(std::string_view key, double value, std::string_view what, double most);
inline constexpr std::string_view kShareText = "a share (0.01 is 1 %)";
inline constexpr std::string_view kSecondsText = "seconds";
inline constexpr double kMostConditionSeconds = 1e6;

// Says which number of noise or late clocks is out of range, by its name in a job file.
Result<void> CheckDisturbances(const TimeNoise& noise, const ClockSwitching& switching);

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

// The first word of every hash says what is drawn (docs/explanation/emulation.md).
inline constexpr std::uint64_t kComputationNoise = 1;
inline constexpr std::uint64_t kStageNoise = 2;
inline constexpr std::uint64_t kGpuNoise = 3;
inline constexpr std::uint64_t kStragglerDraw = 4;
inline constexpr std::uint64_t kLatencyDraw = 5;
inline constexpr std::uint64_t kRankNoise = 6;
inline constexpr std::uint64_t kRareNoise = 7;  // The last word, after those of a computation.

// A rare computation takes TimeNoise::rare_length x 3 u^2 longer, with u uniform from 0 to 1. The
// mean of 3 u^2 is 1; this is the mean of its square.
inline constexpr double kRareSecondMoment = 1.8;

// The hash from which a rank's calls of an iteration, by their number, draw their latencies.
inline WordHash LatencyDraws(std::uint64_t seed, int pipeline, std::int64_t iteration, int rank) {
  return WordHash(seed).With(kLatencyDraw).With(pipeline).With(iteration).With(rank);
}

// The noise of one rank's GPUs.
struct GpuNoise {
  double slowest = 1;  // The rank goes as this one.
  double mean = 1;
};

// Noise that is drawn once for all iterations. Each is 1 where it is not asked for.
struct FixedNoise {
  std::vector<double> stage;           // [stage]
  std::vector<GpuNoise> gpus_of_rank;  // [pipeline x ranks + rank]; empty without noise per GPU.
};
FixedNoise DrawFixedNoise(const CostedPipeline& pipeline, const TimeNoise& noise, int pipelines,
                          std::uint64_t seed);

// Noise of one pipeline that is drawn anew in every iteration.
class IterationNoise {
 public:
  IterationNoise(const TimeNoise& noise, int ranks);

  // `of_computations` and `of_ranks`: what the draws of computations (by their index) and of ranks
  // begin with.
  void Begin(WordHash of_computations, WordHash of_ranks);
  // The same, with the words of emulations.
  void Begin(std::uint64_t seed, int pipeline, std::int64_t iteration) {
    Begin(WordHash(seed).With(kComputationNoise).With(pipeline).With(iteration),
          WordHash(seed).With(kRankNoise).With(pipeline).With(iteration));
  }

  // The factor of a computation, once for each. Precondition: those of a rank in its order.
  double Of(int computation, int rank) {
    double factor = 1;
    if (noise_.per_computation > 0) {
      double draw = of_computations_.With(computation).StandardDraw();
      if (noise_.correlation > 0) draw = Follow(rank, draw);
      factor += noise_.per_computation * draw;
    }
    if (noise_.has_rare()) factor += Rare(of_computations_.With(computation).With(kRareNoise));
    return noise_.per_rank > 0 ? factor * of_rank_[rank] : factor;
  }

 private:
  double Follow(int rank, double draw);
  double Rare(WordHash word) const {
    const double draw = word.Share() / noise_.rare_share;
    return noise_.rare_length * ((draw < 1 ? 3 * draw * draw : 0) - noise_.rare_share);
  }

  TimeNoise noise_;
  double fresh_ = 1;  // How much of a draw is new.
  WordHash of_computations_{0};
  std::vector<double> of_rank_;  // [rank]: the factor.
  std::vector<double> last_;     // [rank]: the last draw of its computations.
  std::vector<char> has_last_;   // [rank]
};

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_NOISE_H_
