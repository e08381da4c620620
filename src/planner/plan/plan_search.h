// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_PLAN_SEARCH_H_
#define PERSEUS_PLAN_PLAN_SEARCH_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "frontier/network.h"
#include "frontier/solver.h"
#include "perseus/costed_pipeline.h"
#include "perseus/frontier.h"
#include "perseus/plan.h"
#include "perseus/result.h"
#include "plan/cost_options.h"
#include "plan/option_search.h"

namespace perseus::plan {

// The pipeline as the solver takes it: one curve for each table, time in
// (guarded) seconds, cost in effective joules.
Result<TimeCostProblem> MakeTimeCostProblem(const CostedPipeline& pipeline, const Guard& guard);

// The same with each table replaced by the exponential curve of the paper,
// sampled densely. Errors: a fit that fails.
Result<TimeCostProblem> MakeExponentialProblem(const CostedPipeline& pipeline);

// Every option of a table on the solver's grid, by knob; those that take
// longer than `most_seconds` are left out.
std::vector<GridOption> GridOptions(const CostTable& table, std::size_t num_knobs,
                                    const Guard& guard, const frontier::Scale& scale,
                                    double slowest_cost, double most_seconds);

// A discrete choice for every computation, in the doubles of the profile.
// Borrows its arguments. The search works on the solver's integer grid; here
// its result is held against Replay(), the definition of the achieved time.
class ChosenOptions {
 public:
  ChosenOptions(const CostedPipeline& pipeline, const Guard& guard,
                const std::vector<std::vector<int>>& knobs, const std::vector<int>& knob_of);

  const std::vector<CostOption>& options() const { return options_; }
  // Iteration time with the safety margin, which a deadline is held against.
  double GuardedSeconds() const;

  // Speeds computations on the critical path up, the cheapest first, until the
  // deadline holds. Nothing to do unless the grid's rounding hid an excess of
  // some 1e-16. False if no knob helps.
  bool MeetDeadline(double seconds);

  // Slows every computation down, in order, as far as its slack lets it and
  // as long as that saves.
  void ReclaimSlack(double seconds);

 private:
  void Choose(int computation, int knob);

  const CostedPipeline& pipeline_;
  const Guard& guard_;
  const std::vector<std::vector<int>>& knobs_;  // [computation] What it may take.
  std::vector<CostOption> options_;             // [computation]
  std::vector<double> seconds_;                 // [computation], guarded
};

// Above so many computations the exact walk takes too long.
inline constexpr int kCoarseComputations = 20000;

// The quantum to which searches round slopes, where the frontier's are rounded to `quantum`. Only
// long walks are rounded, so that the bounds of all others are exact.
inline double SearchQuantum(const CostedPipeline& costs, double quantum) {
  return costs.dag.size() > kCoarseComputations ? quantum : 0;
}

// Sums of doubles and of ticks along a path differ by a far smaller share.
inline constexpr double kSameTime = 1e-12;

// A pipeline with a margin on its times, as the solver has walked it: what
// plans for any time start from. Immutable; const members may be called from
// several threads at once. Does not keep the pipeline.
class WalkedPipeline {
 public:
  // `problem`: MakeTimeCostProblem() with this guard. options.slope_quantum: SearchQuantum().
  // Snapshots of the walk take at most 64 MiB. `solved`: the frontier, by the same walk; null: not
  // wanted. Errors: those of the integer arithmetic, kCancelled.
  static Result<std::shared_ptr<const WalkedPipeline>> Make(const TimeCostProblem& problem,
                                                            const Guard& guard,
                                                            const FrontierOptions& options,
                                                            TimeCostFrontier* solved);

  const Guard& guard() const { return guard_; }
  const frontier::Network& network() const { return *network_; }
  const frontier::WalkLadder& ladder() const { return *ladder_; }

 private:
  WalkedPipeline() = default;

  Guard guard_;
  std::unique_ptr<const frontier::Network> network_;
  std::unique_ptr<const frontier::WalkLadder> ladder_;
};

// Told of each better plan, the first one soon, and now and then that there is
// none yet (nullptr), with the share of the work that is done; false ends the
// search.
using OptionsReport = std::function<bool(const std::vector<CostOption>* better, double share)>;

// One option for every computation, so that the pipeline ends by `seconds` at
// little energy: searches from the durations of the relaxation (window_search.h;
// option_search.h for small pipelines). Where knobs are shared see grouped_plan.h.
// Plans are compared by effective energy, which is the energy over an iteration
// of a given length. `effort` says where the search is cut, and nothing else:
// more of it never gives a worse plan. Errors: kInfeasible where nothing was
// found; those of the integer arithmetic.
Result<std::vector<CostOption>> SearchPlan(const CostedPipeline& costs,
                                           const WalkedPipeline& walked, double seconds,
                                           double effort, const OptionsReport& report);

// A bound on the effective energy (EffectiveEnergyOf) of every plan that ends by `seconds`, proven
// with discrete options (block_bound.h). `walked` is without a margin. `effort` 1 is about a second
// at 8 stages x 96 microbatches.
struct EffectiveBound {
  double relaxed_joules = 0;   // Of the relaxation.
  double discrete_joules = 0;  // At least that.
  int blocks = 0;              // See BlockBound.
  int proven = 0;
};
Result<EffectiveBound> BoundPlans(const CostedPipeline& costs, const WalkedPipeline& walked,
                                  double seconds, double effort);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_PLAN_SEARCH_H_
