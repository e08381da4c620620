// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/plan_moves.h"

#include <algorithm>

namespace perseus::fleet {
namespace {

struct Move {
  double gain = 0;
  std::size_t job = 0;
  std::size_t option = 0;
};

class Mover {
 public:
  Mover(const State& state, const Limits& limits, const OptionTable& options)
      : state_(state), options_(options), selection_(state, limits, options) {}

  std::vector<std::size_t> Run() {
    TakeSteps();
    double most_gain = 0;  // Of any move from anywhere.
    for (std::size_t j = 0; j < options_.size(); ++j) {
      most_gain = std::max(most_gain, Gain(j, 0, options_[j].size() - 1));
    }
    double lost = 0;  // Since the last step that fits.
    Move best = BestMove();
    double best_value = best.gain;
    std::size_t best_taken = taken_.size();
    for (std::size_t taken = taken_.size(); taken-- > 0;) {
      const PlanStep& step = taken_[taken];
      lost += Gain(step.job, step.from, step.to);
      if (most_gain - lost <= best_value) break;
      selection_.Choose(step.job, step.from);
      const Move move = BestMove();
      if (move.gain - lost <= best_value) continue;
      best = move;
      best_value = move.gain - lost;
      best_taken = taken;
    }
    std::vector<std::size_t> choices(options_.size(), 0);
    for (std::size_t i = 0; i < best_taken; ++i) choices[taken_[i].job] = taken_[i].to;
    if (best.gain > 0) choices[best.job] = best.option;
    return choices;
  }

 private:
  double Gain(std::size_t job, std::size_t from, std::size_t to) const {
    return state_.members[job].ValueOf(options_[job][to].x - options_[job][from].x);
  }

  // Up to the first step that the site has no watts for. A job whose step another node has no watts
  // for stays, and the others go on.
  void TakeSteps() {
    std::vector<PlanStep> steps;
    for (std::size_t j = 0; j < options_.size(); ++j) {
      const std::vector<PlanStep> of_job = HullSteps(state_, options_, j);
      steps.insert(steps.end(), of_job.begin(), of_job.end());
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const PlanStep& a, const PlanStep& b) { return a.key < b.key; });
    std::vector<bool> stays(options_.size(), false);
    for (const PlanStep& step : steps) {
      if (stays[step.job]) continue;
      const double watts = options_[step.job][step.to].watts - options_[step.job][step.from].watts;
      if (watts > selection_.Room(step.job, 1)) {
        stays[step.job] = true;
        continue;
      }
      if (!selection_.FitsSite(watts)) return;
      selection_.Choose(step.job, step.to);
      taken_.push_back(step);
    }
  }

  Move BestMove() const {
    Move best;
    for (std::size_t j = 0; j < options_.size(); ++j) {
      const std::vector<PlanOption>& options = options_[j];
      const std::size_t now = selection_.ChoiceOf(j);
      if (now + 1 == options.size()) continue;
      const double most = options[now].watts + selection_.Room(j);
      if (options[now + 1].watts > most) continue;
      const auto next = std::upper_bound(
          options.begin() + static_cast<std::ptrdiff_t>(now), options.end(), most,
          [](double watts, const PlanOption& option) { return watts < option.watts; });
      const auto option = static_cast<std::size_t>(next - options.begin()) - 1;
      const double gain = Gain(j, now, option);
      if (gain > best.gain) best = {gain, j, option};
    }
    return best;
  }

  const State& state_;
  const OptionTable& options_;
  Selection selection_;
  std::vector<PlanStep> taken_ = {};
};

}  // namespace

std::vector<std::size_t> ThroughputChoices(const State& state, const Limits& limits,
                                           const OptionTable& options) {
  return Mover(state, limits, options).Run();
}

}  // namespace perseus::fleet
