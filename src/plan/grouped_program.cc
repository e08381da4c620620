// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped_program.h"

#include <algorithm>
#include <cstddef>

namespace perseus::plan {

using frontier::DeadlineProgram;
using frontier::Int128;

namespace {

constexpr std::size_t kLargeGroup = 64;

}  // namespace

GroupedProgram::GroupedProgram(const frontier::Network& network, DeadlineProgram program,
                               const SearchSpace& space)
    : network_(network),
      program_(std::move(program)),
      space_(space),
      chosen_(space.groups.size(), -1) {}

void GroupedProgram::Fix(int group, int knob) {
  for (const int activity : space_.groups[group]) {
    const GridOption& option = OptionOf(activity, knob);
    program_.Fix(activity, option.length, option.cost);
  }
  chosen_[group] = knob;
}

void GroupedProgram::Release(int group) {
  for (const int activity : space_.groups[group]) program_.Release(activity);
  chosen_[group] = -1;
}

bool GroupedProgram::Optimise(Int128 limit) {
  return program_.Optimise(limit) == DeadlineProgram::Outcome::kOptimal;
}

bool GroupedProgram::OptimiseFixed(int group, Int128 limit) {
  if (space_.groups[group].size() > kLargeGroup && !program_.CanMeetDeadline()) return false;
  return Optimise(limit);
}

void GroupedProgram::Assign(DeadlineProgram program, std::vector<int> chosen) {
  program_ = std::move(program);
  chosen_ = std::move(chosen);
}

int GroupedProgram::SlowestWithin(int group) const {
  const int activity = space_.groups[group].front();
  const std::int64_t duration = program_.Duration(activity);
  const std::vector<int>& knobs = space_.knobs[group];
  int position = 0;
  while (position + 1 < static_cast<int>(knobs.size()) &&
         OptionOf(activity, knobs[position + 1]).length <= duration) {
    ++position;
  }
  return position;
}

Int128 GroupedProgram::CostOf(int group, int knob) const {
  Int128 cost = 0;
  for (const int activity : space_.groups[group]) cost += OptionOf(activity, knob).cost;
  return cost;
}

std::vector<std::pair<Int128, int>> GroupedProgram::ByPrice(int group) const {
  std::vector<std::pair<Int128, int>> priced;
  for (const int knob : space_.knobs[group]) {
    Int128 cost = 0;
    for (const int activity : space_.groups[group]) {
      const GridOption& option = OptionOf(activity, knob);
      cost += option.cost + static_cast<Int128>(program_.Price(activity)) * option.length;
    }
    priced.emplace_back(cost, knob);
  }
  std::stable_sort(priced.begin(), priced.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return priced;
}

std::vector<int> GroupedProgram::Neighbours(int group) const {
  const std::vector<int>& knobs = space_.knobs[group];
  std::vector<int> result;
  if (space_.groups[group].size() > 1) {
    for (const auto& [price, knob] : ByPrice(group)) {
      if (result.size() < 2) result.push_back(knob);
    }
    return result;
  }
  const int activity = space_.groups[group].front();
  const int within = SlowestWithin(group);
  result.push_back(knobs[within]);
  const bool exact = OptionOf(activity, knobs[within]).length == program_.Duration(activity);
  if (!exact && within + 1 < static_cast<int>(knobs.size())) result.push_back(knobs[within + 1]);
  return result;
}

}  // namespace perseus::plan
