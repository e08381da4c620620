// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_TRIALS_H_
#define PERSEUS_ROBUST_TRIALS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "model/noise.h"
#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/robust_plan.h"

namespace perseus::robust {

// Figures of replayed iterations, one by one.
struct ReplayedRun {
  std::vector<double> seconds;  // Of the job.
  std::vector<double> joules;   // Mean of its pipelines, waiting included.
  double clock_calls = 0;       // Mean, of one iteration of one pipeline.
};

// Iterations of a job whose pipelines all run the same options, one after the
// other, exactly as docs/explanation/emulation.md says: what perseus::Emulate() would find for a
// job without stragglers, to rounding.
// `true_times`: of model::DrawTrueTimes(); empty: as measured.
ReplayedRun ReplayJob(const CostedPipeline& pipeline, const std::vector<CostOption>& options,
                      Waiting waiting, const Conditions& conditions, int pipelines,
                      std::int64_t iterations, std::uint64_t seed,
                      const std::vector<double>& true_times = {});

struct SettledRun {
  ReplayedRun run;       // Where it settled, `clock_calls` are those of the last iteration.
  bool settled = false;  // All iterations that follow are like the last.
};

// The same where nothing varies, so that one pipeline is enough. It ends once an iteration leaves
// everything (times, clocks, calls under way, what clients expect) as the one before
// did, to rounding; at most `most` iterations.
SettledRun ReplayUntilSettled(const CostedPipeline& pipeline,
                              const std::vector<CostOption>& options, Waiting waiting,
                              const Conditions& conditions, std::int64_t most);

// Exact replays of plans in always the same iterations, beside the baseline, at each corner of the
// conditions' ranges. Where nothing varies, figures are those of settled iterations; but a plan is
// as slow as it is there or in the first iterations of a job (as many as an emulation has),
// whichever is slower.
class Trials {
 public:
  // Of each of several jobs in which something is drawn once: the first iterations, in which clocks
  // settle, would weigh much among few. They are replayed besides.
  static constexpr std::int64_t kSkippedIterations = 2;

  // `jobs` of `iterations` each, under seeds that follow from `seed`. All must
  // outlive it.
  Trials(const CostedPipeline& pipeline, const std::vector<CostOption>& baseline,
         const Conditions& conditions, int pipelines, int jobs, std::int64_t iterations,
         std::uint64_t seed);

  // From now on an iteration waits until `seconds` x the baseline's mean / `base_seconds`.
  void set_least_seconds(double seconds, double base_seconds) {
    least_seconds_ = seconds;
    base_seconds_ = base_seconds;
  }

  // From now on a choice is slower than the baseline by at least so many per cent, whatever the
  // margin: what else has to be in time.
  using LeastSlowdown = std::function<double(const std::vector<CostOption>&)>;
  void set_least_slowdown(LeastSlowdown percent) { least_slowdown_ = std::move(percent); }

  // CornersOf() the conditions; the first has the values that figures stand for.
  int corners() const { return static_cast<int>(corners_.size()); }
  const Conditions& corner(int k) const { return corners_[k].conditions; }

  // How ranks wait in plans from now on, unless it is said otherwise. In the baseline they wait at
  // its clocks.
  void set_waiting(Waiting waiting) { waiting_ = waiting; }
  Waiting waiting() const { return waiting_; }

  ReplayedFigures baseline() const {
    return Compare(corners_.front(), corners_.front().baseline).figures;
  }
  ReplayedFigures Of(const std::vector<CostOption>& options, Waiting waiting, int at = 0) const {
    return At(corners_[at], options, waiting).figures;
  }
  ReplayedFigures Of(const std::vector<CostOption>& options) const { return Of(options, waiting_); }

  // Whether times may be off by the errors that the profile states.
  bool has_errors() const { return !true_times_.empty(); }
  // Whether something is drawn once per job.
  bool once() const { return corners_.front().conditions.noise.once() || !true_times_.empty(); }

  struct Judged {
    // How much slower than the baseline the mean iteration may be at a corner, by which it is most.
    // At the confidence asked for: with the estimate's error, and what is drawn once per job.
    double slower_percent = 0;
    std::vector<double> slower_at = {};  // [corner]
    double saving_percent = 0;           // Mean over corners.
    double saving_error_percent = 0;
    double clock_calls = 0;  // Most of a corner.
  };
  Judged Judge(const std::vector<CostOption>& options, Waiting waiting) const;
  Judged Judge(const std::vector<CostOption>& options) const { return Judge(options, waiting_); }

 private:
  // Iterations of the emulations whose figures are shown: of `emulate`, and of `plan`.
  static constexpr std::array<std::int64_t, 2> kShown = {model::kIterationsOfEmulate,
                                                         model::kIterationsOfPlan};

  struct Iteration {
    double seconds = 0;
    double joules = 0;
  };
  struct Replayed {
    std::vector<Iteration> iterations;  // Of one job after the other.
    double calls = 0;
    // The mean of a job's first iterations, for each of kShown, where nothing varies.
    std::array<double, kShown.size()> first_seconds = {};
  };
  struct Corner {
    Conditions conditions;
    Replayed baseline = {};
  };
  bool Varies(const Corner& corner) const {
    return corner.conditions.noise.any() ||
           corner.conditions.switching.latency_spread_seconds > 0 || !true_times_.empty();
  }
  Replayed Replay(const Corner& corner, const std::vector<CostOption>& options,
                  Waiting waiting) const;
  struct Compared {
    ReplayedFigures figures;
    // The addition to the slowdown for the confidence that is asked for.
    double margin_percent = 0;
  };
  Compared Compare(const Corner& corner, const Replayed& run) const;
  Compared At(const Corner& corner, const std::vector<CostOption>& options, Waiting waiting) const;
  double WattsAtEnd(const Corner& corner, const std::vector<CostOption>& options,
                    Waiting waiting) const;
  // Replays until clocks and forecasts have settled: from then on all iterations are the same.
  Replayed ReplaySettled(const Corner& corner, const std::vector<CostOption>& options,
                         Waiting waiting) const;

  const CostedPipeline& pipeline_;
  std::vector<Corner> corners_;
  std::vector<std::vector<double>> true_times_;  // [job]; empty: as measured.
  int pipelines_;
  int jobs_;
  std::int64_t iterations_;
  std::uint64_t seed_;
  double least_seconds_ = 0;
  double base_seconds_ = 1;
  LeastSlowdown least_slowdown_;
  Waiting waiting_ = Waiting::kSetClock;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_TRIALS_H_
