// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_PLAN_SEARCH_H_
#define PERSEUS_PLAN_PLAN_SEARCH_H_

#include <functional>
#include <memory>
#include <vector>

#include "frontier/solver.h"
#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/result.h"
#include "plan/cost_options.h"

namespace perseus::plan {

// Above so many computations the exact walk takes too long.
inline constexpr int kCoarseComputations = 20000;

// Sums of doubles and of ticks along a path differ by a far smaller share.
inline constexpr double kSameTime = 1e-12;

// A pipeline with a margin on its times, as the solver has walked it: what
// plans for any time start from. Immutable; const members may be called from
// several threads at once. Does not keep the pipeline.
class WalkedPipeline {
 public:
  // Slopes are rounded to `slope_quantum` only beyond kCoarseComputations.
  // Snapshots of the walk take at most 64 MiB. Errors: those of the integer arithmetic.
  static Result<std::shared_ptr<const WalkedPipeline>> Make(const CostedPipeline& costs,
                                                            const Guard& guard,
                                                            double slope_quantum);

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

// What every plan that ends by `seconds` takes at least, in effective energy
// (EffectiveEnergyOf), proven with discrete options (block_bound.h). `walked` is
// without a margin. `effort` 1 is about a second at 8 stages x 96 microbatches.
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
