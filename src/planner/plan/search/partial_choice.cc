// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/search/partial_choice.h"

#include <algorithm>

namespace perseus::plan {

using frontier::DeadlineProgram;
using frontier::Int128;

PartialChoice::PartialChoice(const frontier::Network& network, DeadlineProgram program,
                             const SearchSpace& space)
    : network_(network),
      program_(std::move(program)),
      space_(space),
      chosen_(space.knobs.size(), -1) {}

void PartialChoice::Fix(int activity, int knob) {
  const GridOption& option = OptionOf(activity, knob);
  program_.Fix(activity, option.length, option.cost);
  chosen_[activity] = knob;
}

void PartialChoice::Release(int activity) {
  program_.Release(activity);
  chosen_[activity] = -1;
}

bool PartialChoice::Optimise(Int128 limit) {
  return program_.Optimise(limit) == DeadlineProgram::Outcome::kOptimal;
}

void PartialChoice::Assign(DeadlineProgram program, std::vector<int> chosen) {
  program_ = std::move(program);
  chosen_ = std::move(chosen);
}

int PartialChoice::SlowestWithin(int activity) const {
  const std::int64_t duration = program_.Duration(activity);
  const std::vector<int>& knobs = space_.knobs[activity];
  int position = 0;
  while (position + 1 < static_cast<int>(knobs.size()) &&
         OptionOf(activity, knobs[position + 1]).length <= duration) {
    ++position;
  }
  return position;
}

std::vector<std::pair<Int128, int>> PartialChoice::ByPrice(int activity) const {
  std::vector<std::pair<Int128, int>> priced;
  const Int128 price = program_.Price(activity);
  for (const int knob : space_.knobs[activity]) {
    const GridOption& option = OptionOf(activity, knob);
    priced.emplace_back(option.cost + price * option.length, knob);
  }
  std::stable_sort(priced.begin(), priced.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return priced;
}

std::vector<std::pair<Int128, int>> PartialChoice::ByBound(int activity, Int128 limit) {
  const Int128 bound = objective();
  const std::vector<std::pair<Int128, int>> priced = ByPrice(activity);
  std::vector<std::pair<Int128, int>> bounded;
  for (const auto& [price, knob] : priced) {
    // The difference in price is a bound on what this knob costs more.
    if (bound + (price - priced.front().first) >= limit) break;
    Fix(activity, knob);
    if (Optimise(limit - 1)) bounded.emplace_back(objective(), knob);
  }
  std::stable_sort(bounded.begin(), bounded.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return bounded;
}

bool PartialChoice::IsBetween(int activity) const {
  return program_.Duration(activity) < network_.CurveOf(activity).lengths[program_.Level(activity)];
}

std::vector<int> PartialChoice::Neighbours(int activity) const {
  const std::vector<int>& knobs = space_.knobs[activity];
  const int within = SlowestWithin(activity);
  std::vector<int> result = {knobs[within]};
  const bool exact = OptionOf(activity, knobs[within]).length == program_.Duration(activity);
  if (!exact && within + 1 < static_cast<int>(knobs.size())) result.push_back(knobs[within + 1]);
  return result;
}

}  // namespace perseus::plan
