// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/search/dive.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace perseus::plan {

using frontier::Int128;
using frontier::kNoLimit;

// The activity of the same rank that comes next in the direction of the dive.
int Dive::Following(int activity) const {
  return style_.backward ? order_.Previous(activity) : space_.next[activity];
}

// The least bound over the ways to round the next activity of the rank.
Int128 Dive::LookAhead(int activity, Int128 limit) {
  if (activity < 0 || !program_.IsFree(activity)) return program_.objective();
  const std::vector<int> knobs = program_.Neighbours(activity);
  if (knobs.size() == 1) return program_.objective();
  Int128 best = kNoLimit;
  for (const int knob : knobs) {
    program_.Fix(activity, knob);
    if (program_.Optimise(std::min(best, limit))) best = program_.objective();
  }
  program_.Release(activity);
  program_.Optimise(kNoLimit);
  return best;
}

// Fixes an activity to the best knob found whose bound is within `limit`.
bool Dive::ChooseKnob(int activity, Int128 limit) {
  std::vector<int> candidates = program_.Neighbours(activity);
  const std::size_t neighbours = candidates.size();
  for (const auto& [price, knob] : program_.ByPrice(activity)) {
    if (std::find(candidates.begin(), candidates.end(), knob) == candidates.end()) {
      candidates.push_back(knob);
    }
  }
  const std::size_t wanted = std::min(candidates.size(), neighbours + style_.candidates);
  Int128 best = kNoLimit;
  Int128 best_now = kNoLimit;
  int best_knob = -1;
  // Beyond the wanted ones only until one is feasible.
  for (std::size_t k = 0; k < candidates.size() && (k < wanted || best_knob < 0); ++k) {
    program_.Fix(activity, candidates[k]);
    if (!program_.Optimise(std::min(limit, best))) continue;
    const Int128 now = program_.objective();
    const Int128 ahead =
        style_.look_ahead ? LookAhead(Following(activity), std::min(limit, best)) : now;
    if (ahead < best || (ahead == best && now < best_now) || best_knob < 0) {
      best = ahead;
      best_now = now;
      best_knob = candidates[k];
    }
  }
  if (best_knob < 0) return false;
  program_.Fix(activity, best_knob);
  return program_.Optimise(limit);
}

Dive::Outcome Dive::Run(std::span<const int> activities, Int128 limit, std::int64_t work_limit) {
  for (const int activity : activities) {
    if (program_.work() > work_limit) return Outcome::kOutOfWork;
    if (!ChooseKnob(activity, limit)) return Outcome::kStuck;
  }
  return Outcome::kDone;
}

}  // namespace perseus::plan
