// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/chosen_options.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace perseus::plan {
namespace {

// Of MeetDeadline(), which mends what rounding has hidden: a few steps.
constexpr std::size_t kMostStepsPerComputation = 4;

}  // namespace

ChosenOptions::ChosenOptions(const CostedPipeline& pipeline, const Guard& guard,
                             const std::vector<std::vector<int>>& knobs,
                             const std::vector<int>& knob_of)
    : pipeline_(pipeline),
      guard_(guard),
      knobs_(knobs),
      options_(pipeline.table_of.size()),
      seconds_(pipeline.table_of.size()) {
  for (std::size_t i = 0; i < knob_of.size(); ++i) Choose(static_cast<int>(i), knob_of[i]);
}

void ChosenOptions::Choose(int computation, int knob) {
  const CostTable& table = pipeline_.TableOf(computation);
  options_[computation] = *FindOption(table, knob);
  seconds_[computation] = guard_.Seconds(table, options_[computation]);
}

double ChosenOptions::GuardedSeconds() const {
  return Replay(pipeline_.dag, seconds_).iteration_time_seconds;
}

bool ChosenOptions::MeetDeadline(double seconds) {
  // Each step makes one computation faster, so this ends; in a few steps, or not at all.
  const std::size_t most_steps = kMostStepsPerComputation * knobs_.size();
  for (std::size_t step = 0;; ++step) {
    const Timing timing = Replay(pipeline_.dag, seconds_);
    if (timing.iteration_time_seconds <= seconds) return true;
    const std::vector<bool> critical = CriticalComputations(pipeline_.dag, timing);
    int best = -1;
    int best_knob = -1;
    double best_price = std::numeric_limits<double>::infinity();
    for (int i = 0; i < static_cast<int>(knobs_.size()); ++i) {
      if (!critical[i]) continue;
      const CostTable& table = pipeline_.TableOf(i);
      for (const int knob : knobs_[i]) {
        const CostOption& option = *FindOption(table, knob);
        const double cost = EffectiveEnergy(table, option) - EffectiveEnergy(table, options_[i]);
        const double gain = seconds_[i] - guard_.Seconds(table, option);
        if (gain > 0 && cost / gain < best_price) {
          best_price = cost / gain;
          best = i;
          best_knob = knob;
        }
      }
    }
    if (best < 0 || step >= most_steps) return false;
    Choose(best, best_knob);
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
