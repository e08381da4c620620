// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_CHOSEN_OPTIONS_H_
#define PERSEUS_PLAN_CHOSEN_OPTIONS_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "plan/cost_options.h"

namespace perseus::plan {

// A discrete choice for every computation, in the doubles of the profile.
// Borrows its arguments. The search works on the solver's integer grid; here
// its result is held against Replay(), the definition of the realised time.
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

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_CHOSEN_OPTIONS_H_
