// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/control_plane.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace perseus::emulate {

Result<Plan> PlanChooser::MakePlan(double seconds) const {
  Result<Plan> plan = policy_.PlanFor(seconds);
  if (!plan) return plan;
  if (auto good = CheckPlan(pipeline_, *plan); !good) {
    good.error().message = fmt::format("the policy {}: {}", policy_.name(), good.error().message);
    return tl::unexpected(good.error());
  }
  return plan;
}

Result<void> PlanChooser::Begin() {
  Result<Plan> base = MakePlan(spec_.target_seconds);
  if (!base) return tl::unexpected(base.error());
  plans_.push_back(*std::move(base));
  return {};
}

Result<Reaction> PlanChooser::React(double start_seconds, double slowest_seconds) {
  const Reaction base = {.target_seconds = spec_.target_seconds, .plan = kBasePlan};
  if (!spec_.control.reacts || !policy_.reacts()) return base;
  if (affairs_.empty() || affairs_.back().slowest_seconds != slowest_seconds) {
    affairs_.push_back({start_seconds, slowest_seconds});
  }
  const double known_until = start_seconds - spec_.control.delay_seconds;
  while (affairs_.size() > 1 && affairs_[1].start_seconds <= known_until) affairs_.pop_front();
  if (affairs_.front().start_seconds > known_until) return base;

  double target = affairs_.front().slowest_seconds;
  if (spec_.random_stragglers.share_of_gpus_per_day > 0) {
    // Ranks fail in many combinations; steps of 0.1 % bound the number of plans.
    target = spec_.target_seconds * std::floor(1000 * target / spec_.target_seconds) / 1000;
  }
  if (target <= spec_.target_seconds) return base;
  const auto known = reactions_.find(target);
  if (known != reactions_.end()) return known->second;
  Result<Plan> plan = MakePlan(target);
  Reaction reaction = base;
  if (plan) {
    reaction = {.target_seconds = target, .plan = static_cast<int>(plans_.size())};
    plans_.push_back(*std::move(plan));
  } else if (plan.error().code != ErrorCode::kInfeasible) {
    return tl::unexpected(plan.error());
  }
  reactions_.emplace(target, reaction);
  return reaction;
}

}  // namespace perseus::emulate
