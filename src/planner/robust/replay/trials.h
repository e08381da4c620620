// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_REPLAY_TRIALS_H_
#define PERSEUS_ROBUST_REPLAY_TRIALS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "model/emulated_iterations.h"
#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/robust_plan.h"
#include "robust/replay/exact_replay.h"

namespace perseus::robust {

// Exact replays of plans in always the same iterations, beside the baseline. Where nothing
// varies, figures are those of settled iterations; but a plan is as slow as it is there or in the
// first iterations of a job (as many as an emulation has), whichever is slower.
class Trials {
 public:
  // `jobs` of `iterations` each, under seeds that follow from `seed`. All must
  // outlive it.
  Trials(const CostedPipeline& pipeline, const std::vector<CostOption>& baseline,
         const Conditions& conditions, int pipelines, int jobs, std::int64_t iterations,
         std::uint64_t seed);

  // From now on an iteration of Of() that is shorter waits until then.
  void set_least_seconds(double seconds) { least_seconds_ = seconds; }

  // From now on Of() is slower than the baseline by at least so many per cent, whatever
  // MarginPercent() says: what else has to be in time.
  using LeastSlowdown = std::function<double(const std::vector<CostOption>&)>;
  void set_least_slowdown(LeastSlowdown percent) { least_slowdown_ = std::move(percent); }

  ReplayedFigures baseline() const;
  ReplayedFigures Of(const std::vector<CostOption>& options) const { return Of(options, waiting_); }
  ReplayedFigures Of(const std::vector<CostOption>& options, Waiting waiting) const;

  // How ranks wait in plans from now on, unless Of() is told otherwise. In the baseline they wait
  // at its clocks.
  void set_waiting(Waiting waiting) { waiting_ = waiting; }
  Waiting waiting() const { return waiting_; }

  // By how much the mean slowdown of figures may be wrong, at the confidence asked
  // for: the estimate's error, and what is drawn once per job. In per cent.
  double MarginPercent(const ReplayedFigures& figures) const;

 private:
  // Iterations of the emulations whose figures are shown: of `emulate`, and of `plan`.
  static constexpr std::array<std::int64_t, 2> kShown = {model::kIterationsOfEmulate,
                                                         model::kIterationsOfPlan};

  struct Iteration {
    double seconds = 0;
    double joules = 0;
  };
  struct Replayed {
    // One of a job, or its mean where something is drawn once per job.
    std::vector<Iteration> iterations;
    double calls = 0;
    // Where nothing varies: the mean of a job's first iterations, for each of kShown.
    std::array<double, kShown.size()> first_seconds = {};
  };
  Replayed Replay(const std::vector<CostOption>& options, Waiting waiting) const;
  ReplayedFigures Compare(const Replayed& run) const;
  double WattsAtEnd(const std::vector<CostOption>& options, Waiting waiting) const;
  // What is the same in every iteration is so once clocks and forecasts have settled.
  Replayed ReplaySettled(const std::vector<CostOption>& options, Waiting waiting) const;
  bool varies() const;

  const CostedPipeline& pipeline_;
  Conditions conditions_;
  int pipelines_;
  int jobs_;
  std::int64_t iterations_;
  std::uint64_t seed_;
  double least_seconds_ = 0;
  LeastSlowdown least_slowdown_;
  Waiting waiting_ = Waiting::kSetClock;
  Replayed baseline_;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_REPLAY_TRIALS_H_
