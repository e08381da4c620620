// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "frontier/deadline_program.h"
#include "frontier/network.h"
#include "frontier/walk.h"
#include "perseus/frontier.h"
#include "perseus/plan.h"
#include "plan/chosen_options.h"
#include "plan/group_search.h"
#include "plan/grouping.h"
#include "plan/knob_subset.h"
#include "plan/option_search.h"
#include "plan/time_cost_problem.h"

namespace perseus {
namespace {

using frontier::Network;
using plan::Guard;

// Units of search work that take about a second, for a pipeline of this size.
constexpr double kWorkPerPlan = 2.6e8;
constexpr double kComputationsPerPlan = 1536;

// Share of the work that goes into dives where computations share knobs; the
// rest is for ImproveGroups().
constexpr double kSharedKnobsDiveShare = 0.3;

// More time than this times the slowest frontier time is of no use to anybody.
constexpr double kMostSlowdown = 4;

// Sums of doubles and of ticks along a path differ by far less than this.
constexpr double kSameTime = 1e-12;

constexpr double kSameSlope = 1e-14;
constexpr double kSameEnergy = 1e-11;

// More work than anybody will wait for.
constexpr double kMostWork = 1e16;

// Above this the exact walk takes minutes.
constexpr int kCoarseComputations = 20000;
// The advised quantum, as a share of the mean power at the highest clock.
constexpr double kCoarseShare = 1.0 / 180;

double CoarseQuantum(const CostedPipeline& pipeline) {
  double energy = 0;
  double seconds = 0;
  for (const int table : pipeline.table_of) {
    energy += pipeline.tables[table].baseline.energy_joules;
    seconds += pipeline.tables[table].baseline.time_seconds;
  }
  return kCoarseShare * energy / seconds;
}

Frontier MakeFrontier(const TimeCostFrontier& solved, const CostedPipeline& pipeline,
                      double slope_quantum, double fastest_seconds, double tstar_seconds) {
  const double watts = pipeline.total_blocking_power_watts;
  Frontier frontier;
  for (const FrontierBreakpoint& corner : solved.breakpoints) {
    frontier.points.push_back({.iteration_time_seconds = corner.time,
                               .energy_joules = corner.cost + watts * corner.time,
                               .slope_watts = corner.slope});
  }
  // The grid's ticks are finer than what doubles resolve over a path: state
  // both ends as Replay() adds them up.
  FrontierPoint& first = frontier.points.front();
  FrontierPoint& last = frontier.points.back();
  first.iteration_time_seconds = fastest_seconds;
  if (frontier.points.size() > 1) last.iteration_time_seconds = tstar_seconds;
  const auto is_hidden = [&first, &last](const FrontierPoint& point) {
    return &point != &first && &point != &last &&
           (point.iteration_time_seconds <= first.iteration_time_seconds ||
            point.iteration_time_seconds >= last.iteration_time_seconds);
  };
  std::vector<FrontierPoint> points;
  std::remove_copy_if(frontier.points.begin(), frontier.points.end(), std::back_inserter(points),
                      is_hidden);
  // Corners between slopes that are one and the same but for rounding.
  frontier.points.clear();
  for (const FrontierPoint& point : points) {
    if (!frontier.points.empty() &&
        point.slope_watts >= frontier.points.back().slope_watts * (1 - kSameSlope)) {
      if (&point != &points.back()) continue;
      frontier.points.pop_back();
    }
    frontier.points.push_back(point);
  }
  frontier.fastest_seconds = fastest_seconds;
  frontier.tstar_seconds = tstar_seconds;
  const auto economic =
      std::find_if(frontier.points.begin(), frontier.points.end(),
                   [watts](const FrontierPoint& p) { return p.slope_watts <= watts; });
  frontier.economic_seconds = economic->iteration_time_seconds;
  frontier.slope_quantum_watts = slope_quantum;
  // In exact mode the only error is that of doubles themselves.
  if (slope_quantum > 0 && economic->energy_joules > 0) {
    frontier.certified_error = solved.cost_error / economic->energy_joules;
  }
  return frontier;
}

}  // namespace

double Frontier::EnergyAt(double seconds, double total_blocking_power_watts) const {
  const auto right = std::lower_bound(
      points.begin(), points.end(), seconds,
      [](const FrontierPoint& point, double t) { return point.iteration_time_seconds < t; });
  if (right == points.begin()) return right->energy_joules;
  if (right == points.end()) {
    const FrontierPoint& last = points.back();
    return last.energy_joules +
           total_blocking_power_watts * (seconds - last.iteration_time_seconds);
  }
  const FrontierPoint& a = *(right - 1);
  const double share = (seconds - a.iteration_time_seconds) /
                       (right->iteration_time_seconds - a.iteration_time_seconds);
  return a.energy_joules + share * (right->energy_joules - a.energy_joules);
}

namespace {

tl::unexpected<Error> NothingFound(double seconds) {
  return MakeError(ErrorCode::kInfeasible,
                   fmt::format("no plan within these constraints was found for {:.6g} s; give more "
                               "time or relax them",
                               seconds));
}

}  // namespace

struct Planner::Impl {
  CostedPipeline pipeline;
  double slope_quantum = 0;
  Frontier frontier;
  Frontier bound;  // The frontier of the options themselves, also where a fit is shown.
  Plan baseline;

  // Fills in every figure of a plan from its options.
  void Evaluate(Plan* plan) const {
    std::vector<double> durations;
    durations.reserve(plan->options.size());
    for (const CostOption& option : plan->options) durations.push_back(option.time_seconds);
    plan->iteration_time_seconds = Replay(pipeline.dag, durations).iteration_time_seconds;
    plan->energy_joules = IterationEnergy(pipeline, plan->options, plan->iteration_time_seconds);
    const double least =
        bound.EnergyAt(plan->iteration_time_seconds, pipeline.total_blocking_power_watts);
    plan->lower_bound_joules = least * (1 - bound.certified_error);
    // Where energies cancel out, what is left is rounding.
    double magnitude = pipeline.total_blocking_power_watts * plan->iteration_time_seconds;
    for (const CostOption& option : plan->options) magnitude += option.energy_joules;
    plan->gap_percent = 0;
    if (plan->lower_bound_joules > kSameEnergy * magnitude) {
      plan->gap_percent =
          100 * (plan->energy_joules - plan->lower_bound_joules) / plan->lower_bound_joules;
    }
    plan->average_power_watts =
        plan->iteration_time_seconds > 0 ? plan->energy_joules / plan->iteration_time_seconds : 0;
    std::set<int> knobs;
    plan->knob_changes = 0;
    for (const std::vector<int>& order : pipeline.dag.rank_order) {
      for (std::size_t k = 0; k < order.size(); ++k) {
        knobs.insert(plan->options[order[k]].knob);
        if (k > 0 && plan->options[order[k]].knob != plan->options[order[k - 1]].knob) {
          ++plan->knob_changes;
        }
      }
    }
    plan->distinct_knobs = static_cast<int>(knobs.size());
  }

  // Whether all-maximum clocks are a plan under the constraints.
  bool BaselineFits(const PlanConstraints& constraints) const {
    if (constraints.max_knobs > 0 && baseline.distinct_knobs > constraints.max_knobs) return false;
    const plan::Grouping grouping = plan::GroupComputations(pipeline, constraints);
    return std::all_of(
        grouping.members.begin(), grouping.members.end(), [this](const std::vector<int>& members) {
          return std::all_of(members.begin(), members.end(), [&](int i) {
            return baseline.options[i].knob == baseline.options[members.front()].knob;
          });
        });
  }

  Result<Plan> Search(const CostedPipeline& costs, double seconds,
                      const PlanConstraints& constraints, double effort) const;
};

Planner::Planner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Planner::Planner(Planner&&) noexcept = default;
Planner& Planner::operator=(Planner&&) noexcept = default;
Planner::~Planner() = default;

const CostedPipeline& Planner::pipeline() const { return impl_->pipeline; }
const Frontier& Planner::frontier() const { return impl_->frontier; }
const Plan& Planner::baseline() const { return impl_->baseline; }

Result<Planner> Planner::Create(CostedPipeline pipeline, const PlannerOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->pipeline = std::move(pipeline);
  const CostedPipeline& costs = impl->pipeline;
  impl->slope_quantum = options.slope_quantum_watts;
  if (impl->slope_quantum < 0) {
    impl->slope_quantum = costs.dag.size() > kCoarseComputations ? CoarseQuantum(costs) : 0;
  }

  auto problem = plan::MakeTimeCostProblem(costs, Guard{});
  if (!problem) return tl::unexpected(problem.error());
  FrontierOptions solver_options;
  solver_options.slope_quantum = impl->slope_quantum;
  solver_options.progress = options.progress;
  auto solved = SolveFrontier(*problem, solver_options);
  if (!solved) return tl::unexpected(solved.error());

  std::vector<double> fastest;
  std::vector<double> slowest;
  for (const int table : costs.table_of) {
    const auto& curve = problem->curves[table];
    const auto by_time = [](const TimeCost& a, const TimeCost& b) { return a.time < b.time; };
    const auto by_cost = [](const TimeCost& a, const TimeCost& b) {
      return a.cost != b.cost ? a.cost < b.cost : a.time < b.time;
    };
    fastest.push_back(std::min_element(curve.begin(), curve.end(), by_time)->time);
    slowest.push_back(std::min_element(curve.begin(), curve.end(), by_cost)->time);
  }
  const double fastest_seconds = Replay(costs.dag, fastest).iteration_time_seconds;
  const double tstar_seconds = Replay(costs.dag, slowest).iteration_time_seconds;
  const auto in_user_units = [&](const TimeCostFrontier& found) {
    return MakeFrontier(found, costs, impl->slope_quantum, fastest_seconds, tstar_seconds);
  };
  impl->bound = in_user_units(*solved);
  impl->frontier = impl->bound;
  if (options.exponential_fit) {
    auto fitted = plan::MakeExponentialProblem(costs);
    if (!fitted) return tl::unexpected(fitted.error());
    auto fitted_frontier = SolveFrontier(*fitted, solver_options);
    if (!fitted_frontier) return tl::unexpected(fitted_frontier.error());
    impl->frontier = in_user_units(*fitted_frontier);
    impl->frontier.fitted = true;
  }

  Plan& baseline = impl->baseline;
  for (const int table : costs.table_of) baseline.options.push_back(costs.tables[table].baseline);
  impl->Evaluate(&baseline);
  baseline.requested_time_seconds = baseline.iteration_time_seconds;
  return Planner(std::move(impl));
}

namespace {

// With six digits or as many more as it takes not to be less than `value`:
// what an error advises must work.
std::string RoundedUp(double value) {
  for (int digits = 6; digits < 17; ++digits) {
    const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(value)));
    const double rounded = std::ceil(value * scale) / scale;
    if (rounded >= value) return fmt::format("{:.{}g}", rounded, digits);
  }
  return fmt::format("{}", value);
}

}  // namespace

Result<double> Planner::TargetSeconds(const PlanTarget& target) const {
  const Frontier& frontier = impl_->frontier;
  const double baseline = impl_->baseline.iteration_time_seconds;
  double seconds = 0;
  switch (target.kind) {
    case PlanTarget::Kind::kEconomic:
      return frontier.economic_seconds;
    case PlanTarget::Kind::kFastest:
      return frontier.fastest_seconds;
    case PlanTarget::Kind::kTStar:
      return frontier.tstar_seconds;
    case PlanTarget::Kind::kBaselineFactor:
      seconds = target.value * baseline;
      break;
    case PlanTarget::Kind::kSeconds:
      seconds = target.value;
      break;
  }
  if (!(seconds >= frontier.fastest_seconds)) {
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("no plan takes {:.6g} s: the fastest possible iteration takes {} s ({}x of the "
                    "all-maximum-clock time); ask for at least that, or for 'fastest'",
                    seconds, RoundedUp(frontier.fastest_seconds),
                    RoundedUp(frontier.fastest_seconds / baseline)));
  }
  return seconds;
}

// Searches a plan on `costs`, which has the pipeline's DAG and perhaps fewer
// options.
Result<Plan> Planner::Impl::Search(const CostedPipeline& costs, double seconds,
                                   const PlanConstraints& constraints, double effort) const {
  const Guard guard = {constraints.time_margin_sigmas, constraints.time_margin_fraction};
  auto problem = plan::MakeTimeCostProblem(costs, guard);
  if (!problem) return tl::unexpected(problem.error());
  // Rounded slopes only where the walk would take too long: the bounds of the
  // search are then exact.
  auto network =
      Network::Build(*problem, costs.dag.size() > kCoarseComputations ? slope_quantum : 0);
  if (!network) return tl::unexpected(network.error());

  plan::Grouping grouping = plan::GroupComputations(costs, constraints);
  const bool shared_knobs = grouping.members.size() < costs.table_of.size();

  // The grid and Replay() add up a path with different roundings: a plan that
  // takes just `seconds` may take a hair more on the grid. ChosenOptions
  // decides in the end. Beyond the slowest time only shared knobs have a use
  // for more.
  frontier::Walk walk(*network);
  const double slowest = network->scale.Time(walk.time());
  const double most = seconds * (1 + kSameTime);
  const std::int64_t deadline =
      !shared_knobs && most >= slowest
          ? walk.time()
          : network->scale.TicksDown(std::min(most, kMostSlowdown * slowest));
  while (!walk.at_fastest() && walk.next_time() > deadline) walk.Advance();
  const std::int64_t start = walk.at_fastest() ? walk.time() : std::min(walk.time(), deadline);
  if (deadline < start && network->scale.Time(start) > seconds * (1 + kSameTime)) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("no plan within these constraints takes {:.6g} s; the fastest one "
                                 "takes at least {:.6g} s",
                                 seconds, network->scale.Time(start)));
  }
  frontier::DeadlineProgram program(*network, walk, start);
  const std::int64_t within = std::max(start, deadline);
  if (within > start) {
    program.SetDeadline(within);
    program.Optimise(frontier::kNoLimit);
  }

  plan::SearchSpace space;
  for (std::size_t t = 0; t < costs.tables.size(); ++t) {
    space.options.push_back(plan::GridOptions(costs.tables[t], costs.knobs.size(), guard,
                                              network->scale, network->curves[t].slowest_cost,
                                              network->scale.Time(within)));
  }
  for (const std::vector<int>& members : grouping.members) {
    auto knobs = plan::CommonKnobs(costs, guard, members);
    if (!knobs) return tl::unexpected(knobs.error());
    // A group is on one rank, so its members' times add up.
    std::erase_if(*knobs, [&](int knob) {
      frontier::Int128 length = 0;
      for (const int i : members) {
        const plan::GridOption& option = space.options[costs.table_of[i]][knob];
        if (option.length < 0) return true;
        length += option.length;
      }
      return length > within;
    });
    if (knobs->empty()) return NothingFound(seconds);
    space.knobs.push_back(*std::move(knobs));
  }
  space.groups = std::move(grouping.members);
  space.next_group = std::move(grouping.next);

  const double full_work =
      kWorkPerPlan * std::max(1.0, static_cast<double>(costs.dag.size()) / kComputationsPerPlan);
  const double work = std::min(effort * full_work, kMostWork);
  auto knobs = plan::SearchOptions(
      *network, std::move(program), space,
      static_cast<std::int64_t>(shared_knobs ? work * kSharedKnobsDiveShare : work),
      static_cast<std::int64_t>(full_work));
  if (!knobs) return NothingFound(seconds);
  if (shared_knobs) {
    knobs = plan::ImproveGroups(*network, space, within, walk.slope(), *std::move(knobs),
                                static_cast<std::int64_t>(work * (1 - kSharedKnobsDiveShare)));
  }

  plan::ChosenOptions chosen(costs, guard, space.groups, space.knobs, *knobs);
  if (!chosen.MeetDeadline(seconds)) return NothingFound(seconds);
  if (!shared_knobs) chosen.ReclaimSlack(seconds);
  Plan plan;
  plan.options = chosen.options();
  return plan;
}

namespace {

Result<void> CheckConstraints(const PlanConstraints& constraints, double effort) {
  const auto check = [](std::string_view what, double value) -> Result<void> {
    if (value >= 0 && std::isfinite(value)) return {};
    return InvalidInput(fmt::format("{} is {}; expected a number >= 0", what, value));
  };
  if (!(effort > 0) || !std::isfinite(effort)) {
    return InvalidInput(fmt::format("the effort is {}; expected a number > 0", effort));
  }
  if (auto r = check("the minimum dwell", constraints.min_dwell_seconds); !r) return r;
  if (auto r = check("the number of distinct knobs", constraints.max_knobs); !r) return r;
  if (auto r = check("the time margin", constraints.time_margin_sigmas); !r) return r;
  return check("the time margin", constraints.time_margin_fraction);
}

}  // namespace

Result<Plan> Planner::PlanFor(double seconds, const PlanConstraints& constraints,
                              double effort) const {
  const Impl& impl = *impl_;
  if (auto checked = CheckConstraints(constraints, effort); !checked) {
    return tl::unexpected(checked.error());
  }
  if (!(seconds >= impl.frontier.fastest_seconds)) {
    return tl::unexpected(TargetSeconds({PlanTarget::Kind::kSeconds, seconds}).error());
  }
  const auto has_spread = [](const CostTable& table) {
    return std::any_of(table.all_options.begin(), table.all_options.end(),
                       [](const CostOption& option) { return option.time_std_seconds > 0; });
  };
  if (constraints.time_margin_sigmas > 0 && constraints.time_margin_fraction == 0 &&
      std::none_of(impl.pipeline.tables.begin(), impl.pipeline.tables.end(), has_spread)) {
    return InvalidInput(
        "a time margin in standard deviations needs the profile's spread, but it has no time_std "
        "column (or only zeros); give the margin as a share, such as 1%");
  }
  const auto search = [&]() -> Result<Plan> {
    if (constraints.max_knobs == 0) return impl.Search(impl.pipeline, seconds, constraints, effort);
    const Guard guard = {constraints.time_margin_sigmas, constraints.time_margin_fraction};
    auto few = plan::KeepFewKnobs(impl.pipeline, guard, seconds, constraints.max_knobs);
    if (!few) return tl::unexpected(few.error());
    return impl.Search(*few, seconds, constraints, effort);
  };
  Result<Plan> plan = search();
  if (!plan) {
    // Where the search finds nothing there may still be what everybody has.
    const bool fits = plan.error().code == ErrorCode::kInfeasible &&
                      seconds >= impl.baseline.iteration_time_seconds &&
                      impl.BaselineFits(constraints);
    if (!fits) return plan;
    plan = impl.baseline;
  }
  plan->requested_time_seconds = seconds;
  impl.Evaluate(&*plan);
  if (impl.baseline.energy_joules > 0) {
    plan->saving_percent =
        100 * (impl.baseline.energy_joules - plan->energy_joules) / impl.baseline.energy_joules;
  }
  return plan;
}

}  // namespace perseus
