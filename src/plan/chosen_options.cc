// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/chosen_options.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <utility>

namespace perseus::plan {
namespace {

// Of MeetDeadline(), which mends what rounding has hidden: a few steps.
constexpr std::size_t kMostStepsPerGroup = 4;

}  // namespace

ChosenOptions::ChosenOptions(const CostedPipeline& pipeline, const Guard& guard,
                             const std::vector<std::vector<int>>& groups,
                             const std::vector<std::vector<int>>& group_knobs,
                             const std::vector<int>& knob_of_group)
    : pipeline_(pipeline),
      guard_(guard),
      groups_(groups),
      group_knobs_(group_knobs),
      options_(pipeline.table_of.size()),
      seconds_(pipeline.table_of.size()) {
  for (std::size_t g = 0; g < groups.size(); ++g) Choose(static_cast<int>(g), knob_of_group[g]);
}

void ChosenOptions::Choose(int group, int knob) {
  for (const int i : groups_[group]) {
    const CostTable& table = pipeline_.TableOf(i);
    options_[i] = *FindOption(table, knob);
    seconds_[i] = guard_.Seconds(table, options_[i]);
  }
}

double ChosenOptions::GuardedSeconds() const {
  return Replay(pipeline_.dag, seconds_).iteration_time_seconds;
}

bool ChosenOptions::MeetDeadline(double seconds) {
  // What speeds one member of a group up may slow another down: no group is
  // given a knob that it has had, so that this ends.
  std::set<std::pair<int, int>> had;
  const std::size_t most_steps = kMostStepsPerGroup * groups_.size();
  for (;;) {
    const Timing timing = Replay(pipeline_.dag, seconds_);
    if (timing.iteration_time_seconds <= seconds) return true;
    const std::vector<bool> critical = CriticalComputations(pipeline_.dag, timing);
    int best_group = -1;
    int best_knob = -1;
    double best_price = std::numeric_limits<double>::infinity();
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g) {
      const auto is_critical = [&critical](int i) { return critical[i]; };
      if (std::none_of(groups_[g].begin(), groups_[g].end(), is_critical)) continue;
      for (const int knob : group_knobs_[g]) {
        if (had.contains({g, knob})) continue;
        double cost = 0;
        double gain = 0;
        for (const int i : groups_[g]) {
          const CostTable& table = pipeline_.TableOf(i);
          const CostOption& option = *FindOption(table, knob);
          cost += EffectiveEnergy(table, option) - EffectiveEnergy(table, options_[i]);
          if (critical[i]) gain += seconds_[i] - guard_.Seconds(table, option);
        }
        if (gain > 0 && cost / gain < best_price) {
          best_price = cost / gain;
          best_group = g;
          best_knob = knob;
        }
      }
    }
    if (best_group < 0 || had.size() >= most_steps) return false;
    had.insert({best_group, options_[groups_[best_group].front()].knob});
    Choose(best_group, best_knob);
  }
}

void ChosenOptions::ReclaimSlack(double seconds) {
  const PipelineDag& dag = pipeline_.dag;
  // Latest ends, from the back.
  std::vector<double> latest(dag.size(), seconds - dag.end_delay_seconds);
  for (int i = dag.size() - 1; i >= 0; --i) {
    for (int p = dag.first_precedence[i]; p < dag.first_precedence[i + 1]; ++p) {
      const Precedence& precedence = dag.precedences[p];
      latest[precedence.from] =
          std::min(latest[precedence.from], latest[i] - seconds_[i] - precedence.delay_seconds);
    }
  }
  const std::vector<CostOption> options_before = options_;
  const std::vector<double> seconds_before = seconds_;
  std::vector<double> end(dag.size(), 0);
  for (int i = 0; i < dag.size(); ++i) {
    double start = dag.start_delay_seconds[i];
    for (int p = dag.first_precedence[i]; p < dag.first_precedence[i + 1]; ++p) {
      const Precedence& precedence = dag.precedences[p];
      start = std::max(start, end[precedence.from] + precedence.delay_seconds);
    }
    const CostTable& table = pipeline_.TableOf(i);
    for (const CostOption& option : table.options) {
      const double option_seconds = guard_.Seconds(table, option);
      if (start + option_seconds > latest[i]) continue;
      if (EffectiveEnergy(table, option) < EffectiveEnergy(table, options_[i])) {
        options_[i] = option;
        seconds_[i] = option_seconds;
      }
    }
    end[i] = start + seconds_[i];
  }
  // Sums from the front and from the back may differ in their last bit.
  if (GuardedSeconds() > seconds) {
    options_ = options_before;
    seconds_ = seconds_before;
  }
}

}  // namespace perseus::plan
