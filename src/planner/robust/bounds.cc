// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "plan/change_branch.h"
#include "plan/group_branch.h"
#include "robust/lane_replay.h"
#include "robust/plan_under.h"
#include "robust/samples.h"

namespace perseus::robust {

std::vector<int> CheapestKnobs(const CostedPipeline& pipeline, std::span<const double> price,
                               double change_joules) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const std::size_t knobs = pipeline.knobs.size();
  // [table x knobs + knob], so that the loop below has no branches.
  std::vector<double> joules(pipeline.tables.size() * knobs, kInfinite);
  std::vector<double> seconds(pipeline.tables.size() * knobs, 0.0);
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    for (const CostOption& option : pipeline.tables[t].all_options) {
      joules[t * knobs + option.knob] = EffectiveEnergy(pipeline.tables[t], option);
      seconds[t * knobs + option.knob] = option.time_seconds;
    }
  }
  std::vector<int> chosen(pipeline.dag.size(), 0);
  std::vector<double> change;
  std::vector<double> least;  // [position x knobs + knob]: before the computation.
  for (const std::vector<int>& order : pipeline.dag.rank_order) {
    least.assign((order.size() + 1) * knobs, 0.0);
    change.assign(order.size(), kInfinite);
    for (std::size_t k = 0; k < order.size(); ++k) {
      const double* const now = least.data() + k * knobs;
      double* const next = least.data() + (k + 1) * knobs;
      const double* const of_joules = joules.data() + pipeline.table_of[order[k]] * knobs;
      const double* const of_seconds = seconds.data() + pipeline.table_of[order[k]] * knobs;
      const double of_time = price[order[k]];
      double cheapest = kInfinite;
      for (std::size_t knob = 0; knob < knobs; ++knob) {
        cheapest = now[knob] < cheapest ? now[knob] : cheapest;
      }
      change[k] = cheapest + (k == 0 ? 0 : change_joules);
      for (std::size_t knob = 0; knob < knobs; ++knob) {
        const double from = change[k] < now[knob] ? change[k] : now[knob];
        next[knob] = from + of_joules[knob] + of_time * of_seconds[knob];
      }
    }
    const auto first_least = [&](std::size_t k) {
      const auto begin = least.begin() + static_cast<std::ptrdiff_t>(k * knobs);
      return static_cast<int>(std::min_element(begin, begin + static_cast<std::ptrdiff_t>(knobs)) -
                              begin);
    };
    int at = first_least(order.size());
    for (std::size_t k = order.size(); k-- > 0;) {
      chosen[order[k]] = at;
      if (least[k * knobs + at] > change[k]) at = first_least(k);
    }
  }
  return chosen;
}

std::vector<int> CheapestKnobsWithin(const CostedPipeline& pipeline, std::span<const double> price,
                                     int most_changes) {
  constexpr int kHalvings = 24;
  std::vector<int> best = CheapestKnobs(pipeline, price, 0);
  if (CountChanges(pipeline.dag, best) <= most_changes) return best;
  double high = 0;  // More than any change is worth.
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const CostTable& table = pipeline.TableOf(i);
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (const CostOption& option : table.all_options) {
      const double costs = EffectiveEnergy(table, option) + price[i] * option.time_seconds;
      least = std::min(least, costs);
      most = std::max(most, costs);
    }
    high += most - least;
  }
  best = CheapestKnobs(pipeline, price, high);
  double low = 0;
  for (int k = 0; k < kHalvings; ++k) {
    // By factors, until the scale is known.
    const double middle = low == 0 ? high / 8 : (low + high) / 2;
    std::vector<int> knobs = CheapestKnobs(pipeline, price, middle);
    if (CountChanges(pipeline.dag, knobs) <= most_changes) {
      high = middle;
      best = std::move(knobs);
    } else {
      low = middle;
    }
  }
  return best;
}

namespace {

struct PricedOption {
  double seconds = 0;
  double joules = 0;  // Effective.
};

class DualAscent {
 public:
  DualAscent(const CostedPipeline& pipeline, const Samples& samples, double accepted,
             double latency, std::optional<int> most_changes)
      : pipeline_(pipeline),
        samples_(samples),
        accepted_(accepted),
        latency_(latency),
        most_changes_(most_changes),
        share_(pipeline.dag.size(), 0.0),
        mean_(pipeline.dag.size(), 0.0),
        chosen_(pipeline.dag.size(), 0.0),
        ends_(static_cast<std::size_t>(pipeline.dag.size()) * samples.lanes) {
    for (const CostTable& table : pipeline.tables) {
      std::vector<PricedOption>& options = options_.emplace_back();
      const auto& all = latency > 0 ? table.all_options : table.options;
      for (const CostOption& option : all) {
        options.push_back({option.time_seconds, EffectiveEnergy(table, option)});
      }
    }
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      mean_[i] = options_[pipeline.table_of[i]].front().seconds;
    }
    if (!most_changes) return;
    at_knob_.resize(pipeline.tables.size() * pipeline.knobs.size());
    for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
      const CostTable& table = pipeline.tables[t];
      for (const CostOption& option : table.all_options) {
        at_knob_[t * pipeline.knobs.size() + option.knob] = {option.time_seconds,
                                                             EffectiveEnergy(table, option)};
      }
    }
  }

  DualBound Run(int rounds) {
    DualBound best;
    best.effective_joules = -std::numeric_limits<double>::infinity();
    const int size = pipeline_.dag.size();
    std::vector<double> critical(size);
    first_price_ = FirstPrice();
    double price = first_price_;
    change_joules_ = 1e-3 * first_price_ * accepted_ / size;
    double mean_changes = 0;
    double delay = 0;
    for (int round = 0; round < rounds; ++round) {
      // Old rounds count less and less: prices and times of the first ones are far off.
      const double step = 3.0 / (round + 3.0);
      double critical_delay = 0;
      Critical(&critical, &critical_delay);
      for (int i = 0; i < size; ++i) share_[i] += step * (critical[i] - share_[i]);
      delay += step * (critical_delay - delay);
      double used = 0;
      double value = latency_ > 0 ? ValueOfRanks(price, &used) : BestPrice(&price, delay, &used);
      value += price * (delay - accepted_);
      if (value > best.effective_joules) {
        best.effective_joules = value;
        best.price_of_time = price;
        best.price.resize(size);
        for (int i = 0; i < size; ++i) best.price[i] = price * share_[i];
      }
      if (most_changes_) {
        mean_changes += step * (changes_ - mean_changes);
        const double many = mean_changes / std::max(1, *most_changes_) - 1;
        change_joules_ *= std::exp(std::clamp(many * std::sqrt(step), -0.3, 0.3));
      }
      if (latency_ > 0) {
        const double late = (used + delay) / accepted_ - 1;
        price *= std::exp(std::clamp(late * 40 * std::sqrt(step), -0.3, 0.3));
      }
      for (int i = 0; i < size; ++i) mean_[i] += step * (chosen_[i] - mean_[i]);
    }
    best.seconds = mean_;
    best.change_joules = most_changes_ ? change_joules_ : 0;
    return best;
  }

 private:
  // The first price of a second: the mean power of the pipeline.
  double FirstPrice() const {
    double joules = 0;
    for (const int table : pipeline_.table_of) joules += std::abs(options_[table].front().joules);
    return std::max(1e-9, joules / std::max(accepted_, 1e-9));
  }

  // The value at the price of time that makes it most, for the shares as they are.
  double BestPrice(double* price, double delay, double* used) {
    constexpr double kNear = 1.02;
    constexpr double kFar = 1.5;
    // Beyond these it is all the same.
    const double lowest = 1e-6 * first_price_;
    const double highest = 1e9 * first_price_;
    double low = std::clamp(*price, lowest, highest);
    double high = low;
    // With changes each value takes long: near the last price first.
    double factor = most_changes_ ? kNear : kFar;
    while (high < highest && (Value(high, used), *used + delay > accepted_)) {
      if (most_changes_) low = high;
      high *= factor;
      factor = std::min(kFar, factor * factor);
    }
    factor = most_changes_ ? kNear : kFar;
    while (low > lowest && (Value(low, used), *used + delay <= accepted_)) {
      low /= factor;
      factor = std::min(kFar, factor * factor);
    }
    const double close = most_changes_ ? 1e-3 : 1e-7;
    for (int k = 0; k < 40 && high - low > close * high; ++k) {
      const double middle = (low + high) / 2;
      Value(middle, used);
      (*used + delay > accepted_ ? low : high) = middle;
    }
    // Both sides of the corner: the mean of their times is what fits.
    double late = 0;
    double early = 0;
    Value(low, &late);
    const std::vector<double> slow = chosen_;
    *price = high;
    const double value = Value(high, &early);
    if (late > early) {
      const double part = std::clamp((accepted_ - delay - early) / (late - early), 0.0, 1.0);
      for (std::size_t i = 0; i < chosen_.size(); ++i) chosen_[i] += part * (slow[i] - chosen_[i]);
    }
    *used = early;
    return value;
  }

  // Each rank by itself: changes have a price.
  double ValueWithChanges(double price, double* used) {
    std::vector<double> prices = share_;
    for (double& of_time : prices) of_time *= price;
    const std::vector<int> knobs = CheapestKnobs(pipeline_, prices, change_joules_);
    changes_ = CountChanges(pipeline_.dag, knobs);
    double value = change_joules_ * (changes_ - *most_changes_);
    for (int i = 0; i < pipeline_.dag.size(); ++i) {
      const PricedOption& option =
          at_knob_[pipeline_.table_of[i] * pipeline_.knobs.size() + knobs[i]];
      value += samples_.weight[i] * option.joules + prices[i] * option.seconds;
      chosen_[i] = option.seconds;
      *used += share_[i] * option.seconds;
    }
    return value;
  }

  // Each computation by itself, where changes cost nothing.
  double Value(double price, double* used) {
    double value = 0;
    *used = 0;
    if (most_changes_) return ValueWithChanges(price, used);
    for (int i = 0; i < pipeline_.dag.size(); ++i) {
      const double weight = samples_.weight[i];
      const double of_time = price * share_[i];
      double least = std::numeric_limits<double>::infinity();
      double seconds = 0;
      for (const PricedOption& option : options_[pipeline_.table_of[i]]) {
        const double costs = weight * option.joules + of_time * option.seconds;
        if (costs < least) {
          least = costs;
          seconds = option.seconds;
        }
      }
      value += least;
      chosen_[i] = seconds;
      *used += share_[i] * seconds;
    }
    return value;
  }

  // The time that a computation takes at a knob after another.
  PricedOption After(const std::vector<PricedOption>& options, std::size_t before,
                     std::size_t knob) const {
    const PricedOption& old = options[before];
    const PricedOption& option = options[knob];
    const double part = latency_ / old.seconds;
    return {option.seconds + latency_ - part * option.seconds,
            option.joules + part * (old.joules - option.joules)};
  }

  // A shortest path along every rank. Before the first computation any knob may have
  // been in effect.
  double ValueOfRanks(double price, double* used) {
    double value = 0;
    *used = 0;
    const std::size_t knobs = pipeline_.knobs.size();
    for (const std::vector<int>& order : pipeline_.dag.rank_order) {
      if (order.empty()) continue;
      std::vector<double> least(knobs, 0.0);
      std::vector<double> next(knobs);
      from_.assign(order.size() * knobs, 0);
      for (std::size_t k = 0; k < order.size(); ++k) {
        const int i = order[k];
        const std::vector<PricedOption>& options = options_[pipeline_.table_of[i]];
        const double of_time = price * share_[i];
        std::fill(next.begin(), next.end(), std::numeric_limits<double>::infinity());
        for (std::size_t before = 0; before < options.size(); ++before) {
          const double part = latency_ / options[before].seconds;
          const double fixed = least[before] + part * options[before].joules + of_time * latency_;
          for (std::size_t knob = 0; knob < options.size(); ++knob) {
            const double costs =
                before == knob
                    ? least[knob] + options[knob].joules + of_time * options[knob].seconds
                    : fixed + (1 - part) * (options[knob].joules + of_time * options[knob].seconds);
            if (costs < next[knob]) {
              next[knob] = costs;
              from_[k * knobs + knob] = static_cast<int>(before);
            }
          }
        }
        std::swap(least, next);
      }
      auto at =
          static_cast<std::size_t>(std::min_element(least.begin(), least.end()) - least.begin());
      value += least[at];
      for (std::size_t k = order.size(); k-- > 0;) {
        const int i = order[k];
        const auto before = static_cast<std::size_t>(from_[k * knobs + at]);
        const std::vector<PricedOption>& options = options_[pipeline_.table_of[i]];
        chosen_[i] = before == at ? options[at].seconds : After(options, before, at).seconds;
        *used += share_[i] * chosen_[i];
        at = before;
      }
    }
    return value;
  }

  // Replays the mean durations; where each lane's longest path goes.
  void Critical(std::vector<double>* critical, double* delay) {
    const PipelineDag& dag = pipeline_.dag;
    const int lanes = samples_.lanes;
    for (int i = 0; i < dag.size(); ++i) {
      double* const end = ends_.data() + static_cast<std::size_t>(i) * lanes;
      const double* const factor = samples_.TimeOf(i);
      for (int s = 0; s < lanes; ++s) end[s] = dag.start_delay_seconds[i];
      for (int k = dag.first_precedence[i]; k < dag.first_precedence[i + 1]; ++k) {
        const Precedence& precedence = dag.precedences[k];
        const double* const from = ends_.data() + static_cast<std::size_t>(precedence.from) * lanes;
        for (int s = 0; s < lanes; ++s) {
          const double at = from[s] + precedence.delay_seconds;
          end[s] = at > end[s] ? at : end[s];
        }
      }
      for (int s = 0; s < lanes; ++s) end[s] += mean_[i] * factor[s];
    }
    std::fill(critical->begin(), critical->end(), 0.0);
    *delay = dag.end_delay_seconds;
    const int jobs = lanes / samples_.pipelines;
    for (int job = 0; job < jobs; ++job) {
      int at = -1;
      int lane = 0;
      double last = -1;
      for (int i = 0; i < dag.size(); ++i) {
        for (int p = job * samples_.pipelines; p < (job + 1) * samples_.pipelines; ++p) {
          const double end = ends_[static_cast<std::size_t>(i) * lanes + p];
          if (end > last) {
            last = end;
            at = i;
            lane = p;
          }
        }
      }
      while (at >= 0) {
        (*critical)[at] += samples_.TimeOf(at)[lane] / jobs;
        double latest = dag.start_delay_seconds[at];
        double waits = latest;
        int from = -1;
        for (int k = dag.first_precedence[at]; k < dag.first_precedence[at + 1]; ++k) {
          const Precedence& precedence = dag.precedences[k];
          const double end = ends_[static_cast<std::size_t>(precedence.from) * lanes + lane] +
                             precedence.delay_seconds;
          if (end > latest) {
            latest = end;
            waits = precedence.delay_seconds;
            from = precedence.from;
          }
        }
        *delay += waits / jobs;
        at = from;
      }
    }
  }

  const CostedPipeline& pipeline_;
  const Samples& samples_;
  double accepted_;
  double latency_;
  std::optional<int> most_changes_;
  double first_price_ = 1;
  double change_joules_ = 0;
  int changes_ = 0;
  std::vector<PricedOption> at_knob_;  // [table x knobs + knob], where changes are limited.
  std::vector<std::vector<PricedOption>> options_;  // [table]
  std::vector<double> share_;   // [computation]: of lanes, with the factor of time.
  std::vector<double> mean_;    // [computation]: duration.
  std::vector<double> chosen_;  // [computation]: duration at the prices.
  std::vector<double> ends_;    // [computation x lanes + lane]
  std::vector<int> from_;       // [position x knobs + knob]
};

}  // namespace

DualBound BoundByPrices(const CostedPipeline& pipeline, const Samples& samples,
                        double accepted_seconds, double latency_seconds, int rounds) {
  return DualAscent(pipeline, samples, accepted_seconds, latency_seconds, {}).Run(rounds);
}

DualBound PricesForChanges(const CostedPipeline& pipeline, const Samples& samples,
                           double accepted_seconds, int most_changes, int rounds) {
  return DualAscent(pipeline, samples, accepted_seconds, 0, most_changes).Run(rounds);
}

namespace {

constexpr std::uint64_t kBoundSeed = 0xB0BD;  // No search sees these draws.

// Calls begin when computations start, and each outlasts a call at any clock.
bool PairsAreExact(const CostedPipeline& pipeline, const Conditions& conditions) {
  const ClockSwitching& switching = conditions.switching;
  if (conditions.noise.any() || switching.call_ahead != CallAhead::kNone ||
      !(switching.latency_seconds > 0) || !switching.latency_at.empty() ||
      switching.latency_spread_seconds > 0 || switching.stall_seconds > 0 ||
      switching.min_interval_seconds > 0) {
    return false;
  }
  return std::all_of(pipeline.tables.begin(), pipeline.tables.end(), [&](const CostTable& table) {
    return table.all_options.size() == pipeline.knobs.size() &&
           std::all_of(table.all_options.begin(), table.all_options.end(),
                       [&](const CostOption& option) {
                         return option.time_seconds > switching.latency_seconds;
                       });
  });
}

// No plan whose iteration takes from `shortest` to `accepted` has less energy, waiting included.
// With a second at a dual's price p, worked out for iterations of w seconds, no plan of t seconds
// has less effective energy than effective_joules + p (w - t); a second costs the blocking power
// besides. So each dual is a line below the energies, and the least of all is where the highest
// line is lowest: at an end, or where two lines meet.
class EnergyLines {
 public:
  EnergyLines(double watts, double shortest, double accepted)
      : watts_(watts), ends_{std::min(shortest, accepted), accepted} {}

  void Add(const DualBound& dual, double within) {
    lines_.push_back({dual.effective_joules + dual.price_of_time * within,  //
                      watts_ - dual.price_of_time});
  }

  double LeastJoules() const {
    double least = std::min(At(ends_.front()), At(ends_.back()));
    for (const Line& a : lines_) {
      for (const Line& b : lines_) {
        const double seconds = (b.joules - a.joules) / (a.watts - b.watts);
        if (a.watts > b.watts && seconds > ends_.front() && seconds < ends_.back())
          least = std::min(least, At(seconds));
      }
    }
    return least;
  }

 private:
  struct Line {
    double joules = 0;  // At no time.
    double watts = 0;
  };

  double At(double seconds) const {
    double most = -std::numeric_limits<double>::infinity();
    for (const Line& line : lines_) most = std::max(most, line.joules + line.watts * seconds);
    return most;
  }

  double watts_;
  std::array<double, 2> ends_;
  std::vector<Line> lines_;
};

std::vector<int> FastestKnobs(const CostedPipeline& pipeline) {
  std::vector<int> knobs;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const std::vector<CostOption>& options = pipeline.TableOf(i).all_options;
    knobs.push_back(std::min_element(options.begin(), options.end(),
                                     [](const CostOption& a, const CostOption& b) {
                                       return a.time_seconds < b.time_seconds;
                                     })
                        ->knob);
  }
  return knobs;
}

}  // namespace

RobustBound SavingBound(const Planner& planner, const RobustPlanSpec& spec, double slower_percent,
                        const ReplayedFigures& baseline) {
  constexpr int kRounds = 400;
  constexpr int kLanes = 128;
  constexpr int kMostCells = 1 << 20;
  const CostedPipeline& pipeline = planner.pipeline();
  const int lanes = std::clamp(kMostCells / pipeline.dag.size(), 16, kLanes);
  const Samples samples =
      DrawSamples(pipeline, spec.conditions.noise, spec.pipelines, lanes, kBoundSeed);
  LaneReplay replay(pipeline, {}, samples);
  replay.Reset(KnobsOf(planner.baseline().options));
  const double watts = pipeline.total_blocking_power_watts;
  // The baseline in the lanes, with the same draws; where its own clocks change (kinds whose
  // highest clocks differ), and without noise, as it is replayed.
  const bool as_replayed = !spec.conditions.noise.any() || pipeline.waiting_depends_on_clock() ||
                           CountChanges(pipeline.dag, KnobsOf(planner.baseline().options)) > 0;
  const double base_seconds =
      as_replayed ? baseline.iteration_time_seconds : replay.figures().seconds;
  const double base_joules = as_replayed ? baseline.energy_joules
                                         : replay.figures().effective_joules + watts * base_seconds;
  const double accepted = base_seconds * (1 + slower_percent / 100);
  const Frontier& frontier = planner.lower_bound();
  const double fastest = frontier.fastest_seconds;
  const auto saving = [&](double joules) { return 100 * (1 - joules / base_joules); };
  RobustBound bound;
  bound.proven = !spec.conditions.noise.any();
  if (bound.proven) {
    // The frontier is exact; work at a mixture of clocks is on its hulls.
    const double most = std::max(fastest, frontier.min_energy_seconds);
    bound.saving_without_switching_percent =
        saving(frontier.EnergyAt(std::clamp(accepted, fastest, most)));
  } else {
    // With noise an iteration may be shorter than the fastest without, but in the same draws none
    // is shorter than with every computation at its fastest.
    replay.Reset(FastestKnobs(pipeline));
    const double shortest = std::min(replay.figures().seconds, accepted);
    EnergyLines lines(watts, shortest, accepted);
    const auto add = [&](double within) {
      lines.Add(BoundByPrices(pipeline, samples, within, 0, kRounds), within);
    };
    add(accepted);
    // A target beyond the time of least energy says little of plans that end there: prices of
    // times about it do.
    const double min_energy =
        base_seconds * frontier.min_energy_seconds / planner.baseline().iteration_time_seconds;
    if (accepted > min_energy) {
      add(std::max(shortest, 0.99 * min_energy));
      add(std::min(accepted, 1.01 * min_energy));
    }
    bound.saving_without_switching_percent = saving(lines.LeastJoules());
  }
  bound.saving_percent = bound.saving_without_switching_percent;
  if (PairsAreExact(pipeline, spec.conditions)) {
    const DualBound dual = BoundByPrices(pipeline, samples, accepted,
                                         spec.conditions.switching.latency_seconds, kRounds);
    EnergyLines lines(watts, fastest, accepted);
    lines.Add(dual, accepted);
    bound.saving_percent = std::min(bound.saving_percent, saving(lines.LeastJoules()));
  }
  return bound;
}

namespace {

// Multiplications and the like: about two seconds of CPU, where that many are needed.
constexpr double kFewChangesWork = 2e9;
constexpr double kMostFewChangesWork = 1e16;

bool OnlyChangesAreLimited(const Planner& planner, const RobustPlanSpec& spec) {
  const CostedPipeline& pipeline = planner.pipeline();
  const Conditions& conditions = spec.conditions;
  return conditions.max_changes && conditions.change_joules == 0 && !conditions.noise.any() &&
         !conditions.switching.any() && CornersOf(conditions).size() == 1 &&
         !(conditions.profile_errors && !pipeline.errors.empty()) && !spec.constraints.any() &&
         !pipeline.waiting_depends_on_clock() &&
         pipeline.dag.size() <= plan::kMostPatternComputations;
}

}  // namespace

std::optional<FewChanges> SearchFewChanges(const Planner& planner, const RobustPlanSpec& spec,
                                           double accepted_seconds) {
  if (!OnlyChangesAreLimited(planner, spec)) return std::nullopt;
  const CostedPipeline& pipeline = planner.pipeline();
  const double watts = pipeline.total_blocking_power_watts;
  const plan::Guard guard;
  const double tolerance = plan::kSameJoules * planner.baseline().energy_joules;
  const auto work =
      static_cast<std::int64_t>(std::min(spec.effort * kFewChangesWork, kMostFewChangesWork));
  // Each limit is solved on its own, so that the best of all smaller ones is the same whichever
  // limit is asked for.
  const auto with_most = [&](std::int64_t changes) {
    return plan::SolvePatterns(pipeline, guard,
                               {.seconds = accepted_seconds,
                                .waiting_watts = watts,
                                .most_changes = changes,
                                .tolerance_joules = tolerance},
                               work);
  };
  const auto is_proven = [&](const plan::PatternSolution& found) {
    return found.bound_joules >= found.joules - tolerance;
  };
  std::int64_t changes = *spec.conditions.max_changes;
  plan::PatternSolution best = with_most(changes);
  const double least_joules = best.bound_joules + watts * accepted_seconds;
  for (bool proven = is_proven(best); !proven && changes > 0;) {
    plan::PatternSolution fewer = with_most(--changes);
    proven = is_proven(fewer);
    if (fewer.joules < best.joules) best = std::move(fewer);
  }
  return FewChanges{.options = std::move(best.options), .least_joules = least_joules};
}

}  // namespace perseus::robust
