// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "perseus/cost_curve.h"
#include "plan/block_bound.h"
#include "plan/cost_options.h"
#include "plan/option_search.h"
#include "plan/window_search.h"

namespace perseus::plan {
namespace {

// Points at which an exponential curve is sampled.
constexpr int kSamples = 64;

TimeCostProblem WithoutCurves(const CostedPipeline& pipeline) {
  TimeCostProblem problem;
  problem.curve_of = pipeline.table_of;
  problem.precedences.reserve(pipeline.dag.precedences.size());
  for (const Precedence& p : pipeline.dag.precedences) {
    problem.precedences.push_back({p.from, p.to, p.delay_seconds});
  }
  problem.earliest_start = pipeline.dag.start_delay_seconds;
  problem.end_delay = pipeline.dag.end_delay_seconds;
  return problem;
}

}  // namespace

Result<TimeCostProblem> MakeTimeCostProblem(const CostedPipeline& pipeline, const Guard& guard) {
  TimeCostProblem problem = WithoutCurves(pipeline);
  for (const CostTable& table : pipeline.tables) {
    std::vector<TimeCost>& curve = problem.curves.emplace_back();
    for (const CostOption& option : table.all_options) {
      curve.push_back({guard.Seconds(table, option), EffectiveEnergy(table, option)});
    }
  }
  return problem;
}

Result<TimeCostProblem> MakeExponentialProblem(const CostedPipeline& pipeline) {
  TimeCostProblem problem = WithoutCurves(pipeline);
  for (const CostTable& table : pipeline.tables) {
    // As the paper does: fit the energy of the Pareto-optimal options.
    std::vector<TimeEnergy> points;
    for (const CostOption& option : table.options) {
      points.push_back({option.time_seconds, option.energy_joules});
    }
    auto fit = FitExponential(points);
    if (!fit) return tl::unexpected(fit.error());
    const double fastest = points.front().time_seconds;
    const double slowest = points.back().time_seconds;
    std::vector<TimeCost>& curve = problem.curves.emplace_back();
    for (int k = 0; k <= kSamples; ++k) {
      const double seconds = k == kSamples ? slowest : fastest + (slowest - fastest) * k / kSamples;
      curve.push_back({seconds, (*fit)(seconds)-table.blocking_power_watts * seconds});
    }
  }
  return problem;
}

std::vector<GridOption> GridOptions(const CostTable& table, std::size_t num_knobs,
                                    const Guard& guard, const frontier::Scale& scale,
                                    double slowest_cost, double most_seconds) {
  std::vector<GridOption> options(num_knobs, GridOption{.length = -1});
  for (const CostOption& option : table.all_options) {
    if (guard.Seconds(table, option) > most_seconds) continue;
    const double cost = EffectiveEnergy(table, option) - slowest_cost;
    options[option.knob] = {.length = scale.TicksDown(guard.Seconds(table, option)),
                            .cost = static_cast<frontier::Int128>(
                                std::ldexp(cost, scale.time_bits + scale.slope_bits))};
  }
  return options;
}

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

namespace {

using frontier::Network;

// Units of search work that take about a second, for a pipeline of this size.
constexpr double kWorkPerPlan = 8e7;
// Windows do with less: what they begin from is nearly right.
constexpr double kWindowShare = 0.75;
constexpr double kComputationsPerPlan = 1536;

// More work than anybody will wait for.
constexpr double kMostWork = 1e16;

// Up to so many computations the search is by branch and bound.
constexpr int kMostToBranch = 64;

tl::unexpected<Error> NothingFound(double seconds) {
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("no plan within these constraints was found for {:.6g} s; give more "
                               "time or relax them",
                               seconds));
}

// The choices of a plan that ends within `most_ticks`.
Result<SearchSpace> MakeSearchSpace(const CostedPipeline& costs, const WalkedPipeline& walked,
                                    std::int64_t most_ticks, double seconds) {
  const Network& network = walked.network();
  SearchSpace space;
  for (std::size_t t = 0; t < costs.tables.size(); ++t) {
    space.options.push_back(GridOptions(costs.tables[t], costs.knobs.size(), walked.guard(),
                                        network.scale, network.curves[t].slowest_cost,
                                        network.scale.Time(most_ticks)));
  }
  std::vector<std::vector<int>> knobs_of(costs.tables.size());
  for (std::size_t t = 0; t < costs.tables.size(); ++t) {
    for (const CostOption& option : ParetoOptions(costs.tables[t], walked.guard())) {
      const std::int64_t length = space.options[t][option.knob].length;
      if (length >= 0 && length <= most_ticks) knobs_of[t].push_back(option.knob);
    }
  }
  for (const int table : costs.table_of) {
    if (knobs_of[table].empty()) return NothingFound(seconds);
    space.knobs.push_back(knobs_of[table]);
  }
  space.next.assign(costs.table_of.size(), -1);
  for (const std::vector<int>& order : costs.dag.rank_order) {
    for (std::size_t k = 1; k < order.size(); ++k) space.next[order[k - 1]] = order[k];
  }
  return space;
}

}  // namespace

Result<std::shared_ptr<const WalkedPipeline>> WalkedPipeline::Make(const TimeCostProblem& problem,
                                                                   const Guard& guard,
                                                                   const FrontierOptions& options,
                                                                   TimeCostFrontier* solved) {
  auto network = Network::Build(problem, options.slope_quantum);
  if (!network) return tl::unexpected(network.error());
  std::shared_ptr<WalkedPipeline> walked(new WalkedPipeline);
  walked->guard_ = guard;
  walked->network_ = std::make_unique<const Network>(*std::move(network));
  if (solved == nullptr) {
    walked->ladder_ = std::make_unique<const frontier::WalkLadder>(*walked->network_);
    return walked;
  }
  auto found = frontier::WalkFrontier(*walked->network_, options, &walked->ladder_);
  if (!found) return tl::unexpected(found.error());
  *solved = *std::move(found);
  return walked;
}

Result<std::vector<CostOption>> SearchPlan(const CostedPipeline& costs,
                                           const WalkedPipeline& walked, double seconds,
                                           double effort, const OptionsReport& report) {
  const Network& network = walked.network();
  const frontier::WalkLadder& ladder = walked.ladder();
  // The grid and Replay() add up a path with different roundings: a plan that
  // takes just `seconds` may take a hair more on the grid. ChosenOptions
  // decides in the end.
  const double slowest = network.scale.Time(ladder.slowest_time());
  const double most = seconds * (1 + kSameTime);
  std::int64_t deadline = most >= slowest ? ladder.slowest_time() : network.scale.TicksDown(most);
  if (deadline < ladder.fastest_time() && network.scale.Time(ladder.fastest_time()) > most) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("no plan within these constraints takes {:.6g} s; the fastest one "
                                 "takes at least {:.6g} s",
                                 seconds, network.scale.Time(ladder.fastest_time())));
  }
  deadline = std::max(deadline, ladder.fastest_time());
  frontier::DeadlineProgram program = ladder.ProgramAt(deadline);
  auto space = MakeSearchSpace(costs, walked, deadline, seconds);
  if (!space) return tl::unexpected(space.error());

  const double usual =
      kWorkPerPlan * std::max(1.0, static_cast<double>(costs.dag.size()) / kComputationsPerPlan);
  const bool branches = space->size() <= kMostToBranch;
  const double work = std::min(effort * usual * (branches ? 1 : kWindowShare), kMostWork);
  const SearchBudget budget = {.usual = static_cast<std::int64_t>(usual),
                               .limit = static_cast<std::int64_t>(work)};
  std::vector<CostOption> best;
  double best_joules = 0;
  const auto keep = [&](const std::vector<int>& knobs) {
    ChosenOptions chosen(costs, walked.guard(), space->knobs, knobs);
    if (!chosen.MeetDeadline(seconds)) return false;
    chosen.ReclaimSlack(seconds);
    const double joules = EffectiveEnergyOf(costs, chosen.options());
    if (!best.empty() && !(joules < best_joules)) return false;
    best = chosen.options();
    best_joules = joules;
    return true;
  };
  const ChoiceReport choice_report = [&](const std::vector<int>* better, std::int64_t done) {
    const bool kept = better != nullptr && keep(*better);
    const double share = work > 0 ? std::min(1.0, static_cast<double>(done) / work) : 1;
    return !report || report(kept ? &best : nullptr, share);
  };
  if (branches) {
    SearchOptions(network, std::move(program), *space, budget, choice_report);
  } else {
    SearchWindows(network, program, deadline, *space, budget, choice_report);
  }
  if (best.empty()) return NothingFound(seconds);
  return best;
}

Result<EffectiveBound> BoundPlans(const CostedPipeline& costs, const WalkedPipeline& walked,
                                  double seconds, double effort) {
  const Network& network = walked.network();
  const frontier::WalkLadder& ladder = walked.ladder();
  EffectiveBound bound;
  double rounding = 0;
  double slowest_cost = 0;
  for (const int c : network.curve_of) {
    const frontier::Curve& curve = network.curves[c];
    slowest_cost += curve.slowest_cost;
    rounding += curve.cost_above + curve.cost_below +
                kSameTime * (std::abs(curve.slowest_cost) + network.scale.Cost(curve.costs.back()));
  }
  // As a search does: a plan may take a hair more on the grid than it really does.
  const double most = seconds * (1 + kSameTime);
  std::int64_t deadline = most >= network.scale.Time(ladder.slowest_time())
                              ? ladder.slowest_time()
                              : network.scale.TicksDown(most);
  deadline = std::max(deadline, ladder.fastest_time());
  const frontier::DeadlineProgram program = ladder.ProgramAt(deadline);
  bound.relaxed_joules = slowest_cost + network.scale.Cost(program.objective()) - rounding;
  auto space = MakeSearchSpace(costs, walked, deadline, seconds);
  if (!space) return tl::unexpected(space.error());
  const double usual =
      kWorkPerPlan * std::max(1.0, static_cast<double>(costs.dag.size()) / kComputationsPerPlan);
  const BlockBound blocks =
      BoundByBlocks(network, program, deadline, *space, costs.dag.rank_order,
                    static_cast<std::int64_t>(std::min(effort * usual, kMostWork)), effort > 1);
  bound.discrete_joules = bound.relaxed_joules + network.scale.Cost(blocks.gain);
  bound.blocks = blocks.blocks;
  bound.proven = blocks.proven;
  return bound;
}

}  // namespace perseus::plan
