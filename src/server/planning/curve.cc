// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/belief.h"
#include "common/json_text.h"
#include "common/tree.h"
#include "model/iteration_energy.h"
#include "model/saving_interval.h"
#include "perseus/computation.h"
#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/pipeline.h"
#include "perseus/robust_plan.h"
#include "plan/cost_options.h"
#include "plan/figures.h"
#include "plan/named_times.h"

namespace perseus::server {
namespace {

// Places of the plans, as shares of the way from maximum clocks to T*: close where most stragglers
// are. Each is a search of its own, so there are fewer than without conditions.
constexpr std::array kShares = {0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75, 1.0};
constexpr std::array kQuickShares = {0.0, 0.1, 0.3, 1.0};

static_assert(kShares.size() == kMostHeldLadderPlans);

// Without waiting, which lasts as long for every plan where something else decides when the
// iteration ends; with the price of changes, which the search counts.
double EffectiveJoules(const Job& job, const ExpectedFigures& expected) {
  return expected.energy_joules -
         job.pipeline.total_blocking_power_watts * expected.iteration_time_seconds +
         ConditionsOf(job.settings).change_joules * expected.clock_calls;
}

template <typename Shares>
std::vector<double> TimesOf(const Planner& planner, const Shares& shares) {
  const double base = planner.baseline().iteration_time_seconds;
  const double span = std::max(0.0, planner.frontier().tstar_seconds - base);
  std::vector<double> times;
  for (const double share : shares) {
    if (share == 0 || span > 0) times.push_back(base + share * span);
  }
  return times;
}

}  // namespace

Result<Plan> MakeRobustPlan(const Job& job, const Planner& planner, double seconds, double effort,
                            const ProgressFunction& callback) {
  RobustPlanSpec spec = RobustSpecOf(job.settings);
  spec.effort = effort;
  spec.with_bound = false;
  Result<RobustPlan> robust = PlanUnder(planner, seconds, spec, callback);
  if (!robust) return tl::unexpected(robust.error());
  return std::move(robust->plan);
}

Result<std::vector<Plan>> LadderThatHolds(const Job& job, const Planner& planner, bool quick,
                                          double effort, const ProgressFunction& callback) {
  std::vector<Plan> plans;
  const auto times = quick ? TimesOf(planner, kQuickShares) : TimesOf(planner, kShares);
  for (std::size_t k = 0; k < times.size(); ++k) {
    // A search that is told to end gives an unfinished result, which is of no use here.
    bool ended = false;
    const auto part = [&](const Progress& progress) {
      const double done =
          (static_cast<double>(k) + progress.share) / static_cast<double>(times.size());
      ended = ended || !callback({.share = done, .better = nullptr});
      return !ended;
    };
    Result<Plan> plan = MakeRobustPlan(job, planner, times[k], effort, part);
    if (ended || !part({.share = 1, .better = nullptr})) {
      return MakeError(ErrorCode::kCancelled, "the search ended");
    }
    if (plan) {
      plans.push_back(*std::move(plan));
    } else if (plan.error().code != ErrorCode::kInfeasible) {
      return tl::unexpected(plan.error());
    }
  }
  return plans;
}

Result<HeldPlans> WithExpected(const Job& job, const Planner& planner, std::vector<Plan> plans,
                               const ProgressFunction& progress) {
  HeldPlans held;
  for (Plan& plan : plans) held.plans.push_back({std::move(plan), std::nullopt});
  if (!HasConditions(job.settings)) return held;
  std::vector<const Plan*> emulated = {&planner.baseline()};
  for (const RobustSummary& each : held.plans) emulated.push_back(&each.plan);
  const auto figures = EmulateUnder(planner, emulated,
                                    {.conditions = ConditionsOf(job.settings),
                                     .pipelines = job.DataParallel(),
                                     .progress = progress});
  if (!figures) return tl::unexpected(figures.error());
  held.baseline = figures->front();
  for (std::size_t k = 0; k < held.plans.size(); ++k) held.plans[k].expected = (*figures)[k + 1];
  return held;
}

void CarryForward(const Job& job, std::vector<RobustSummary>* plans) {
  if (plans->empty()) return;
  if (!plans->front().expected) {
    std::vector<Plan> bare;
    for (RobustSummary& held : *plans) bare.push_back(std::move(held.plan));
    perseus::plan::CarryForward(job.pipeline, &bare);
    for (std::size_t k = 0; k < plans->size(); ++k) (*plans)[k].plan = std::move(bare[k]);
    return;
  }
  for (std::size_t k = 1; k < plans->size(); ++k) {
    const RobustSummary& before = (*plans)[k - 1];
    RobustSummary& plan = (*plans)[k];
    if (EffectiveJoules(job, *plan.expected) <= EffectiveJoules(job, *before.expected)) continue;
    const double seconds = plan.plan.requested_time_seconds;
    plan = before;
    plan.plan.requested_time_seconds = seconds;
  }
}
namespace {

constexpr std::int64_t kMostSeeds = 1000;
constexpr std::int64_t kMostIterationsOfASeed = 1'000'000;
// Of a row that was written when conditions could be no ranges.
constexpr std::size_t kSizeBeforeRanges = 12;

using Json = nlohmann::ordered_json;
Json ExpectedJson(std::int64_t id, const ExpectedFigures& figures) {
  return {id,
          figures.iteration_time_seconds,
          figures.iteration_time_spread_seconds,
          figures.energy_joules,
          figures.energy_spread_joules,
          figures.slowdown_percent,
          figures.slowdown_spread_percent,
          figures.saving_percent,
          figures.saving_spread_percent,
          figures.clock_calls,
          figures.seeds,
          figures.iterations,
          figures.most_slowdown_percent,
          figures.least_saving_percent};
}

ExpectedFigures ReadExpected(const TreeCursor& row) {
  ExpectedFigures figures;
  figures.iteration_time_seconds = row.At(1).Number();
  figures.iteration_time_spread_seconds = row.At(2).Number();
  figures.energy_joules = row.At(3).Number();
  figures.energy_spread_joules = row.At(4).Number();
  figures.slowdown_percent = row.At(5).Number();
  figures.slowdown_spread_percent = row.At(6).Number();
  figures.saving_percent = row.At(7).Number();
  figures.saving_spread_percent = row.At(8).Number();
  figures.clock_calls = row.At(9).Number();
  figures.seeds = static_cast<int>(row.At(10).Integer(1, kMostSeeds));
  figures.iterations = static_cast<int>(row.At(11).Integer(1, kMostIterationsOfASeed));
  const bool has_corners = row.Size() > kSizeBeforeRanges;
  figures.most_slowdown_percent = has_corners ? row.At(12).Number() : figures.slowdown_percent;
  figures.least_saving_percent = has_corners ? row.At(13).Number() : figures.saving_percent;
  return figures;
}

}  // namespace

std::string FrontierText(const Frontier& frontier, const std::string& target,
                         const ExpectedOfAll& expected) {
  Json points = Json::array();
  for (const FrontierPoint& point : frontier.points) {
    points.push_back({point.iteration_time_seconds, point.energy_joules, point.slope_watts});
  }
  Json json = {{"target", target},
               {"fastest_s", frontier.fastest_seconds},
               {"min_energy_s", frontier.min_energy_seconds},
               {"tstar_s", frontier.tstar_seconds},
               {"certified_error", frontier.certified_error},
               {"fitted", frontier.fitted},
               {"slope_quantum_w", frontier.slope_quantum_watts},
               {"blocking_power_w", frontier.total_blocking_power_watts},
               {"points", std::move(points)}};
  if (expected.baseline) {
    Json rows = Json::array({ExpectedJson(0, *expected.baseline)});
    for (const auto& [id, figures] : expected.plans) rows.push_back(ExpectedJson(id, figures));
    json["expected"] = std::move(rows);
    if (!expected.wait_cheaply.empty()) json["wait_cheaply"] = expected.wait_cheaply;
  }
  return FormatCompact(json);
}

Result<Frontier> ParseFrontier(const std::string& text, std::string* target,
                               ExpectedOfAll* expected) {
  const std::string name = "frontier";
  const Result<TreeNode> tree = ParseJsonTree(text, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  *target = root.Get("target").String();
  Frontier frontier;
  frontier.fastest_seconds = root.Get("fastest_s").Number();
  frontier.min_energy_seconds = root.Get("min_energy_s").Number();
  frontier.tstar_seconds = root.Get("tstar_s").Number();
  frontier.certified_error = root.Get("certified_error").Number();
  frontier.fitted = root.Get("fitted").Bool();
  frontier.slope_quantum_watts = root.Get("slope_quantum_w").Number();
  frontier.total_blocking_power_watts = root.Get("blocking_power_w").Number();
  const TreeCursor points = root.Get("points");
  const std::size_t count = points.Size();
  for (std::size_t i = 0; i < count && !reader.failed(); ++i) {
    const TreeCursor point = points.At(i);
    frontier.points.push_back({point.At(0).Number(), point.At(1).Number(), point.At(2).Number()});
  }
  if (const auto rows = root.Find("expected")) {
    const std::size_t rows_count = rows->Size();
    for (std::size_t i = 0; i < rows_count && !reader.failed(); ++i) {
      const TreeCursor row = rows->At(i);
      const std::int64_t id = row.At(0).Integer(0);
      if (id == 0) {
        expected->baseline = ReadExpected(row);
      } else {
        expected->plans[id] = ReadExpected(row);
      }
    }
  }
  if (const auto ids = root.Find("wait_cheaply")) {
    const std::size_t ids_count = ids->Size();
    for (std::size_t i = 0; i < ids_count && !reader.failed(); ++i) {
      expected->wait_cheaply.insert(ids->At(i).Integer(1));
    }
  }
  if (reader.failed()) return tl::unexpected(*reader.error());
  return frontier;
}

store::PlanRecord PlanRecordOf(const Plan& plan, std::int64_t id) {
  store::PlanRecord record;
  record.id = id;
  record.requested_time_seconds = plan.requested_time_seconds;
  record.knobs.reserve(plan.options.size());
  for (const CostOption& option : plan.options) record.knobs.push_back(option.knob);
  return record;
}

store::CurveRecord MakeCurveRecord(const std::string& job, int revision, const std::string& target,
                                   const Frontier& frontier, const HeldPlans& plans,
                                   std::int64_t first_id) {
  store::CurveRecord record;
  record.job = job;
  record.revision = revision;
  ExpectedOfAll expected;
  expected.baseline = plans.baseline;
  for (const RobustSummary& held : plans.plans) {
    expected.Add(first_id, held.plan.waiting, held.expected);
    record.plans.push_back(PlanRecordOf(held.plan, first_id++));
  }
  record.frontier_json = FrontierText(frontier, target, expected);
  return record;
}
namespace {

// Relative; sums of the same numbers in another order may differ by this.
constexpr double kTimeTolerance = 1e-9;

std::vector<double> DurationsOf(const std::vector<CostOption>& options) {
  std::vector<double> durations;
  durations.reserve(options.size());
  for (const CostOption& option : options) durations.push_back(option.time_seconds);
  return durations;
}

}  // namespace

Result<std::shared_ptr<const Curve>> Curve::Make(std::shared_ptr<const Job> job,
                                                 const store::CurveRecord& record) {
  std::shared_ptr<Curve> curve(new Curve());
  curve->job_ = std::move(job);
  curve->revision_ = record.revision;
  ExpectedOfAll expected;
  Result<Frontier> frontier = ParseFrontier(record.frontier_json, &curve->target_, &expected);
  if (!frontier) return tl::unexpected(frontier.error());
  curve->frontier_ = *std::move(frontier);

  const CostedPipeline& pipeline = curve->job_->pipeline;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    curve->baseline_.push_back(pipeline.TableOf(i).baseline);
  }
  curve->planned_baseline_ = curve->Achieved(curve->baseline_, std::nullopt);
  curve->baseline_time_seconds_ = curve->planned_baseline_.iteration_time_seconds;
  curve->baseline_energy_joules_ = curve->planned_baseline_.energy_joules;
  if (expected.baseline) {
    curve->expected_baseline_ = expected.baseline;
    curve->baseline_time_seconds_ = expected.baseline->iteration_time_seconds;
    curve->baseline_energy_joules_ = expected.baseline->energy_joules;
  }
  for (const store::PlanRecord& plan : record.plans) {
    std::optional<ExpectedFigures> of_plan;
    if (expected.baseline) {
      const auto found = expected.plans.find(plan.id);
      if (found == expected.plans.end()) {
        return MakeError(ErrorCode::kInternal,
                         fmt::format("plan {} in the store has no expected figures", plan.id));
      }
      of_plan = found->second;
    }
    const Waiting waiting =
        expected.wait_cheaply.contains(plan.id) ? Waiting::kCheapest : Waiting::kSetClock;
    if (auto added = curve->AddPlan(plan, of_plan, waiting); !added) {
      return tl::unexpected(added.error());
    }
  }
  if (curve->plans_.empty()) {
    return MakeError(ErrorCode::kInternal, "a curve without plans was stored");
  }
  std::stable_sort(curve->plans_.begin(), curve->plans_.end(),
                   [](const CurvePlan& a, const CurvePlan& b) {
                     return a.requested_time_seconds < b.requested_time_seconds;
                   });
  curve->believable_ =
      AreBelievable(curve->job_->NotesAt(curve->frontier_, curve->frontier_.fastest_seconds));
  curve->FindInterval();
  curve->CompareWithDefaultClocks();
  return curve;
}

// Conditions lengthen an iteration at default clocks as they do one at maximum clocks: neither
// changes a clock.
void Curve::CompareWithDefaultClocks() {
  auto iteration = model::DefaultClockIterationOf(job_->pipeline);
  if (!iteration) return;
  if (expected_baseline_ && planned_baseline_.energy_joules > 0) {
    iteration->seconds *= baseline_time_seconds_ / planned_baseline_.iteration_time_seconds;
    iteration->joules *= baseline_energy_joules_ / planned_baseline_.energy_joules;
  }
  for (CurvePlan& plan : plans_) {
    PlanFigures figures;
    figures.iteration_time_seconds = plan.iteration_time_seconds;
    figures.energy_joules = plan.energy_joules;
    plan.default_clocks = model::AgainstDefaultClocks(*iteration, figures);
  }
}

// Of the plan that the job follows as long as nothing straggles: it takes hundreds of replays.
void Curve::FindInterval() {
  const Result<PlanTarget> target = ParsePlanTarget(target_);
  if (expected_baseline_ || !target) return;
  const Result<double> seconds = TargetSeconds(*target);
  if (!seconds) return;
  CurvePlan& plan = plans_[static_cast<std::size_t>(&At(*seconds) - plans_.data())];
  const auto interval =
      model::IntervalOfSaving(job_->pipeline, OptionsOf(plan), Waiting::kSetClock);
  if (interval) plan.saving_interval = {interval->least_percent, interval->most_percent};
}

Plan Curve::Achieved(const std::vector<CostOption>& options,
                     std::optional<double> requested_seconds) const {
  Plan plan;
  plan.options = options;
  const Timing timing = Replay(job_->pipeline.dag, DurationsOf(options));
  plan.iteration_time_seconds = timing.iteration_time_seconds;
  plan.requested_time_seconds = requested_seconds.value_or(plan.iteration_time_seconds);
  plan.energy_joules =
      perseus::plan::IterationEnergy(job_->pipeline, options, plan.waiting, timing);
  plan.average_power_watts = plan.energy_joules / plan.iteration_time_seconds;
  return plan;
}

Result<void> Curve::AddPlan(const store::PlanRecord& record,
                            const std::optional<ExpectedFigures>& expected, Waiting waiting) {
  const CostedPipeline& pipeline = job_->pipeline;
  const auto misfit = [&] {
    return MakeError(ErrorCode::kInternal,
                     fmt::format("plan {} in the store does not fit its job", record.id));
  };
  if (record.knobs.size() != static_cast<std::size_t>(pipeline.dag.size())) return misfit();
  CurvePlan plan;
  plan.id = record.id;
  plan.requested_time_seconds = record.requested_time_seconds;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const int knob = record.knobs[i];
    const auto& options = pipeline.TableOf(i).all_options;
    if (std::none_of(options.begin(), options.end(),
                     [&](const CostOption& option) { return option.knob == knob; })) {
      return misfit();
    }
    plan.knobs.push_back(static_cast<std::uint16_t>(knob));
  }
  if (waiting == Waiting::kCheapest && !pipeline.waiting_depends_on_clock()) return misfit();
  plan.waiting = waiting;
  plan.expected = expected;
  if (expected) {
    plan.iteration_time_seconds = expected->iteration_time_seconds;
    plan.energy_joules = expected->energy_joules;
    plan.saving_percent = expected->saving_percent;
  } else {
    const Plan achieved = Achieved(OptionsOf(plan), record.requested_time_seconds);
    plan.iteration_time_seconds = achieved.iteration_time_seconds;
    plan.energy_joules = achieved.energy_joules;
    plan.saving_percent = 100 * (1 - plan.energy_joules / baseline_energy_joules_);
  }
  plans_.push_back(std::move(plan));
  return {};
}

std::vector<CostOption> Curve::OptionsOf(const CurvePlan& plan) const {
  const CostedPipeline& pipeline = job_->pipeline;
  std::vector<CostOption> options;
  options.reserve(plan.knobs.size());
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const auto& all = pipeline.TableOf(i).all_options;
    options.push_back(*std::find_if(all.begin(), all.end(), [&](const CostOption& option) {
      return option.knob == plan.knobs[i];
    }));
  }
  return options;
}

std::int64_t Curve::NextId() const {
  std::int64_t last = 0;
  for (const CurvePlan& plan : plans_) last = std::max(last, plan.id);
  return last + 1;
}

// Ids ascend: the ladder, with the plan for the target of that time, has the lowest.
std::set<std::int64_t> Curve::StalePlans() const {
  std::set<std::int64_t> ids;
  for (const CurvePlan& plan : plans_) ids.insert(plan.id);
  const std::size_t ladder = expected_baseline_ ? kMostHeldLadderPlans : kLadderPlans;
  const std::size_t kept = ladder + kMostTargetPlans;
  if (ids.size() <= kept) return {};
  const auto first = std::next(ids.begin(), static_cast<std::ptrdiff_t>(ladder + 1));
  return {first, std::next(first, static_cast<std::ptrdiff_t>(ids.size() - kept))};
}

store::CurveRecord Curve::Record(const std::string& job, const std::string& target,
                                 const RobustSummary* more) const {
  store::CurveRecord record;
  record.job = job;
  record.revision = revision_;
  ExpectedOfAll expected;
  expected.baseline = expected_baseline_;
  const std::set<std::int64_t> stale = StalePlans();
  for (const CurvePlan& plan : plans_) {
    if (stale.contains(plan.id)) continue;
    record.plans.push_back({.id = plan.id,
                            .requested_time_seconds = plan.requested_time_seconds,
                            .knobs = {plan.knobs.begin(), plan.knobs.end()}});
    expected.Add(plan.id, plan.waiting, plan.expected);
  }
  if (more != nullptr) {
    expected.Add(NextId(), more->plan.waiting, more->expected);
    record.plans.push_back(PlanRecordOf(more->plan, NextId()));
  }
  record.frontier_json = FrontierText(frontier_, target, expected);
  return record;
}

const CurvePlan* Curve::Find(std::int64_t id) const {
  const auto found = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const CurvePlan& plan) { return plan.id == id; });
  return found == plans_.end() ? nullptr : &*found;
}

const CurvePlan& Curve::At(double seconds) const {
  const double limit = seconds * (1 + kTimeTolerance);
  const auto after = std::upper_bound(
      plans_.begin(), plans_.end(), limit,
      [](double time, const CurvePlan& plan) { return time < plan.requested_time_seconds; });
  return after == plans_.begin() ? plans_.front() : *std::prev(after);
}

const CurvePlan& Curve::ForStraggler(double seconds, double target_seconds) const {
  const double tstar = frontier_.tstar_seconds;
  if (!expected_baseline_) return At(std::max(target_seconds, std::min(tstar, seconds)));
  // The slowdown that a plan may have is against maximum clocks: no rank may wait for it here.
  const CurvePlan* found = &At(target_seconds);
  for (const CurvePlan& plan : plans_) {
    if (plan.requested_time_seconds > found->requested_time_seconds &&
        plan.requested_time_seconds <= tstar * (1 + kTimeTolerance) &&
        plan.iteration_time_seconds <= seconds * (1 + kTimeTolerance)) {
      found = &plan;
    }
  }
  return *found;
}

Result<double> Curve::TargetSeconds(const PlanTarget& target) const {
  double seconds = 0;
  switch (target.kind) {
    case PlanTarget::Kind::kBaselineFactor:
      seconds = target.value * planned_baseline_seconds();
      break;
    case PlanTarget::Kind::kSeconds:
      seconds = target.value;
      break;
    case PlanTarget::Kind::kMinEnergy:
      return frontier_.min_energy_seconds;
    case PlanTarget::Kind::kFastest:
      return frontier_.fastest_seconds;
    case PlanTarget::Kind::kTStar:
      return frontier_.tstar_seconds;
  }
  if (seconds < frontier_.fastest_seconds * (1 - kTimeTolerance)) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("the job cannot run in {:.6g} s; its fastest iteration takes "
                                 "{:.6g} s",
                                 seconds, frontier_.fastest_seconds));
  }
  return seconds;
}

double Curve::SlowedSeconds(const CurvePlan* plan, const std::vector<double>& factors) const {
  std::vector<double> durations = DurationsOf(plan == nullptr ? baseline_ : OptionsOf(*plan));
  const PipelineDag& dag = job_->pipeline.dag;
  double as_run = 1;  // Under the job's conditions, times without.
  if (expected_baseline_) {
    as_run = (plan == nullptr ? baseline_time_seconds_ : plan->iteration_time_seconds) /
             Replay(dag, durations).iteration_time_seconds;
  }
  for (int i = 0; i < dag.size(); ++i) durations[i] *= factors[dag.computations[i].rank];
  return as_run * Replay(dag, durations).iteration_time_seconds;
}

std::vector<std::string> Curve::RowsTexts(const CurvePlan& plan) const {
  const CostedPipeline& pipeline = job_->pipeline;
  const PipelineDag& dag = pipeline.dag;
  const std::vector<CostOption> options = OptionsOf(plan);
  const Timing timing = Replay(dag, DurationsOf(options));
  std::vector<std::string> texts;
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    wire::RankPlan steps;
    for (const int i : dag.rank_order[rank]) {
      const Computation& computation = dag.computations[i];
      steps.rows.push_back(
          {.id = computation.id,
           .fused = computation.fused,
           .mhz = static_cast<int>(std::lround(pipeline.knobs[options[i].knob].number)),
           .start_seconds = timing.start_seconds[i],
           .duration_seconds = options[i].time_seconds});
    }
    if (plan.waiting == Waiting::kCheapest) {
      steps.waiting_mhz =
          static_cast<int>(std::lround(pipeline.knobs[*pipeline.WaitingKnob(rank)].number));
    }
    texts.push_back(wire::RowsText(steps));
  }
  return texts;
}

std::vector<double> Curve::ClocksOf(const CurvePlan& plan) const {
  std::vector<double> clocks;
  clocks.reserve(plan.knobs.size());
  for (const CostOption& option : OptionsOf(plan)) {
    clocks.push_back(job_->pipeline.knobs[option.knob].number);
  }
  return clocks;
}

PlanDocument Curve::Document(const CurvePlan& plan) const {
  const CostedPipeline& pipeline = job_->pipeline;
  const Plan& baseline = planned_baseline_;
  Plan document;
  document.options = OptionsOf(plan);
  document.requested_time_seconds = plan.requested_time_seconds;
  document.waiting = plan.waiting;
  perseus::plan::FillFigures(pipeline, frontier_, baseline.energy_joules, &document);
  // The frontier of an exponential fit bounds nothing.
  document.lower_bound_joules = std::min(document.lower_bound_joules, document.energy_joules);

  PlanContext context;
  context.profile_source = job_->profile.source;
  context.profile_sha256 = job_->profile.sha256;
  context.data_parallel = job_->DataParallel();
  context.constraints = job_->Constraints();
  context.notes = job_->NotesAt(frontier_, plan.requested_time_seconds);
  const BoundOrigin bound = {.slope_quantum_watts = frontier_.slope_quantum_watts,
                             .exponential_fit = frontier_.fitted,
                             .certified_error = frontier_.certified_error};
  PlanDocument made = *MakePlanDocument(pipeline, document, baseline, bound, context);
  if (plan.expected) {
    made.conditions = ConditionsOf(job_->settings);
    made.expected = plan.expected;
  }
  return made;
}

}  // namespace perseus::server
