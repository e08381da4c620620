// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "frontier/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace perseus::frontier_testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int Below(std::mt19937& random, int bound) {
  return static_cast<int>(random() % static_cast<std::uint32_t>(bound));
}

std::vector<TimeCost> AnyCurve(std::mt19937& random, const ProblemShape& shape) {
  std::vector<TimeCost> curve(1 + Below(random, shape.most_options));
  for (TimeCost& option : curve) {
    option = {static_cast<double>(Below(random, shape.longest + 1)),
              static_cast<double>(Below(random, 24) - 4)};
  }
  return curve;
}

std::vector<TimeCost> WholeSlopeCurve(std::mt19937& random, const ProblemShape& shape) {
  // From the slowest vertex on, ever steeper.
  int time = shape.longest - Below(random, 2);
  int cost = Below(random, 10) - 4;
  int slope = 0;
  std::vector<TimeCost> curve;
  for (int k = Below(random, shape.most_options); k >= 0; --k) {
    curve.push_back({static_cast<double>(time), static_cast<double>(cost)});
    const int step = 1 + Below(random, 2);
    slope += 1 + Below(random, 4);
    if (time < step) break;
    time -= step;
    cost += slope * step;
  }
  std::shuffle(curve.begin(), curve.end(), random);
  return curve;
}

}  // namespace

TimeCostProblem RandomProblem(std::mt19937& random, const ProblemShape& shape) {
  TimeCostProblem problem;
  const int curves = 1 + Below(random, 3);
  for (int c = 0; c < curves; ++c) {
    problem.curves.push_back(shape.whole_slopes ? WholeSlopeCurve(random, shape)
                                                : AnyCurve(random, shape));
  }
  const int n = 1 + Below(random, shape.most_activities);
  for (int i = 0; i < n; ++i) problem.curve_of.push_back(Below(random, curves));
  std::vector<int> place(n);
  std::iota(place.begin(), place.end(), 0);
  std::shuffle(place.begin(), place.end(), random);
  const int density = Below(random, 5);  // Of 4.
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (place[i] >= place[j] || Below(random, 4) >= density) continue;
      const bool delay = shape.delays && Below(random, 4) == 0;
      problem.precedences.push_back({i, j, delay ? static_cast<double>(Below(random, 3)) : 0.0});
    }
  }
  if (shape.delays && Below(random, 3) == 0) {
    for (int i = 0; i < n; ++i) {
      problem.earliest_start.push_back(static_cast<double>(Below(random, 3)));
    }
  }
  if (shape.delays && Below(random, 3) == 0) problem.end_delay = Below(random, 3);
  return problem;
}

TimeCostProblem HouseProblem() {
  TimeCostProblem house;
  house.curves = {{{2, 90}, {4, 40}, {5, 30}}, {{3, 50}, {6, 20}}};
  house.curve_of = {0, 1, 1};
  house.precedences = {{0, 1, 0.0}, {0, 2, 0.0}};
  return house;
}

TimeCostProblem Chain(std::vector<TimeCost> curve, int count) {
  TimeCostProblem problem;
  problem.curves = {std::move(curve)};
  problem.curve_of.assign(count, 0);
  for (int i = 1; i < count; ++i) problem.precedences.push_back({i - 1, i, 0.0});
  return problem;
}

TimeCostProblem UnevenPipeline(int stages, int microbatches) {
  TimeCostProblem problem;
  // [stage][microbatch] -> activity.
  std::vector<std::vector<int>> forward(stages, std::vector<int>(microbatches));
  std::vector<std::vector<int>> backward = forward;
  for (int stage = 0; stage < stages; ++stage) {
    for (const int work : {1, 2}) {
      std::vector<TimeCost>& curve = problem.curves.emplace_back();
      for (int k = 0; k < 10; ++k) {
        curve.push_back({static_cast<double>((100 + 7 * k) * (16 * work + stage * 5 % 7)),
                         static_cast<double>((2000 + (9 - k) * (29 - k)) * (32 + stage * 3 % 5))});
      }
    }
    const int in_flight = std::min(microbatches, stages - stage);
    for (int step = 0; step < microbatches + in_flight; ++step) {
      const auto add = [&](int kind, int& slot) {
        slot = static_cast<int>(problem.curve_of.size());
        problem.curve_of.push_back(2 * stage + kind);
        const bool first = kind == 0 && &slot == &forward[stage][0];
        if (!first) problem.precedences.push_back({slot - 1, slot, 0});
      };
      // In the steady state a backward comes before the next forward.
      if (step >= in_flight) add(1, backward[stage][step - in_flight]);
      if (step < microbatches) add(0, forward[stage][step]);
    }
  }
  for (int stage = 0; stage + 1 < stages; ++stage) {
    for (int m = 0; m < microbatches; ++m) {
      problem.precedences.push_back({forward[stage][m], forward[stage + 1][m], 0});
      problem.precedences.push_back({backward[stage + 1][m], backward[stage][m], 0});
    }
  }
  return problem;
}

FrontierOptions StopAtTime(double time) {
  FrontierOptions options;
  options.stop_time = time;
  return options;
}

FrontierOptions StopAtSlope(double slope) {
  FrontierOptions options;
  options.stop_slope = slope;
  return options;
}

FrontierOptions WithQuantum(double slope_quantum) {
  FrontierOptions options;
  options.slope_quantum = slope_quantum;
  return options;
}

FrontierOptions WithSchedules(std::vector<double> times) {
  FrontierOptions options;
  options.schedule_times = std::move(times);
  return options;
}

double HullCost(const std::vector<TimeCost>& options, double time) {
  double least = kInfinity;
  for (const TimeCost& a : options) {
    if (a.time <= time) least = std::min(least, a.cost);
    for (const TimeCost& b : options) {
      if (!(a.time <= time && time < b.time)) continue;
      const double share = (time - a.time) / (b.time - a.time);
      least = std::min(least, a.cost + share * (b.cost - a.cost));
    }
  }
  return least;
}

double LongestPath(const TimeCostProblem& problem, const std::vector<double>& durations) {
  const int n = static_cast<int>(problem.curve_of.size());
  std::vector<double> start(n, 0);
  if (!problem.earliest_start.empty()) start = problem.earliest_start;
  // As often as a path can have arcs.
  for (int round = 0; round < n; ++round) {
    for (const TimeCostPrecedence& p : problem.precedences) {
      start[p.to] = std::max(start[p.to], start[p.from] + durations[p.from] + p.delay);
    }
  }
  double end = 0;
  for (int i = 0; i < n; ++i) end = std::max(end, start[i] + durations[i]);
  return end + problem.end_delay;
}

std::vector<double> EnumerateCosts(const TimeCostProblem& problem) {
  const int n = static_cast<int>(problem.curve_of.size());
  std::vector<int> first(n);
  std::vector<int> last(n);
  std::vector<double> durations(n);
  for (int i = 0; i < n; ++i) {
    const auto [a, b] = std::minmax_element(
        problem.curves[problem.curve_of[i]].begin(), problem.curves[problem.curve_of[i]].end(),
        [](const TimeCost& x, const TimeCost& y) { return x.time < y.time; });
    first[i] = static_cast<int>(a->time);
    last[i] = static_cast<int>(b->time);
    durations[i] = last[i];
  }
  std::vector<double> least(static_cast<std::size_t>(LongestPath(problem, durations)) + 1,
                            kInfinity);
  for (int i = 0; i < n; ++i) durations[i] = first[i];
  for (;;) {
    double cost = 0;
    for (int i = 0; i < n; ++i) cost += HullCost(problem.curves[problem.curve_of[i]], durations[i]);
    double& entry = least[static_cast<std::size_t>(LongestPath(problem, durations))];
    entry = std::min(entry, cost);
    int i = 0;
    for (; i < n && durations[i] == last[i]; ++i) durations[i] = first[i];
    if (i == n) break;
    durations[i] += 1;
  }
  for (std::size_t k = 1; k < least.size(); ++k) least[k] = std::min(least[k], least[k - 1]);
  return least;
}

double CostAt(const TimeCostFrontier& frontier, double time) {
  const auto& points = frontier.breakpoints;
  for (std::size_t k = 0; k + 1 < points.size(); ++k) {
    if (time > points[k + 1].time) continue;
    return points[k + 1].cost + points[k].slope * (points[k + 1].time - time);
  }
  return points.back().cost;
}

std::string CheckOptimal(const TimeCostProblem& problem,
                         const std::vector<std::vector<TimeCost>>& curves,
                         const TimeCostSchedule& schedule, double tolerance) {
  const int n = static_cast<int>(problem.curve_of.size());
  const double time_slack = tolerance * schedule.time;
  const auto earliest = [&](int i) {
    return problem.earliest_start.empty() ? 0.0 : problem.earliest_start[i];
  };
  double cost = 0;
  double magnitude = 0;
  for (int i = 0; i < n; ++i) {
    const std::vector<TimeCost>& curve = curves[problem.curve_of[i]];
    if (schedule.start[i] < earliest(i) - time_slack) {
      return fmt::format("activity {} starts at {}", i, schedule.start[i]);
    }
    if (schedule.start[i] + schedule.duration[i] + problem.end_delay > schedule.time + time_slack) {
      return fmt::format("activity {} ends too late", i);
    }
    if (schedule.duration[i] < curve.front().time) {
      return fmt::format("activity {} takes {}, faster than possible", i, schedule.duration[i]);
    }
    cost += HullCost(curve, schedule.duration[i]);
    magnitude += std::abs(curve.front().cost) + std::abs(curve.back().cost);
  }
  magnitude += schedule.price_of_time * schedule.time;
  if (std::abs(cost - schedule.cost) > tolerance * magnitude) {
    return fmt::format("the cost is said to be {}, but durations cost {}", schedule.cost, cost);
  }

  std::vector<double> in(n, 0);
  std::vector<double> out(n, 0);
  std::vector<bool> is_first(n, true);
  std::vector<bool> is_last(n, true);
  double delay_value = 0;
  for (std::size_t p = 0; p < problem.precedences.size(); ++p) {
    const TimeCostPrecedence& precedence = problem.precedences[p];
    const double price = schedule.precedence_price[p];
    if (price < 0) return fmt::format("precedence {} has the price {}", p, price);
    if (schedule.start[precedence.from] + schedule.duration[precedence.from] + precedence.delay >
        schedule.start[precedence.to] + time_slack) {
      return fmt::format("precedence {} is violated", p);
    }
    in[precedence.to] += price;
    out[precedence.from] += price;
    is_first[precedence.to] = false;
    is_last[precedence.from] = false;
    delay_value += price * precedence.delay;
  }
  const double price_slack = tolerance * schedule.price_of_time;
  double from_source = 0;
  double to_sink = 0;
  double bound = 0;
  for (int i = 0; i < n; ++i) {
    const double price = schedule.price[i];
    if (price < 0) return fmt::format("activity {} has the price {}", i, price);
    const double entering = price - in[i];
    const double leaving = price - out[i];
    const bool may_enter = is_first[i] || earliest(i) > 0;
    if (entering < -price_slack || (!may_enter && entering > price_slack)) {
      return fmt::format("prices {} before activity {} at {}", in[i], i, price);
    }
    if (leaving < -price_slack || (!is_last[i] && leaving > price_slack)) {
      return fmt::format("prices {} after activity {} at {}", out[i], i, price);
    }
    from_source += entering;
    to_sink += leaving;
    delay_value += entering * earliest(i) + leaving * problem.end_delay;
    double least = kInfinity;
    for (const TimeCost& option : curves[problem.curve_of[i]]) {
      least = std::min(least, option.cost + price * option.time);
    }
    bound += least;
  }
  if (std::abs(from_source - schedule.price_of_time) > price_slack * n ||
      std::abs(to_sink - schedule.price_of_time) > price_slack * n) {
    return fmt::format("{} leaves the source and {} reaches the sink at a price of {}", from_source,
                       to_sink, schedule.price_of_time);
  }
  if (std::abs(delay_value - schedule.delay_value) > tolerance * magnitude) {
    return fmt::format("the delays are worth {}, not {}", delay_value, schedule.delay_value);
  }
  bound += delay_value - schedule.price_of_time * schedule.time;
  if (std::abs(bound - schedule.cost) > tolerance * magnitude) {
    return fmt::format("prices prove {}, but the cost is {}", bound, schedule.cost);
  }
  return "";
}

std::string CheckConvex(const TimeCostFrontier& frontier, double tolerance) {
  const auto& points = frontier.breakpoints;
  if (points.empty()) return "no breakpoints";
  if (points.back().slope != 0) return fmt::format("the last slope is {}", points.back().slope);
  for (std::size_t k = 0; k + 1 < points.size(); ++k) {
    const FrontierBreakpoint& a = points[k];
    const FrontierBreakpoint& b = points[k + 1];
    if (!(a.time < b.time)) return fmt::format("times {} and {}", a.time, b.time);
    if (!(a.cost > b.cost)) return fmt::format("costs {} and {}", a.cost, b.cost);
    // Slopes have more bits than a double: two may print as one.
    const bool falls = tolerance > 0 ? a.slope >= b.slope : a.slope > b.slope;
    if (!falls) return fmt::format("slopes {} and {}", a.slope, b.slope);
    const double rise = a.slope * (b.time - a.time);
    if (std::abs(a.cost - b.cost - rise) > tolerance * (std::abs(a.cost) + std::abs(b.cost))) {
      return fmt::format("slope {} from ({}, {}) to ({}, {})", a.slope, a.time, a.cost, b.time,
                         b.cost);
    }
  }
  return "";
}

}  // namespace perseus::frontier_testing
