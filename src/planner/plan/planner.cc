// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/numbers.h"
#include "model/iteration_energy.h"
#include "model/plan_figures.h"
#include "perseus/costed_pipeline.h"
#include "perseus/effort.h"
#include "perseus/frontier.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/result.h"
#include "perseus/stream.h"
#include "plan/cost_options.h"
#include "plan/figures.h"
#include "plan/grouped_plan.h"
#include "plan/grouping.h"
#include "plan/limits.h"
#include "plan/named_times.h"
#include "plan/plan_search.h"

namespace perseus::plan {

// The walks of one pipeline, for the margins that were asked for last: made at
// the first question and kept, so that many plans cost little more than their
// searches. Thread-safe.
class WalkCache {
 public:
  Result<std::shared_ptr<const WalkedPipeline>> For(const CostedPipeline& pipeline,
                                                    const Guard& guard,
                                                    double slope_quantum) const {
    // Wait while another thread makes a walk: it may be this one.
    const MutexLock lock(mutex_);
    const auto same = [&guard](const auto& walked) {
      return walked->guard().sigmas == guard.sigmas && walked->guard().fraction == guard.fraction;
    };
    auto found = std::find_if(walks_.begin(), walks_.end(), same);
    if (found == walks_.end()) {
      auto problem = MakeTimeCostProblem(pipeline, guard);
      if (!problem) return tl::unexpected(problem.error());
      FrontierOptions options;
      options.slope_quantum = SearchQuantum(pipeline, slope_quantum);
      auto walked = WalkedPipeline::Make(*problem, guard, options, nullptr);
      if (!walked) return tl::unexpected(walked.error());
      if (walks_.size() == kMostWalks) walks_.pop_back();
      found = walks_.insert(walks_.end(), *std::move(walked));
    }
    std::rotate(walks_.begin(), found, found + 1);  // The last asked for first.
    return walks_.front();
  }

  // The walk of the frontier itself.
  void Put(std::shared_ptr<const WalkedPipeline> walked) {
    const MutexLock lock(mutex_);
    walks_.push_back(std::move(walked));
  }

 private:
  static constexpr std::size_t kMostWalks = 3;
  mutable Mutex mutex_;
  mutable std::vector<std::shared_ptr<const WalkedPipeline>> walks_ PERSEUS_GUARDED_BY(mutex_);
};

}  // namespace perseus::plan

namespace perseus {
inline namespace v0 {
namespace {

using plan::Guard;

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

Result<void> CheckEnergies(const CostedPipeline& pipeline) {
  for (const CostTable& table : pipeline.tables) {
    for (const CostOption& option : table.all_options) {
      if (option.energy_joules >= 0) continue;
      return InvalidInput(fmt::format("{} of stage {} uses {} J at knob {}; expected a number >= 0",
                                      ComputationTypeName(table.type), table.stage,
                                      option.energy_joules, pipeline.knobs[option.knob].label));
    }
  }
  return {};
}

}  // namespace

struct Planner::Impl {
  CostedPipeline pipeline;
  std::uint64_t fingerprint = 0;
  plan::WalkCache walks;
  double slope_quantum = 0;
  Frontier frontier;
  Frontier bound;  // The frontier of the options themselves, also where a fit is shown.
  Plan baseline;

  // A plan of options that are the pipeline's.
  Plan Achieved(std::vector<CostOption> options, Waiting waiting) const {
    Plan plan;
    plan.options = std::move(options);
    plan.waiting = waiting;
    Evaluate(&plan);
    plan.requested_time_seconds = plan.iteration_time_seconds;
    return plan;
  }
  // Fills in every figure of a plan from its options.
  void Evaluate(Plan* plan) const {
    plan->pipeline = fingerprint;
    plan::FillFigures(pipeline, bound, baseline.energy_joules, plan);
  }

  // Whether all-maximum clocks are a plan under the constraints.
  bool BaselineFits(const PlanConstraints& constraints) const {
    std::vector<int> knobs;
    for (const CostOption& option : baseline.options) knobs.push_back(option.knob);
    return plan::KeptConstraints(pipeline, constraints).Keep(knobs);
  }
};

Planner::Planner(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

const CostedPipeline& Planner::pipeline() const { return impl_->pipeline; }
const Frontier& Planner::frontier() const { return impl_->frontier; }
const Frontier& Planner::lower_bound() const { return impl_->bound; }
const Plan& Planner::baseline() const { return impl_->baseline; }

Result<PlanDocument> MakePlanDocument(const Planner& planner, const Plan& plan,
                                      const PlanContext& context) {
  const Frontier& frontier = planner.frontier();
  const BoundOrigin bound = {.slope_quantum_watts = frontier.slope_quantum_watts,
                             .exponential_fit = frontier.fitted,
                             .certified_error = frontier.certified_error};
  return MakePlanDocument(planner.pipeline(), plan, planner.baseline(), bound, context);
}

Result<Plan> Planner::Evaluate(std::vector<CostOption> options, Waiting waiting) const {
  if (auto good = CheckOptions(impl_->pipeline, options); !good) {
    return tl::unexpected(good.error());
  }
  return impl_->Achieved(std::move(options), waiting);
}

Result<Planner> Planner::Create(CostedPipeline pipeline, const PlannerOptions& options) {
  if (pipeline.dag.size() > plan::kMostComputations) {
    return MakeError(ErrorCode::kOverflow, plan::TooManyToPlan(pipeline.dag.size()));
  }
  auto impl = std::make_shared<Impl>();
  impl->pipeline = std::move(pipeline);
  const CostedPipeline& costs = impl->pipeline;

  if (auto good = costs.Validate(); !good) return tl::unexpected(good.error());
  if (options.costs_are_energies) {
    if (auto good = CheckEnergies(costs); !good) return tl::unexpected(good.error());
  }
  impl->fingerprint = costs.Fingerprint();
  auto problem = plan::MakeTimeCostProblem(costs, Guard{});
  if (!problem) return tl::unexpected(problem.error());
  if (auto size = SizeOf(*problem, 0); !size) return tl::unexpected(size.error());
  const plan::EstimateOf estimate_of = [&problem](double quantum) {
    return EstimateFrontier(SizeOf(*problem, quantum).value_or(FrontierSize{}));
  };
  if (options.slope_quantum_watts) {
    impl->slope_quantum = *options.slope_quantum_watts;
  } else if (costs.dag.size() > plan::kCoarseComputations) {
    impl->slope_quantum = plan::CoarsenUntilQuick(CoarseQuantum(costs), estimate_of);
  }
  const FrontierEstimate estimate = estimate_of(impl->slope_quantum);
  if (auto good = plan::CheckFrontierEffort(costs.dag.size(), estimate); !good) {
    return tl::unexpected(good.error());
  }
  if (options.progress && !options.progress({.estimate = &estimate})) {
    return MakeError(ErrorCode::kCancelled, "the frontier was cancelled before it was begun");
  }
  FrontierOptions solver_options;
  solver_options.slope_quantum = impl->slope_quantum;
  solver_options.progress = options.progress;
  TimeCostFrontier solved;
  if (options.keeps_walk &&
      plan::SearchQuantum(costs, impl->slope_quantum) == impl->slope_quantum) {
    auto walked = plan::WalkedPipeline::Make(*problem, Guard{}, solver_options, &solved);
    if (!walked) return tl::unexpected(walked.error());
    impl->walks.Put(*std::move(walked));
  } else {
    auto found = SolveFrontier(*problem, solver_options);
    if (!found) return tl::unexpected(found.error());
    solved = *std::move(found);
  }

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
    return plan::MakeFrontier(found, costs, impl->slope_quantum, fastest_seconds, tstar_seconds);
  };
  impl->bound = in_user_units(solved);
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
  baseline.saving_percent = 0;
  baseline.requested_time_seconds = baseline.iteration_time_seconds;
  return Planner(std::move(impl));
}

Result<double> Planner::TargetSeconds(const PlanTarget& target) const {
  const Frontier& frontier = impl_->frontier;
  const double baseline = impl_->baseline.iteration_time_seconds;
  double seconds = 0;
  switch (target.kind) {
    case PlanTarget::Kind::kMinEnergy:
      return frontier.min_energy_seconds;
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
  if (!std::isfinite(seconds)) {
    return InvalidInput(fmt::format("the time asked for is {} s; expected a number", seconds));
  }
  // A time as it is written in decimals may miss the fastest one by its last bits.
  if (seconds < frontier.fastest_seconds && SameButRounding(seconds, frontier.fastest_seconds)) {
    seconds = frontier.fastest_seconds;
  }
  if (!(seconds >= frontier.fastest_seconds)) {
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("no plan takes {} s: the fastest possible iteration takes {} s ({}x of the "
                    "all-maximum-clock time); ask for at least that, or for 'fastest'",
                    RoundedBelow(seconds, frontier.fastest_seconds),
                    RoundedUp(frontier.fastest_seconds),
                    RoundedUp(frontier.fastest_seconds / baseline)));
  }
  return seconds;
}

namespace {

Result<void> CheckEffort(double effort) {
  if (effort > 0 && std::isfinite(effort)) return {};
  return InvalidInput(fmt::format("the effort is {}; expected a number > 0", effort));
}

}  // namespace

Result<Plan> Planner::PlanFor(double seconds, const PlanSpec& spec) const {
  const Impl& impl = *impl_;
  const PlanConstraints& constraints = spec.constraints;
  if (auto checked = model::CheckConstraints(constraints); !checked) {
    return tl::unexpected(checked.error());
  }
  if (auto checked = CheckEffort(spec.effort); !checked) return tl::unexpected(checked.error());
  if (!(seconds >= impl.frontier.fastest_seconds) || std::isinf(seconds)) {
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
  const auto plan_of = [&](std::vector<CostOption> options) {
    Plan plan = impl.Achieved(std::move(options), model::PlannedWaiting(impl.pipeline));
    plan.requested_time_seconds = seconds;
    return plan;
  };
  const plan::OptionsReport report = [&](const std::vector<CostOption>* better, double share) {
    if (!spec.progress) return true;
    if (better == nullptr) return spec.progress({.share = share});
    const Plan plan = plan_of(*better);
    return spec.progress({.share = share, .better = &plan});
  };
  const Guard guard = plan::GuardOf(constraints);
  const bool shares_knobs = plan::SharesKnobs(impl.pipeline, constraints.granularity);
  std::optional<plan::GroupedPlan> grouped;
  const auto search = [&]() -> Result<std::vector<CostOption>> {
    if (shares_knobs) {
      auto found = plan::SearchGroups(impl.pipeline, seconds, constraints, spec.effort);
      if (!found) return tl::unexpected(found.error());
      grouped = *std::move(found);
      return grouped->options;
    }
    auto walked = impl.walks.For(impl.pipeline, guard, impl.slope_quantum);
    if (!walked) return tl::unexpected(walked.error());
    return plan::SearchPlan(impl.pipeline, **walked, seconds, spec.effort, report);
  };
  Result<std::vector<CostOption>> options = search();
  if (!options) {
    // Take the baseline if the search finds nothing and the baseline fits.
    const bool fits = options.error().code == ErrorCode::kInfeasible &&
                      seconds >= impl.baseline.iteration_time_seconds &&
                      impl.BaselineFits(constraints);
    if (!fits) return tl::unexpected(options.error());
    options = impl.baseline.options;
  }
  Plan plan = plan_of(*std::move(options));
  if (grouped) {
    plan.shared_knobs = plan::SharedKnobBoundOf(
        impl.pipeline, plan, grouped->lower_bound_effective_joules, grouped->proven);
  }
  if (spec.progress && shares_knobs) spec.progress({.share = 1, .better = &plan});
  return plan;
}

Result<void> Planner::AddDiscreteBound(Plan* plan, double effort) const {
  const Impl& impl = *impl_;
  if (auto checked = CheckEffort(effort); !checked) return checked;
  if (plan == nullptr) return InvalidInput("there is no plan to bound");
  if (auto checked = CheckPlan(impl.pipeline, *plan); !checked) return checked;
  const auto walked = impl.walks.For(impl.pipeline, Guard{}, impl.slope_quantum);
  if (!walked) return tl::unexpected(walked.error());
  const auto bound =
      plan::BoundPlans(impl.pipeline, **walked, plan->iteration_time_seconds, effort);
  if (!bound) return tl::unexpected(bound.error());
  const double waiting = impl.pipeline.total_blocking_power_watts * plan->iteration_time_seconds;
  const double least = std::max(bound->discrete_joules + waiting, plan->lower_bound_joules);
  double magnitude = std::abs(waiting);
  for (const CostOption& option : plan->options) magnitude += std::abs(option.energy_joules);
  if (least > plan->energy_joules + plan::kBoundRounding * magnitude) {
    return MakeError(ErrorCode::kInternal,
                     fmt::format("the bound, {} J, is above the plan's energy, {} J: please report "
                                 "this with the job's files",
                                 least, plan->energy_joules));
  }
  DiscreteBound discrete;
  discrete.lower_bound_joules = std::min(least, plan->energy_joules);
  discrete.gap_percent = plan::GapPercent(impl.pipeline, *plan, discrete.lower_bound_joules);
  plan->discrete_bound = discrete;
  return {};
}

}  // namespace v0
}  // namespace perseus

// Plans for many times of one planner.
namespace perseus {
inline namespace v0 {

Result<std::vector<Plan>> Planner::Ladder(int count, const PlanSpec& spec) const {
  if (count < 2) {
    return InvalidInput(fmt::format("a ladder of {} plans; expected at least 2", count));
  }
  const double first = frontier().fastest_seconds;
  const double last = frontier().tstar_seconds;
  std::vector<Plan> plans;
  for (int step = 0; step < count; ++step) {
    const double share = static_cast<double>(step) / (count - 1);
    const double seconds = step + 1 == count ? last : first + (last - first) * share;
    Result<Plan> plan = PlanFor(seconds, {.constraints = spec.constraints, .effort = spec.effort});
    if (!plan) {
      // Constraints may leave nothing for the shortest times.
      const bool last_and_none = step + 1 == count && plans.empty();
      if (plan.error().code != ErrorCode::kInfeasible || last_and_none) {
        return tl::unexpected(plan.error());
      }
    } else {
      // Those before are never worse than one for less time by now.
      std::vector<Plan> last_two;
      if (!plans.empty()) {
        last_two.push_back(std::move(plans.back()));
        plans.pop_back();
      }
      last_two.push_back(*std::move(plan));
      plan::CarryForward(pipeline(), &last_two);
      std::move(last_two.begin(), last_two.end(), std::back_inserter(plans));
    }
    const Plan* const made = plans.empty() ? nullptr : &plans.back();
    if (spec.progress && !spec.progress({.share = (step + 1.0) / count, .better = made})) break;
  }
  return plans;
}

namespace {

// kStreamEffort is for so many computations.
constexpr double kComputations = 128;

PlannerOptions Solver() {
  PlannerOptions solver;
  solver.slope_quantum_watts = {};  // Exact, unless it is too large.
  return solver;
}

}  // namespace

struct StreamPlanner::Impl {
  Profile profile;
  PipelineDag dag;
  CostSpec costs;
};

StreamPlanner::StreamPlanner(std::shared_ptr<const Impl> impl, const StreamOptions& options)
    : impl_(std::move(impl)), options_(options) {
  if (!options_.effort) {
    options_.effort =
        kStreamEffort * std::clamp(impl_->dag.size() / kComputations, 1.0, 1 / kStreamEffort);
  }
}

const PipelineDag& StreamPlanner::dag() const { return impl_->dag; }

StreamPlanner StreamPlanner::With(const StreamOptions& options) const { return {impl_, options}; }

Result<StreamPlanner> StreamPlanner::Create(Profile profile, PipelineDag dag, CostSpec costs,
                                            const StreamOptions& options) {
  costs.work = Work();
  costs.waiting_is_constant = true;  // Plans of single steps set clocks for computations only.
  if (auto good = CostPipeline(profile, dag, costs); !good) return tl::unexpected(good.error());
  auto impl = std::make_shared<Impl>();
  impl->profile = std::move(profile);
  impl->dag = std::move(dag);
  impl->costs = std::move(costs);
  return StreamPlanner(std::move(impl), options);
}

Result<CostedPipeline> StreamPlanner::Cost(const Work& work) const {
  CostSpec costs = impl_->costs;
  costs.work = work;
  return CostPipeline(impl_->profile, impl_->dag, costs);
}

Result<StreamPlan> StreamPlanner::PlanFor(const Work& work,
                                          const ProgressFunction& progress) const {
  return PlanFor(work, 0, progress);
}

Result<StreamPlan> StreamPlanner::PlanFor(const Work& work, double seconds,
                                          const ProgressFunction& progress) const {
  Result<CostedPipeline> pipeline = Cost(work);
  if (!pipeline) return tl::unexpected(pipeline.error());
  Result<Planner> planner = Planner::Create(*std::move(pipeline), Solver());
  if (!planner) return tl::unexpected(planner.error());
  const Result<double> target = planner->TargetSeconds(options_.target);
  if (!target) return tl::unexpected(target.error());
  Result<Plan> plan = planner->PlanFor(
      std::max(seconds, *target),
      {.constraints = options_.constraints, .effort = *options_.effort, .progress = progress});
  if (!plan) return tl::unexpected(plan.error());
  return StreamPlan{.plan = *std::move(plan), .planner = *std::move(planner)};
}

Result<double> StreamPlanner::TargetSeconds(const Work& work) const {
  Result<CostedPipeline> pipeline = Cost(work);
  if (!pipeline) return tl::unexpected(pipeline.error());
  const PlanTarget& target = options_.target;
  if (target.kind == PlanTarget::Kind::kBaselineFactor && target.value >= 1) {
    std::vector<double> durations;
    durations.reserve(pipeline->table_of.size());
    for (const int table : pipeline->table_of) {
      durations.push_back(pipeline->tables[table].baseline.time_seconds);
    }
    return target.value * Replay(pipeline->dag, durations).iteration_time_seconds;
  }
  const Result<Planner> planner = Planner::Create(*std::move(pipeline), Solver());
  if (!planner) return tl::unexpected(planner.error());
  return planner->TargetSeconds(target);
}

}  // namespace v0
}  // namespace perseus
