// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_PLAN_WALK_H_
#define PERSEUS_FLEET_PLAN_WALK_H_

#include <cstddef>
#include <vector>

#include "fleet/site_state.h"

namespace perseus::fleet {

// The options of every job: its plans, or some corners of its curve where it has none.
using OptionTable = std::vector<std::vector<PlanOption>>;  // [job]

OptionTable OptionsOfAll(const State& state);

// From one option of a job to a faster one.
struct PlanStep {
  double key = 0;  // Watts for a unit of weighted speed.
  std::size_t job = 0;
  std::size_t from = 0;
  std::size_t to = 0;
};

// The steps along the lower hull of a job's options, cheapest first.
std::vector<PlanStep> HullSteps(const State& state, const OptionTable& options, std::size_t job);

// One option for each job, and the watts of each node.
class Selection {
 public:
  // All at their least, which keeps all limits.
  Selection(const State& state, const Limits& limits, const OptionTable& options);

  std::size_t ChoiceOf(std::size_t job) const { return choices_[job]; }
  const std::vector<std::size_t>& choices() const { return choices_; }
  // The most watts that the job may draw more, at the nodes from `first` on.
  double Room(std::size_t job, std::size_t first = 0) const;
  // Whether this many watts more keep the limit of node 0.
  bool FitsSite(double watts) const;
  void Choose(std::size_t job, std::size_t option);

 private:
  const State& state_;
  const OptionTable& options_;
  Limits limits_;
  std::vector<std::size_t> choices_ = {};  // [job]
  std::vector<double> loads_ = {};         // [node]
};

// Real plans for max-min fairness: the group with the smallest ratio takes its next step; one whose
// step does not fit stays. Groups are jobs or tenants. No choice of plans has a larger smallest
// ratio among jobs.
std::vector<std::size_t> FairChoices(const State& state, const Limits& limits,
                                     const OptionTable& options, bool by_tenant);

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_PLAN_WALK_H_
