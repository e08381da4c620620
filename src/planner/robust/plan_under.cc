// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/plan_under.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/input_limits.h"
#include "model/noise.h"
#include "perseus/robust_plan.h"
#include "plan/grouping.h"
#include "robust/bounds.h"
#include "robust/constrained_search.h"
#include "robust/ladder_search.h"
#include "robust/samples.h"
#include "robust/trials.h"
#include "switching/clock_replay.h"

namespace perseus::robust {
namespace {

constexpr int kMostPipelines = 4096;

}  // namespace

Result<void> CheckConditions(const Conditions& conditions, int pipelines) {
  const ClockSwitching& switching = conditions.switching;
  if (auto good = model::CheckDisturbances(conditions.noise, switching); !good) return good;
  const struct {
    std::string_view key;
    double value;
    std::string_view what;
    double most;
  } ranges[] = {
      {"change_price", conditions.change_joules, "joules", 1e12},
      {"max_slowdown", conditions.max_slowdown, model::kShareText, 100},
      {"max_changes", static_cast<double>(conditions.max_changes.value_or(0)), "a number",
       HUGE_VAL},
  };
  for (const auto& [key, value, what, most] : ranges) {
    if (auto good = model::CheckCondition(key, value, what, most); !good) return good;
  }
  const ConditionRanges& known = conditions.ranges;
  const struct {
    std::string_view key;
    const std::optional<ValueRange>& range;
    double value;
    std::string_view what;
    double most;
  } widths[] = {
      {"noise", known.noise, conditions.noise.per_computation, model::kShareText, kMostNoise},
      {"rank_noise", known.rank_noise, conditions.noise.per_rank, model::kShareText, kMostNoise},
      {"switch_latency", known.switch_latency_seconds, switching.latency_seconds,
       model::kSecondsText, model::kMostConditionSeconds},
  };
  for (const auto& [key, range, value, what, most] : widths) {
    if (!range) continue;
    for (const double end : {range->least, range->most}) {
      if (auto good = model::CheckCondition(key, end, what, most); !good) return good;
    }
    if (!(range->least <= value && value <= range->most)) {
      return InvalidInput(
          fmt::format("the range of '{}' is {} to {}; expected one that contains {}", key,
                      range->least, range->most, value));
    }
  }
  if (!(conditions.confidence >= 0.5 && conditions.confidence < 1)) {
    return InvalidInput(
        fmt::format("'confidence' is {}; expected a share from 0.5 to below 1 (0.95 is 95 %)",
                    conditions.confidence));
  }
  if (pipelines < 1 || pipelines > kMostPipelines) {
    return InvalidInput(
        fmt::format("'dp' is {}; expected 1 to {} pipelines for a plan under conditions", pipelines,
                    kMostPipelines));
  }
  return {};
}

namespace {

// Draws of the search's trials and of what is expected: none sees those of another.
constexpr std::uint64_t kTrialSeed = 0x7A1A15;
constexpr std::uint64_t kExpectedSeed = 0xE49EC7ED;

struct TrialSize {
  int jobs = 1;
  std::int64_t iterations = 1;
};

TrialSize SizeOfTrials(const CostedPipeline& pipeline, const Conditions& conditions, int pipelines,
                       std::int64_t most) {
  const bool errors = conditions.profile_errors && !pipeline.errors.empty();
  const bool once = conditions.noise.once() || errors;
  const std::vector<Conditions> corners = CornersOf(conditions);
  const bool varies = errors || conditions.switching.latency_spread_seconds > 0 ||
                      std::any_of(corners.begin(), corners.end(),
                                  [](const Conditions& corner) { return corner.noise.any(); });
  if (!varies) return {};  // Trials know themselves when such a job has settled.
  constexpr double kMostComputations = 2e6;
  const double each = static_cast<double>(pipeline.dag.size()) * pipelines;
  const auto fits = static_cast<std::int64_t>(kMostComputations / each);
  const std::int64_t all = std::clamp<std::int64_t>(fits, 32, most);
  // Few iterations tell what is drawn in each of them from what is drawn once.
  constexpr std::int64_t kOfJob = 4;
  constexpr std::int64_t kReplayed = kOfJob + Trials::kSkippedIterations;
  return once ? TrialSize{.jobs = static_cast<int>(std::max<std::int64_t>(32, all / kReplayed)),
                          .iterations = kOfJob}
              : TrialSize{.jobs = 4, .iterations = all / 4};
}

Trials MakeTrials(const Planner& planner, const RobustPlanSpec& spec, std::int64_t most,
                  std::uint64_t seed) {
  const TrialSize size = SizeOfTrials(planner.pipeline(), spec.conditions, spec.pipelines, most);
  return {planner.pipeline(),
          planner.baseline().options,
          spec.conditions,
          spec.pipelines,
          size.jobs,
          size.iterations,
          seed};
}

// The price of a second on the frontier, beyond waiting.
double PriceOfTime(const Planner& planner, double seconds) {
  double slope = 0;
  for (const FrontierPoint& point : planner.lower_bound().points) {
    slope = point.slope_watts;
    if (point.iteration_time_seconds > seconds) break;
  }
  const double watts = planner.pipeline().total_blocking_power_watts;
  const double mean = planner.baseline().energy_joules / planner.baseline().iteration_time_seconds;
  return std::max(slope - watts, 0.1 * mean);
}

// How ranks wait in the plans that are searched: as it is better for the plan without conditions,
// where a second that it is late has its price. A limit on changes of clock leaves none for
// waiting.
Waiting WaitingToSearch(const Planner& planner, const RobustPlanSpec& spec, const Trials& trials,
                        const std::vector<CostOption>& paper, double slower_percent,
                        double price_of_time) {
  const switching::SwitchingRules rules(spec.conditions.switching, planner.pipeline());
  if (spec.conditions.max_changes ||
      switching::WaitingKnobsOf(planner.pipeline(), Waiting::kCheapest, rules).empty()) {
    return Waiting::kSetClock;
  }
  const double mean_watts =
      planner.baseline().energy_joules / planner.baseline().iteration_time_seconds;
  const auto worth = [&](Waiting waiting) {
    const Trials::Judged judged = trials.Judge(paper, waiting);
    const double late = judged.slower_percent - slower_percent;
    return judged.saving_percent - std::max(0.0, late) * price_of_time / mean_watts;
  };
  return worth(Waiting::kCheapest) > worth(Waiting::kSetClock) ? Waiting::kCheapest
                                                               : Waiting::kSetClock;
}

}  // namespace
}  // namespace perseus::robust

namespace perseus {
inline namespace v0 {

Result<ReplayedFigures> ReplayUnder(const Planner& planner, const Plan& plan,
                                    const ReplaySpec& spec) {
  if (auto checked = robust::CheckConditions(spec.conditions, spec.pipelines); !checked) {
    return tl::unexpected(checked.error());
  }
  if (spec.iterations < 1) {
    return InvalidInput(fmt::format("{} iterations; expected at least 1", spec.iterations));
  }
  if (auto checked = CheckPlan(planner.pipeline(), plan); !checked) {
    return tl::unexpected(checked.error());
  }
  const robust::Trials trials(planner.pipeline(), planner.baseline().options, spec.conditions,
                              spec.pipelines, 1, spec.iterations, spec.seed);
  return trials.Of(plan.options, plan.waiting);
}

Result<RobustPlan> PlanUnder(const Planner& planner, double seconds, const RobustPlanSpec& spec,
                             const ProgressFunction& progress) {
  constexpr std::int64_t kTrials = 384;
  constexpr std::int64_t kExpected = 1000;
  if (auto checked = robust::CheckConditions(spec.conditions, spec.pipelines); !checked) {
    return tl::unexpected(checked.error());
  }
  const double base_seconds = planner.baseline().iteration_time_seconds;
  auto paper = planner.PlanFor(
      seconds, {.constraints = spec.constraints, .effort = std::min(spec.effort, 1.0)});
  if (!paper) return tl::unexpected(paper.error());
  const double slower_percent =
      100 * (seconds / base_seconds * (1 + spec.conditions.max_slowdown) - 1);

  robust::Trials trials = robust::MakeTrials(planner, spec, kTrials, robust::kTrialSeed);
  // Count iterations of `seconds` beyond T_energy, as PlanFor() does: the job has to wait until
  // then (for another pipeline).
  const bool waits = seconds > planner.frontier().min_energy_seconds * (1 + 1e-9);
  if (waits) {
    trials.set_least_seconds(seconds, base_seconds);
  }
  const double price_of_time = robust::PriceOfTime(planner, seconds);
  Waiting waiting =
      robust::WaitingToSearch(planner, spec, trials, paper->options, slower_percent, price_of_time);
  trials.set_waiting(waiting);
  const plan::KeptConstraints kept(planner.pipeline(), spec.constraints);
  if (plan::GuardOf(spec.constraints).any()) {
    trials.set_least_slowdown([&](const std::vector<CostOption>& options) {
      return 100 * (kept.GuardedSeconds(options) / base_seconds - 1);
    });
  }
  // A plan that ends just when it may is in time, whatever rounding makes of it.
  constexpr double kRoundingPercent = 1e-9;
  robust::LadderSearch search(planner, spec, trials, slower_percent + kRoundingPercent,
                              price_of_time);
  const std::vector<CostOption>& baseline = planner.baseline().options;
  if (kept.Keep(robust::KnobsOf(baseline))) {
    search.Judge(baseline);
  }
  const auto plan_of = [&](const std::vector<CostOption>& options) {
    Plan plan = *planner.Evaluate(options, waiting);
    plan.requested_time_seconds = seconds;
    return plan;
  };
  bool goes_on = true;
  const auto tell = [&](double share, bool better) {
    if (!progress) return true;
    std::optional<Plan> plan;
    if (better && search.best() != nullptr) plan = plan_of(search.best()->options);
    goes_on = progress({.share = share, .better = plan ? &*plan : nullptr});
    return goes_on;
  };
  // Use the time that is accepted beyond the target where clocks come in time: all of it, or as
  // much as noise leaves, by a line between plans in time and late ones.
  const auto judge_paper = [&] {
    constexpr int kBetween = 2;
    double in_time = 0;
    double in_time_excess = search.Judge(paper->options).late_percent;
    double late = spec.conditions.max_slowdown;
    double late_excess = 0;
    double share = late;
    for (int k = 0; goes_on && k <= kBetween && share > 0 && in_time_excess < 0; ++k) {
      const auto later =
          planner.PlanFor(seconds * (1 + share),
                          {.constraints = spec.constraints, .effort = std::min(spec.effort, 1.0)});
      if (!later) break;
      const double excess = search.Judge(later->options).late_percent;
      if (excess <= 0 && k == 0) break;
      (excess > 0 ? late : in_time) = share;
      (excess > 0 ? late_excess : in_time_excess) = excess;
      // A little below the line, since plans scatter about it.
      constexpr double kBelow = 0.95;
      share = in_time + kBelow * (late - in_time) * in_time_excess / (in_time_excess - late_excess);
    }
  };
  const bool constrained = spec.constraints.any();
  if (constrained) {
    robust::ConstrainedSearch within(planner, seconds, spec, kept, trials, slower_percent,
                                     price_of_time, &search);
    if (waits) within.set_least_seconds(seconds);
    within.Run(tell);
    // After it, which must not begin from what depends on the effort.
    const double before = search.best() == nullptr ? -1e300 : search.best()->saving_percent;
    judge_paper();
    if (goes_on && search.best() != nullptr && search.best()->saving_percent > before) {
      tell(1.0, true);
    }
  } else {
    judge_paper();
    search.Run(tell);
  }
  std::optional<robust::FewChanges> few_changes;
  if (goes_on && !waits) {
    const double before = search.best() == nullptr ? -1e300 : search.best()->saving_percent;
    few_changes = robust::SearchFewChanges(
        planner, spec, base_seconds * (1 + (slower_percent + kRoundingPercent) / 100));
    if (few_changes && !few_changes->options.empty()) search.Judge(few_changes->options);
    if (search.best() != nullptr && search.best()->saving_percent > before) tell(1.0, true);
  }
  if (waits && goes_on && !constrained) {
    // There is so much slack then that few changes cost little.
    for (const Granularity granularity :
         {Granularity::kStage, Granularity::kStageType, Granularity::kPhase}) {
      PlanConstraints constraints;
      constraints.granularity = granularity;
      const auto plan = planner.PlanFor(
          seconds, {.constraints = constraints, .effort = std::min(spec.effort, 1.0)});
      if (plan) search.Judge(plan->options);
    }
    // Slack is given away by planning for less time, and by margins on what is slowed.
    constexpr int kSteps = 12;
    constexpr double kStep = 0.0025;
    constexpr int kSparse = 4;  // The search has been through, and slack is left.
    const double fastest = planner.frontier().fastest_seconds;
    for (int k = 1; k <= 2 * kSteps; k += kSparse) {
      PlanConstraints constraints;
      double shorter = seconds;
      if (k <= kSteps) {
        constraints.time_margin_fraction = 2 * kStep * k;
      } else {
        shorter *= 1 - kStep * (k - kSteps);
        if (shorter < fastest) break;
      }
      const double before = search.best() == nullptr ? -1e300 : search.best()->saving_percent;
      const auto plan = planner.PlanFor(
          shorter, {.constraints = constraints, .effort = std::min(spec.effort, 1.0)});
      if (plan) search.Judge(plan->options);
      const bool better = search.best() != nullptr && search.best()->saving_percent > before;
      if (!tell(1.0, better)) break;
    }
  }
  if (search.best() == nullptr) {
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("no plan was found whose mean iteration is at most {:.4g} % longer than at "
                    "maximum clocks under these conditions{}; accept more slowdown or a later "
                    "target{}",
                    slower_percent,
                    spec.conditions.max_changes ? fmt::format(" with at most {} changes of clock",
                                                              *spec.conditions.max_changes)
                                                : "",
                    spec.conditions.max_changes ? ", or more changes" : ""));
  }

  if (waiting == Waiting::kCheapest) {
    // Drop the cheapest waiting if the plan is better without.
    const std::vector<CostOption>& options = search.Taken().options;
    const robust::Trials::Judged without = trials.Judge(options, Waiting::kSetClock);
    const double price = 100 * spec.conditions.change_joules *
                         CountKnobChanges(planner.pipeline().dag, options)->all() /
                         trials.baseline().energy_joules;
    if (without.slower_percent <= slower_percent + kRoundingPercent &&
        without.saving_percent - price > search.Taken().saving_percent) {
      waiting = Waiting::kSetClock;
    }
  }

  RobustPlan found;
  found.plan = plan_of(search.Taken().options);
  found.conditions = spec.conditions;
  found.pipelines = spec.pipelines;
  found.with_profile_errors = spec.conditions.profile_errors && !planner.pipeline().errors.empty();
  const robust::Trials expected =
      robust::MakeTrials(planner, spec, kExpected, robust::kExpectedSeed);
  found.expected = expected.Of(found.plan.options, found.plan.waiting);
  for (int k = 1; k < expected.corners(); ++k) {
    found.corners.push_back(
        {expected.corner(k), expected.Of(found.plan.options, found.plan.waiting, k)});
  }
  found.baseline = expected.baseline();
  found.accepted_seconds = found.baseline.iteration_time_seconds * (1 + slower_percent / 100);
  found.paper = expected.Of(paper->options, paper->waiting);
  const double needs = std::max(trials.Judge(paper->options, paper->waiting).slower_percent,
                                expected.Judge(paper->options, paper->waiting).slower_percent);
  found.paper_max_slowdown = std::max(0.0, (1 + needs / 100) / (seconds / base_seconds) - 1);
  found.paper_plan = *std::move(paper);
  if (spec.with_bound) {
    found.bound = robust::SavingBound(planner, spec, slower_percent, found.baseline);
    if (few_changes) {
      const double saving = 100 * (1 - few_changes->least_joules / found.baseline.energy_joules);
      found.bound.saving_percent = std::min(found.bound.saving_percent, saving);
    }
  }
  found.price_curve = search.PriceCurve();
  return found;
}

}  // namespace v0
}  // namespace perseus
