// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped/knob_subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "perseus/frontier.h"
#include "plan/grouping.h"

namespace perseus::plan {
namespace {

constexpr double kTie = 1e-12;  // Relative.
constexpr double kMissing = std::numeric_limits<double>::infinity();

// What each computation costs at each knob, its time at the price that the
// optimum of the relaxation puts on it.
class PricedKnobs {
 public:
  PricedKnobs(const CostedPipeline& pipeline, const Guard& guard, const TimeCostSchedule& optimum,
              std::vector<bool> kept)
      : pipeline_(pipeline),
        guard_(guard),
        kept_(std::move(kept)),
        needed_(pipeline.knobs.size(), false) {
    cost_.reserve(pipeline.table_of.size());
    for (std::size_t i = 0; i < pipeline.table_of.size(); ++i) {
      const CostTable& table = pipeline.tables[pipeline.table_of[i]];
      std::vector<double>& row = cost_.emplace_back(pipeline.knobs.size(), kMissing);
      for (const CostOption& option : table.all_options) {
        row[option.knob] =
            EffectiveEnergy(table, option) + optimum.price[i] * guard.Seconds(table, option);
      }
    }
  }

  int CountKept() const { return static_cast<int>(std::count(kept_.begin(), kept_.end(), true)); }
  const std::vector<bool>& kept() const { return kept_; }

  // Drops the knob that is missed least and without which the deadline can
  // still be met; false where there is none. So sets of kept knobs are nested.
  bool DropLeastMissed(double seconds) {
    while (true) {
      int least_missed = -1;
      double least = kMissing;
      double least_own = 0;
      const std::vector<double> costs = CostsWithout();
      for (int knob = 0; knob < static_cast<int>(kept_.size()); ++knob) {
        if (needed_[knob] || !kept_[knob]) continue;
        const double cost = costs[knob];
        if (cost == kMissing) continue;
        // Ties are common: both ends of a hull segment cost the same at its
        // price. Of such knobs the one that costs most itself goes first.
        const double own = CostOfOnly(knob);
        const double tie = least_missed < 0 ? 0 : kTie * std::abs(least);
        if (least_missed < 0 || cost < least - tie || (cost <= least + tie && own > least_own)) {
          least = cost;
          least_own = own;
          least_missed = knob;
        }
      }
      if (least_missed < 0) return false;
      if (FastestWithout(least_missed) <= seconds) {
        kept_[least_missed] = false;
        return true;
      }
      needed_[least_missed] = true;
    }
  }

 private:
  // For each kept knob, the sum over computations of the least cost without
  // it; infinite where one would have no knob left.
  std::vector<double> CostsWithout() const {
    std::vector<double> totals(kept_.size(), 0);
    for (const std::vector<double>& row : cost_) {
      double least = kMissing;
      double second = kMissing;
      int least_knob = -1;
      for (int knob = 0; knob < static_cast<int>(row.size()); ++knob) {
        if (!kept_[knob]) continue;
        if (row[knob] < least) {
          second = std::exchange(least, row[knob]);
          least_knob = knob;
        } else {
          second = std::min(second, row[knob]);
        }
      }
      for (int knob = 0; knob < static_cast<int>(totals.size()); ++knob) {
        totals[knob] += knob == least_knob ? second : least;
      }
    }
    return totals;
  }

  // Sum over computations of the cost at one knob; infinite where one lacks it.
  double CostOfOnly(int knob) const {
    double total = 0;
    for (const std::vector<double>& row : cost_) total += row[knob];
    return total;
  }

  // Iteration time with every computation at the fastest of the kept knobs
  // but `dropped`.
  double FastestWithout(int dropped) const {
    std::vector<double> fastest;
    for (const CostTable& table : pipeline_.tables) {
      double least = kMissing;
      for (const CostOption& option : table.all_options) {
        if (kept_[option.knob] && option.knob != dropped) {
          least = std::min(least, guard_.Seconds(table, option));
        }
      }
      fastest.push_back(least);
    }
    std::vector<double> durations;
    for (const int table : pipeline_.table_of) durations.push_back(fastest[table]);
    return Replay(pipeline_.dag, durations).iteration_time_seconds;
  }

  const CostedPipeline& pipeline_;
  const Guard& guard_;
  std::vector<std::vector<double>> cost_;  // [computation][knob]
  std::vector<bool> kept_;
  std::vector<bool> needed_;  // For the deadline.
};

Error NotEnough(int max_knobs, double seconds, int needed) {
  return {ErrorCode::kInfeasible,
          fmt::format("{} distinct knobs are not enough for {:.6g} s: {} are needed; "
                      "give more time or allow more",
                      max_knobs, seconds, needed)};
}

double JoulesOf(const CostedPipeline& pipeline, const std::vector<CostOption>& options) {
  double sum = 0;
  for (std::size_t i = 0; i < options.size(); ++i) {
    sum += EffectiveEnergy(pipeline.TableOf(static_cast<int>(i)), options[i]);
  }
  return sum;
}

// SearchFewKnobs(), for one granularity after the other. What does not depend
// on the granularity is found once.
class FewKnobsSearch {
 public:
  FewKnobsSearch(const CostedPipeline& pipeline, double seconds, const Guard& guard,
                 double slope_quantum, const OptionSearch& search,
                 const std::function<bool()>& goes_on)
      : pipeline_(pipeline),
        seconds_(seconds),
        guard_(guard),
        slope_quantum_(slope_quantum),
        search_(search),
        goes_on_(goes_on) {}

  Result<std::vector<CostOption>> Run(const PlanConstraints& constraints) {
    Best best;
    best.Offer(pipeline_, OneKnobForAll(pipeline_, guard_, seconds_));
    PlanConstraints unlimited = constraints;
    unlimited.max_knobs = std::nullopt;
    auto all = search_(pipeline_, unlimited);
    if (!all && all.error().code != ErrorCode::kInfeasible) return all;
    std::vector<std::vector<bool>> chains;
    if (all) {
      std::vector<bool>& used = chains.emplace_back(pipeline_.knobs.size(), false);
      for (const CostOption& option : *all) used[option.knob] = true;
      if (std::count(used.begin(), used.end(), true) <= *constraints.max_knobs) {
        const double joules = JoulesOf(pipeline_, *all);
        if (joules <= best.joules) best = {*std::move(all), joules};
        // A search for a dwell is not exact: a coarser plan of few knobs may be better.
        if (!HasDwell(constraints)) return best.options;
      }
    }
    chains.emplace_back(pipeline_.knobs.size(), true);
    if (constraints.granularity != Granularity::kStage) {
      if (!best.options.empty() && !goes_on_()) return best.options;
      PlanConstraints coarser = constraints;
      coarser.granularity = Coarser(constraints.granularity);
      auto found = Run(coarser);
      if (!found && found.error().code != ErrorCode::kInfeasible) return found;
      if (found) best.Offer(pipeline_, *found);
    }
    if (!optimum_) {
      auto optimum = OptimumAt(pipeline_, guard_, seconds_, slope_quantum_, nullptr);
      if (!optimum) return tl::unexpected(optimum.error());
      optimum_ = *std::move(optimum);
    }
    std::set<std::vector<bool>> tried;
    std::optional<Error> error;
    for (std::vector<bool>& chain : chains) {
      PricedKnobs priced(pipeline_, guard_, *optimum_, std::move(chain));
      do {
        if (!best.options.empty() && !goes_on_()) return best.options;
        if (priced.CountKept() > *constraints.max_knobs) continue;
        if (!tried.insert(priced.kept()).second) break;
        const CostedPipeline few = WithKnobsOnly(pipeline_, priced.kept());
        const auto bound = BoundWith(few, priced.kept());
        if (!bound) return tl::unexpected(bound.error());
        // No fewer of these knobs can be better either.
        if (*bound >= best.joules) break;
        const auto found = search_(few, constraints);
        if (found) {
          best.Offer(pipeline_, *found);
        } else {
          error = found.error();
        }
      } while (priced.DropLeastMissed(seconds_));
      if (priced.CountKept() > *constraints.max_knobs) {
        error = NotEnough(*constraints.max_knobs, seconds_, priced.CountKept());
      }
    }
    if (best.options.empty()) return tl::unexpected(*error);
    return best.options;
  }

 private:
  struct Best {
    std::vector<CostOption> options;  // Empty: none yet.
    double joules = kMissing;

    void Offer(const CostedPipeline& pipeline, std::vector<CostOption> other) {
      if (other.empty()) return;
      const double other_joules = JoulesOf(pipeline, other);
      if (!options.empty() && other_joules >= joules) return;
      options = std::move(other);
      joules = other_joules;
    }
  };

  // What no plan with these knobs undercuts.
  Result<double> BoundWith(const CostedPipeline& few, const std::vector<bool>& kept) {
    const auto known = bounds_.find(kept);
    if (known != bounds_.end()) return known->second;
    double cost_error = 0;
    const auto optimum = OptimumAt(few, guard_, seconds_, slope_quantum_, &cost_error);
    if (!optimum) return tl::unexpected(optimum.error());
    return bounds_[kept] = optimum->cost - cost_error;
  }

  const CostedPipeline& pipeline_;
  const double seconds_;
  const Guard guard_;
  const double slope_quantum_;
  const OptionSearch& search_;
  const std::function<bool()>& goes_on_;
  std::optional<TimeCostSchedule> optimum_;
  std::map<std::vector<bool>, double> bounds_;  // By the knobs kept.
};

}  // namespace

CostedPipeline WithKnobsOnly(const CostedPipeline& pipeline, const std::vector<bool>& kept) {
  CostedPipeline restricted = pipeline;
  for (CostTable& table : restricted.tables) {
    std::erase_if(table.all_options, [&kept](const CostOption& o) { return !kept[o.knob]; });
    table.options = ParetoOptions(table, Guard{});
  }
  return restricted;
}

Result<TimeCostSchedule> OptimumAt(const CostedPipeline& pipeline, const Guard& guard,
                                   double seconds, double slope_quantum, double* error) {
  auto problem = MakeTimeCostProblem(pipeline, guard);
  if (!problem) return tl::unexpected(problem.error());
  FrontierOptions options;
  options.schedule_times = {seconds};
  options.stop_time = seconds;
  options.slope_quantum = slope_quantum;
  auto solved = SolveFrontier(*problem, options);
  if (!solved) return tl::unexpected(solved.error());
  if (error != nullptr) *error = solved->cost_error;
  return std::move(solved->schedules.front());
}

std::vector<CostOption> OneKnobForAll(const CostedPipeline& pipeline, const Guard& guard,
                                      double seconds) {
  std::vector<CostOption> best;
  double least = kMissing;
  for (int knob = 0; knob < static_cast<int>(pipeline.knobs.size()); ++knob) {
    std::vector<CostOption> of_table;
    std::vector<double> table_seconds;
    std::vector<double> joules;
    for (const CostTable& table : pipeline.tables) {
      const CostOption* option = FindOption(table, knob);
      if (option == nullptr) break;
      of_table.push_back(*option);
      table_seconds.push_back(guard.Seconds(table, *option));
      joules.push_back(EffectiveEnergy(table, *option));
    }
    if (of_table.size() < pipeline.tables.size()) continue;
    double total = 0;
    std::vector<double> durations;
    for (const int table : pipeline.table_of) {
      total += joules[table];
      durations.push_back(table_seconds[table]);
    }
    if (total >= least || Replay(pipeline.dag, durations).iteration_time_seconds > seconds) {
      continue;
    }
    least = total;
    best.clear();
    for (const int table : pipeline.table_of) best.push_back(of_table[table]);
  }
  return best;
}

Result<std::vector<CostOption>> SearchFewKnobs(const CostedPipeline& pipeline, double seconds,
                                               const PlanConstraints& constraints,
                                               double slope_quantum, const OptionSearch& search,
                                               const std::function<bool()>& goes_on) {
  const Guard guard = GuardOf(constraints);
  return FewKnobsSearch(pipeline, seconds, guard, slope_quantum, search, goes_on).Run(constraints);
}

}  // namespace perseus::plan
