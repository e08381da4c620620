// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Jobs, as the API shows them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/belief.h"
#include "common/json_text.h"
#include "formats/plan_json.h"
#include "perseus/job.h"
#include "perseus/job_file.h"
#include "server/api/messages.h"
#include "server/planning/conditions_state.h"
#include "server/planning/job_spec.h"
#include "wire/rank_plan.h"

namespace perseus::server {
namespace {

// JSON that was stored, on one line; no value where it is none.
RawJson Compacted(const std::string& json) {
  const auto tree = nlohmann::ordered_json::parse(json, nullptr, false);
  return {tree.is_discarded() ? "" : FormatCompact(tree)};
}

// Plans.

constexpr Field kAgainstDefaultClocksFields[] = {
    Value<&DefaultClockFigures::iteration_time_seconds>("iteration_time_s")
        .Says("At default clocks, as the job runs without Perseus."),
    Value<&DefaultClockFigures::energy_joules>("energy_j").Says("Of one pipeline, then."),
    Value<&DefaultClockFigures::slowdown_percent>("slowdown_percent")
        .Says("Of the plan. Below 0: the plan is faster."),
    Value<&DefaultClockFigures::saving_percent>("saving_percent").Says("Of the plan.")};
constexpr Message<DefaultClockFigures> kAgainstDefaultClocks = {
    "AgainstDefaultClocks", kAgainstDefaultClocksFields,
    "The plan against iterations at default clocks, where the profile says their cost; without "
    "stragglers."};

struct WholeJob {
  double iteration_seconds = 0;
  double joules = 0;
  double saving_percent = 0;
  bool straggling = false;
};
constexpr Field kWholeJobFields[] = {
    Value<&WholeJob::iteration_seconds>("iteration_time_s")
        .Sometimes()
        .Says("Until the slowest pipeline has ended"),
    Value<&WholeJob::joules>("energy_j")
        .Sometimes()
        .Says("Of all pipelines, with waiting for the slowest at blocking power"),
    Value<&WholeJob::saving_percent>("saving_percent")
        .Sometimes()
        .Says("Against maximum clocks with the same stragglers"),
    Value<&WholeJob::straggling>("straggling").Sometimes()};
constexpr Message<WholeJob> kWholeJob = {"WholeJob", kWholeJobFields};

// All pipelines together, with the stragglers that there are: pipelines that have ended their
// iteration wait for the slowest, at blocking power; so does a slow GPU in the time that it takes
// longer.
WholeJob WholeJobOf(const PublishedPlan& published, int pipelines) {
  const Curve& curve = *published.curve;
  double seconds = published.straggler_seconds;
  for (int i = 0; i < pipelines; ++i) {
    const CurvePlan* const plan = published.PlanOf(i);
    seconds = std::max(
        seconds, plan == nullptr ? curve.baseline_time_seconds() : plan->iteration_time_seconds);
  }
  const double baseline_seconds =
      std::max(published.straggler_baseline_seconds, curve.baseline_time_seconds());
  const double watts = curve.frontier().total_blocking_power_watts;
  const double baseline_joules =
      curve.baseline_energy_joules() + watts * (baseline_seconds - curve.baseline_time_seconds());
  double joules = 0;
  for (int i = 0; i < pipelines; ++i) {
    const CurvePlan* const plan = published.PlanOf(i);
    joules +=
        plan == nullptr
            ? curve.baseline_energy_joules() + watts * (seconds - curve.baseline_time_seconds())
            : plan->energy_joules + watts * (seconds - plan->iteration_time_seconds);
  }
  return {seconds, joules, 100 * (1 - joules / (pipelines * baseline_joules)),
          published.straggler_seconds > 0};
}

constexpr Field kPipelinePlanFields[] = {
    Value<&CurvePlan::requested_time_seconds>("requested_time_s"),
    Value<&CurvePlan::iteration_time_seconds>("iteration_time_s"),
    Value<&CurvePlan::energy_joules>("energy_j"),
    Value<&CurvePlan::saving_percent>("saving_percent")};
constexpr Message<CurvePlan> kPipelinePlan = {"PipelinePlan", kPipelinePlanFields};

struct PlanShown {
  const PublishedPlan* published = nullptr;
  const CurvePlan* plan = nullptr;  // Of the pipelines that do not straggle; or none.
  std::optional<WholeJob> whole_job = {};
  struct Exceptions {
    std::map<int, CurvePlan> pipelines;  // Without knobs.
  };
  std::optional<Exceptions> exceptions = {};  // None: there is no curve.
};
constexpr Field kPlanOfAllFields[] = {
    Base(kPipelinePlan),
    Object<&CurvePlan::saving_interval>("saving_interval", wire::kSavingInterval).Sometimes(),
    Object<&CurvePlan::default_clocks>("default_clocks", kAgainstDefaultClocks).Sometimes()};
constexpr Message<CurvePlan> kPlanOfAll = {"", kPlanOfAllFields};
constexpr Field kExceptionsFields[] = {
    Object<&PlanShown::Exceptions::pipelines>("pipelines", kPipelinePlan)
        .Says("By number: a PipelinePlan of each that runs another one.")};
constexpr Message<PlanShown::Exceptions> kExceptions = {"", kExceptionsFields};
constexpr Field kPlanShownFields[] = {
    Value("version", [](const PlanShown& shown) { return shown.published->version.version; }),
    Value("reason",
          [](const PlanShown& shown) -> const std::string& {
            return shown.published->version.reason;
          }),
    Value("at", [](const PlanShown& shown) { return shown.published->version.at_seconds; })
        .Says("Since when, seconds since 1970."),
    Value("sentence",
          [](const PlanShown& shown) -> const std::string& { return shown.published->sentence; })
        .Sometimes()
        .UnlessEmpty(),
    Inline<&PlanShown::plan>(kPlanOfAll),
    Object<&PlanShown::whole_job>("whole_job", kWholeJob).Sometimes(),
    Inline<&PlanShown::exceptions>(kExceptions)};
constexpr Message<PlanShown> kPlanShown = {
    "PlanShown", kPlanShownFields,
    "Its figures are those of the pipelines that do not straggle, an iteration of one pipeline "
    "each; 'pipelines' has those that run another plan, 'whole_job' what all do together."};

std::optional<PlanShown> PlanOf(const JobView& view) {
  if (view.plan == nullptr) return std::nullopt;
  PlanShown shown = {.published = view.plan.get()};
  const Curve* const curve = view.plan->curve.get();
  if (curve == nullptr) return shown;
  shown.plan = curve->Find(view.plan->version.plan);
  if (shown.plan != nullptr) shown.whole_job = WholeJobOf(*view.plan, view.record.data_parallel);
  auto& pipelines = shown.exceptions.emplace().pipelines;
  for (const auto& [pipeline, id] : view.plan->version.exceptions) {
    const CurvePlan* const plan = curve->Find(id);
    CurvePlan& to = pipelines[pipeline];
    to.requested_time_seconds =
        plan == nullptr ? curve->planned_baseline_seconds() : plan->requested_time_seconds;
    to.iteration_time_seconds =
        plan == nullptr ? curve->baseline_time_seconds() : plan->iteration_time_seconds;
    to.energy_joules = plan == nullptr ? curve->baseline_energy_joules() : plan->energy_joules;
    to.saving_percent = plan == nullptr ? 0 : plan->saving_percent;
  }
  return shown;
}

constexpr Field kFrontierFields[] = {
    Value("fastest_s", [](const Curve& curve) { return curve.frontier().fastest_seconds; }),
    Value("min_energy_s", [](const Curve& curve) { return curve.frontier().min_energy_seconds; }),
    Value("tstar_s", [](const Curve& curve) { return curve.frontier().tstar_seconds; }),
    Value("baseline_s", [](const Curve& curve) { return curve.planned_baseline_seconds(); }),
    Value("plans", [](const Curve& curve) { return curve.plans().size(); })};
constexpr Message<Curve> kFrontierFigures = {"FrontierFigures", kFrontierFields};

// Stragglers and detection.

constexpr Field kDetectionSettingsFields[] = {
    Choice<&WatchSettings::mode>("mode", kDetectionModeNames),
    Value<&WatchSettings::shift, &ShiftSettings::threshold>("threshold"),
    Value<&WatchSettings::shift, &ShiftSettings::window>("window")};
constexpr Field kSlowRankFields[] = {
    Value<&ShownSlowRank::rank>("rank"),
    Value<&ShownSlowRank::dp_rank>("pipeline").Sometimes(),
    Value<&ShownSlowRank::pp_rank>("stage").Sometimes(),
    Value<&ShownSlowRank::node>("node").Sometimes(),
    Value<&ShownSlowRank::factor>("factor"),
    Value<&ShownSlowRank::since_iteration>("since_iteration").Sometimes(),
    Value<&ShownSlowRank::straggler>("straggler_id").Optional(),
    Value<&ShownSlowRank::dismissed>("dismissed")
        .Sometimes()
        .Says("An operator cleared its straggler; left alone until it has recovered"),
    Value<&ShownSlowRank::cause>("cause").Sometimes()};
constexpr Message<ShownSlowRank> kSlowRank = {"SlowRank", kSlowRankFields};
constexpr std::string_view kFindingKinds[] = {"straggler", "factor",     "recovered",
                                              "drift",     "drift_over", "slow",
                                              "slow_over", "compared",   "lengthened"};
constexpr Field kFindingFields[] = {
    Choice<&WatchEvent::kind>("kind", kFindingKinds),
    Value<&WatchEvent::finding, &Finding::iteration>("iteration").Sometimes(),
    Value<&WatchEvent::finding, &Finding::delay_iterations>("delay_iterations").Sometimes(),
    Value<&WatchEvent::sentence>("sentence")};
constexpr Message<WatchEvent> kFinding = {"Finding", kFindingFields};
constexpr Field kDetectionFields[] = {
    Inline<&WatchView::settings>(kDetectionSettings),
    Value<&WatchView::watched_ranks>("watched_ranks")
        .Sometimes()
        .Says("Ranks whose usual pace this server knows."),
    Value<&WatchView::reporting_ranks>("reporting_ranks")
        .Sometimes()
        .Says("Ranks that told this server of iterations within the last minute (of longer "
              "iterations: the last ten). Others do not report."),
    Value<&WatchView::ranks>("ranks").Sometimes().Says("Ranks that are registered."),
    Object<&WatchView::slow>("slow", kSlowRank),
    Value<&WatchView::together>("together")
        .Sometimes()
        .Says("A place that holds all slow ranks and no other"),
    Value<&WatchView::drift_factor>("drift_factor")
        .Sometimes()
        .Says("By which nearly all ranks are slow together; 1: none"),
    Value<&WatchView::slow_factor>("iteration_factor")
        .Sometimes()
        .Says("By which iterations are longer than planned; 1: none"),
    Value<&WatchView::slow_cause>("iteration_cause").Sometimes(),
    Object<&WatchView::events>("findings", kFinding)};

// Savings: predicted, and measured in an A/B comparison with the default clocks.

constexpr Field kComparisonNowFields[] = {
    Object("comparison", wire::kComparison, [](const ComparisonBlocks& blocks) {
      return blocks.is_on() ? &blocks : nullptr;
    }).Nullable()};
constexpr Field kEstimateFields[] = {
    Value("mean", [](const ShareEstimate& estimate) { return 100 * estimate.share; }),
    Value("least", [](const ShareEstimate& estimate) { return 100 * estimate.least; }),
    Value("most", [](const ShareEstimate& estimate) { return 100 * estimate.most; })};
constexpr Message<ShareEstimate> kEstimate = {
    "Estimate", kEstimateFields,
    "Percent, with the ends of its 95 % confidence interval; null: too few pairs."};
constexpr const ShareEstimate& SavingOf(const MeasuredSaving& measured) { return *measured.saving; }
constexpr Field kLastMeasuredFields[] = {
    Inline<SavingOf>(kEstimate),
    Value<&MeasuredSaving::plan_version>("plan_version")
        .Says("That it was measured of; the present one may be newer.")};
constexpr Message<MeasuredSaving> kLastMeasured = {"LastMeasuredSaving", kLastMeasuredFields};

// Of the plan that all pipelines run; none where a straggler has one of its own.
struct Prediction {
  std::int64_t plan_version = 0;
  bool believable = true;
  double time_percent = 0;
  const CurvePlan* plan = nullptr;
};
constexpr const CurvePlan& PredictedPlan(const Prediction& prediction) { return *prediction.plan; }
constexpr Field kPredictionFields[] = {
    Value<&Prediction::plan_version>("plan_version").Sometimes(),
    Value<&Prediction::believable>("believable").Sometimes(),
    Value<&Prediction::time_percent>("time_percent").Sometimes(),
    Value<PredictedPlan, &CurvePlan::saving_percent>("saving_percent").Sometimes(),
    Object<PredictedPlan, &CurvePlan::saving_interval>("saving_interval", wire::kSavingInterval)
        .Sometimes(),
    Object<PredictedPlan, &CurvePlan::default_clocks>("default_clocks", kAgainstDefaultClocks)
        .Sometimes()
        .Says("What the comparison measures, as its phases run at default clocks.")};
constexpr Message<Prediction> kPrediction = {"Prediction", kPredictionFields};
std::optional<Prediction> PredictionOf(const JobView& view) {
  if (view.plan == nullptr || view.plan->curve == nullptr) return std::nullopt;
  if (!view.plan->version.exceptions.empty()) return std::nullopt;
  const CurvePlan* const plan = view.plan->curve->Find(view.plan->version.plan);
  if (plan == nullptr) return std::nullopt;
  const double baseline = view.plan->curve->baseline_time_seconds();
  return Prediction{view.plan->version.version, AreBelievable(view.notes),
                    100 * (plan->iteration_time_seconds / baseline - 1), plan};
}

// One plan that was compared, and the prediction of the present one.
struct Compared {
  MeasuredSaving measured;
  std::optional<Prediction> prediction = {};
};
// Whether the measured interval meets the predicted one. None: one of them is not known.
std::optional<bool> Agrees(const Compared& compared) {
  const MeasuredSaving& measured = compared.measured;
  if (!measured.saving || !compared.prediction ||
      compared.prediction->plan_version != measured.plan_version) {
    return std::nullopt;
  }
  const CurvePlan& plan = *compared.prediction->plan;
  // The comparison is at default clocks. Where the saving against that is known, it is as sure as
  // the one against the highest clock, whose interval is then taken.
  const double differs =
      plan.default_clocks ? plan.default_clocks->saving_percent - plan.saving_percent : 0;
  const wire::SavingInterval interval =
      plan.saving_interval.value_or(wire::SavingInterval{plan.saving_percent, plan.saving_percent});
  return 100 * measured.saving->least <= interval.most_percent + differs &&
         100 * measured.saving->most >= interval.least_percent + differs;
}
std::optional<double> IfEnergy(const Compared& compared, double joules) {
  return compared.measured.energy_pairs > 0 ? std::optional(joules) : std::nullopt;
}
constexpr Field kComparedFields[] = {
    Value<&Compared::measured, &MeasuredSaving::plan_version>("plan_version"),
    Value<&Compared::measured, &MeasuredSaving::pairs>("pairs"),
    Value<&Compared::measured, &MeasuredSaving::with_seconds>("with_plan_s").Sometimes(),
    Value<&Compared::measured, &MeasuredSaving::without_seconds>("without_plan_s").Sometimes(),
    Object<&Compared::measured, &MeasuredSaving::slowdown>("time_percent", kEstimate).Optional(),
    Value<&Compared::measured, &MeasuredSaving::energy_pairs>("energy_pairs").Sometimes(),
    Value(
        "with_plan_j_per_gpu",
        [](const Compared& compared) { return IfEnergy(compared, compared.measured.with_joules); })
        .Optional(),
    Value("without_plan_j_per_gpu",
          [](const Compared& compared) {
            return IfEnergy(compared, compared.measured.without_joules);
          })
        .Optional(),
    Object<&Compared::measured, &MeasuredSaving::saving>("saving_percent", kEstimate).Optional(),
    Choice<&Compared::measured, &MeasuredSaving::settling>("settling", kSettlingNames.names)
        .Sometimes()
        .Says("Whether what a change of clocks does is over within half a phase; goes_on: the "
              "figures are biased, phases are too short"),
    Value<Agrees>("agrees").Optional().Says(
        "Whether the saving may be the predicted one, as far as their intervals tell; null: not "
        "known yet")};
constexpr Message<Compared> kCompared = {"MeasuredSaving", kComparedFields};

constexpr std::string_view kSavingsKinds[] = {"predicted", "measured", "estimated"};
constexpr std::string_view kBaselines[] = {"default_clocks"};
constexpr Field kSavingsFields[] = {
    Choice("kind", kSavingsKinds,
           [](const JobView& view) {
             return view.shadow_clients > 0               ? "estimated"
                    : view.watch.measured_savings.empty() ? "predicted"
                                                          : "measured";
           })
        .Says("estimated: in shadow mode nothing is saved; what is predicted is what would have "
              "been"),
    Choice("baseline", kBaselines, [](const JobView& /*view*/) { return "default_clocks"; })
        .Sometimes()
        .Says("What `measured` is against: phases at default clocks, in which a GPU boosts or "
              "is held back by its power cap."),
    Object<PredictionOf>("predicted", kPrediction).Nullable(),
    Object("comparison", wire::kComparison,
           [](const JobView& view) {
             const ComparisonBlocks& blocks = view.watch.settings.comparison;
             return blocks.is_on() ? &blocks : nullptr;
           })
        .Optional(),
    Object("measured", kCompared,
           [](const JobView& view) {
             std::vector<Compared> list;
             const auto prediction = PredictionOf(view);
             for (const MeasuredSaving& each : view.watch.measured_savings)
               list.push_back({each, prediction});
             return list;
           }),
    Value<&JobView::watch, &WatchView::dropped_cycles>("dropped_cycles")
        .Sometimes()
        .Says("In which the plan changed, or something is missing"),
    Value<&JobView::shadow_clients>("shadow_ranks").Sometimes(),
    Value("measured_at_maximum_s",
          [](const JobView& view) {
            std::optional<double> seconds;
            for (const auto& sum : view.iterations) {
              if (sum.plan_version != 0 || sum.reports == 0) continue;
              seconds = sum.total_seconds / static_cast<double>(sum.reports);
            }
            return seconds;
          })
        .Optional()
        .Says(
            "Mean of the iterations without a plan, which run at default clocks; null: none ran.")};

// Conditions: noise and latency as the ranks measure them, and as plans assume them.

struct ConditionShown {
  std::string_view name = {};
  double planned = 0;
  bool assumed = false;
  bool library = false;
  MeasuredCondition measured = {};
};
std::optional<double> IfMeasured(const MeasuredCondition& figure, double value) {
  return figure.ranks > 0 ? std::optional(value) : std::nullopt;
}
constexpr Field kConditionShownFields[] = {
    Choice<&ConditionShown::name>("name", kConditionNames),
    Value<&ConditionShown::planned>("planned").Says(
        "What the plans are made for. Noise: a share of the time; latency: seconds."),
    Value<&ConditionShown::assumed>("assumed").Says(
        "planned is assumed: the ranks were not sure enough of it."),
    Value<&ConditionShown::library>("library").Says("planned is what the job in `from` measured."),
    Value("measured",
          [](const ConditionShown& shown) {
            return IfMeasured(shown.measured, shown.measured.value);
          })
        .Nullable()
        .Says("By the ranks; null: not measured yet."),
    Value("measured_std",
          [](const ConditionShown& shown) {
            return IfMeasured(shown.measured, shown.measured.error);
          })
        .Nullable()
        .Says("Its standard error."),
    Value<&ConditionShown::measured, &MeasuredCondition::ranks>("ranks").Says(
        "That it comes from.")};
constexpr Message<ConditionShown> kConditionShown = {"ConditionShown", kConditionShownFields};

struct LatencyShown {
  int clock_mhz = 0;
  double planned_seconds = 0;
  std::optional<double> seconds = {};
  std::optional<double> error_seconds = {};
  std::int64_t ranks = 0;
};
constexpr Field kLatencyShownFields[] = {
    Value<&LatencyShown::clock_mhz>("clock_mhz"),
    Value<&LatencyShown::planned_seconds>("planned_s").Says("What the plans are made for."),
    Value<&LatencyShown::seconds>("measured_s")
        .Nullable()
        .Says("By the ranks; null: not measured yet."),
    Value<&LatencyShown::error_seconds>("measured_s_std").Nullable().Says("Its standard error."),
    Value<&LatencyShown::ranks>("ranks").Says("That it comes from.")};
constexpr Message<LatencyShown> kLatencyShown = {"LatencyShown", kLatencyShownFields};

struct TransferShown {
  int boundary = 0;
  double planned_seconds = 0;
  std::optional<double> seconds = {};
  std::optional<double> error_seconds = {};
  std::int64_t iterations = 0;
};
constexpr Field kTransferShownFields[] = {
    Value<&TransferShown::boundary>("boundary").Says("Between this stage and the next one."),
    Value<&TransferShown::planned_seconds>("planned_s").Says("What the plans are made for."),
    Value<&TransferShown::seconds>("measured_s")
        .Nullable()
        .Says("One way; null: not by ranks of this server, or not yet."),
    Value<&TransferShown::error_seconds>("measured_s_std").Nullable().Says("Its standard error."),
    Value<&TransferShown::iterations>("iterations").Says("That it comes from.")};
constexpr Message<TransferShown> kTransferShown = {"TransferShown", kTransferShownFields};

struct ConditionsFrom {
  std::string job = {};
  double at_seconds = 0;
  std::string profile = {};
};
constexpr Field kFromFields[] = {
    Value<&ConditionsFrom::job>("job"),
    Value<&ConditionsFrom::at_seconds>("at").Says("When it measured, seconds since 1970."),
    Value<&ConditionsFrom::profile>("profile").Says(
        "The profile of the library that it came with, also after the ranks have measured another "
        "one.")};
constexpr Message<ConditionsFrom> kConditionsFrom = {"ConditionsFrom", kFromFields};

struct ConditionsShown {
  std::string_view source = {};
  std::optional<ConditionsFrom> from = {};
  bool changing = false;
  double planned_at_seconds = 0;
  std::int64_t iterations = 0;
  std::int64_t calls = 0;
  std::vector<ConditionShown> figures = {};
  std::vector<LatencyShown> latency_at = {};
  std::vector<TransferShown> transfers = {};
};
constexpr std::string_view kPlannedSources[] = {"assumed", "measured", "given", "none", "library"};
constexpr Field kConditionsShownFields[] = {
    Choice<&ConditionsShown::source>("source", kPlannedSources)
        .Says("Where the planned values come from. assumed: the ranks measure them, and have not "
              "told enough yet; measured: by the ranks, but for what is still assumed; given: by "
              "the settings; none: plans are made for clocks that come at once, and no noise; "
              "library: by the job in `from`, which used the same profile."),
    Object<&ConditionsShown::from>("from", kConditionsFrom)
        .Nullable()
        .Says("Who measured what plans began with; null: no other job."),
    Value<&ConditionsShown::changing>("changing")
        .Says("Plans for the measured values are being made."),
    Value<&ConditionsShown::planned_at_seconds>("planned_at")
        .Nullable()
        .UnlessEmpty()
        .Says("When plans were first made for these values; null: they are the first."),
    Value<&ConditionsShown::iterations>("iterations").Says("That the measured noise comes from,"),
    Value<&ConditionsShown::calls>("calls").Says("and clock calls that the latency comes from."),
    Object<&ConditionsShown::figures>("figures", kConditionShown),
    Object<&ConditionsShown::latency_at>("latency_at", kLatencyShown)
        .Optional()
        .Says("Clocks whose calls take another time than switch_latency: so it was surely "
              "measured, or the plans are made for it."),
    Object<&ConditionsShown::transfers>("transfers", kTransferShown)
        .Optional()
        .Says("Between stages, where any is measured or planned for.")};
constexpr Message<ConditionsShown> kConditionsShown = {
    "Conditions", kConditionsShownFields,
    "What the ranks measure of noise and latency, and for which of them the plans are made."};

// Of a job that is told its conditions. None: it has none.
std::optional<PlannedConditions> GivenConditions(const JobView& view) {
  const auto settings = ParseJobFile(view.record.settings_json, "job", JobFileFormat::kJson);
  if (!settings || !HasConditions(*settings)) return std::nullopt;
  const Conditions conditions = ConditionsOf(*settings);
  PlannedConditions planned;
  planned.values = {conditions.noise.per_computation,
                    conditions.noise.per_rank,
                    conditions.noise.correlation,
                    conditions.switching.latency_seconds,
                    conditions.switching.latency_spread_seconds,
                    conditions.switching.stall_seconds,
                    conditions.noise.rare_length,
                    conditions.noise.rare_share};
  for (const ClockLatency& each : conditions.switching.latency_at) {
    planned.latency_at.push_back({static_cast<int>(each.clock), {.value = each.seconds}});
  }
  return planned;
}

template <typename Shown>
std::vector<Shown> ValuesOf(const std::map<int, Shown>& map) {
  std::vector<Shown> list;
  list.reserve(map.size());
  for (const auto& [key, shown] : map) list.push_back(shown);
  return list;
}

// Of clocks that are planned, or were surely measured, to take another time than all.
std::vector<LatencyShown> LatenciesOf(const PlannedConditions& planned,
                                      const MeasuredConditions& measured) {
  const double of_all = planned.Of(Condition::kLatency);
  std::map<int, LatencyShown> clocks;
  const auto at = [&](int clock_mhz) -> LatencyShown& {
    return clocks.try_emplace(clock_mhz, LatencyShown{clock_mhz, of_all, {}, {}, 0}).first->second;
  };
  for (const MeasuredClockLatency& each : planned.latency_at) {
    at(each.clock_mhz).planned_seconds = each.seconds.value;
  }
  for (const MeasuredClockLatency& each : OwnLatencies(measured.latency_at, of_all)) {
    at(each.clock_mhz);
  }
  for (const MeasuredClockLatency& each : measured.latency_at) {
    if (!clocks.contains(each.clock_mhz)) continue;
    LatencyShown& shown = at(each.clock_mhz);
    shown.seconds = each.seconds.value;
    shown.error_seconds = each.seconds.error;
    shown.ranks = each.seconds.ranks;
  }
  return ValuesOf(clocks);
}

// By boundary: the value that plans assume, which an earlier plan's ranks may have shown, and the
// value that the ranks show now.
std::vector<TransferShown> TransfersOf(const JobView& view) {
  const std::vector<double>& planned = view.transfer_seconds;
  std::map<int, TransferShown> boundaries;
  const auto at = [&](int boundary) -> TransferShown& {
    const auto place = static_cast<std::size_t>(boundary);
    const double seconds = planned.empty() ? 0 : planned[std::min(place, planned.size() - 1)];
    return boundaries.try_emplace(boundary, TransferShown{boundary, seconds, {}, {}, 0})
        .first->second;
  };
  for (std::size_t boundary = 0; boundary < planned.size(); ++boundary) {
    at(static_cast<int>(boundary));
  }
  for (const MeasuredTransfer& transfer : view.measured.transfers) {
    TransferShown& shown = at(transfer.boundary);
    shown.seconds = transfer.seconds;
    shown.error_seconds = transfer.error_seconds;
    shown.iterations = transfer.iterations;
  }
  return ValuesOf(boundaries);
}

ConditionsShown ConditionsOfJob(const JobView& view) {
  const std::optional<ConditionsState>& state = view.conditions;
  const auto given = state ? std::nullopt : GivenConditions(view);
  PlannedConditions none;
  none.values = {};
  const PlannedConditions planned = state ? state->plan : given.value_or(none);
  const MeasuredConditions& measured = state ? state->measured : view.measured;
  ConditionsShown shown;
  shown.source = !state && given            ? "given"
                 : !state                   ? "none"
                 : planned.any_measured()   ? "measured"
                 : state->start.has_value() ? "library"
                                            : "assumed";
  if (state && state->start) {
    shown.from = {state->start->job, state->start->at_seconds, state->start_profile};
  }
  shown.changing = state && state->next;
  shown.planned_at_seconds = state ? state->planned_at_seconds : 0;
  shown.iterations = measured.iterations;
  shown.calls = measured.calls;
  for (std::size_t i = 0; i < kConditions; ++i) {
    const bool is_from_start = state && state->IsFromStart(static_cast<Condition>(i));
    shown.figures.push_back({kConditionNames[i], planned.values[i],
                             state && !planned.measured[i] && !is_from_start, is_from_start,
                             measured.figures[i]});
  }
  shown.latency_at = LatenciesOf(planned, measured);
  shown.transfers = TransfersOf(view);
  return shown;
}

// The conditions that the library keeps with a profile.
constexpr Field kConditionKeptFields[] = {
    Choice<&ConditionShown::name>("name", kConditionNames),
    Value<&ConditionShown::measured, &MeasuredCondition::value>("measured"),
    Value<&ConditionShown::measured, &MeasuredCondition::error>("measured_std")
        .Says("Its standard error."),
    Value<&ConditionShown::measured, &MeasuredCondition::ranks>("ranks").Says(
        "That it comes from.")};
constexpr Message<ConditionShown> kConditionKept = {"ConditionKept", kConditionKeptFields};
constexpr Field kLatencyKeptFields[] = {
    Value<&MeasuredClockLatency::clock_mhz>("clock_mhz"),
    Value<&MeasuredClockLatency::seconds, &MeasuredCondition::value>("measured_s"),
    Value<&MeasuredClockLatency::seconds, &MeasuredCondition::error>("measured_s_std")
        .Says("Its standard error."),
    Value<&MeasuredClockLatency::seconds, &MeasuredCondition::ranks>("ranks").Says(
        "That it comes from.")};
constexpr Message<MeasuredClockLatency> kLatencyKept = {"LatencyKept", kLatencyKeptFields};
constexpr Field kKeptFields[] = {
    Value<&KeptConditions::job>("job").Says("That measured it, under this profile."),
    Value<&KeptConditions::at_seconds>("at").Says("When, seconds since 1970."),
    Value<&KeptConditions::measured, &MeasuredConditions::iterations>("iterations")
        .Says("That the noise comes from,"),
    Value<&KeptConditions::measured, &MeasuredConditions::calls>("calls").Says(
        "and clock calls that the latency comes from."),
    Object("figures", kConditionKept,
           [](const KeptConditions& kept) {
             std::vector<ConditionShown> list;
             for (std::size_t i = 0; i < kConditions; ++i) {
               const MeasuredCondition& figure = kept.measured.figures[i];
               if (figure.ranks > 0)
                 list.push_back({.name = kConditionNames[i], .measured = figure});
             }
             return list;
           }),
    Object("latency_at", kLatencyKept,
           [](const KeptConditions& kept) {
             return OwnLatencies(kept.measured.latency_at,
                                 kept.measured.Of(Condition::kLatency).value);
           })
        .Optional()
        .Says("Of clocks whose calls surely take another time.")};
constexpr Message<KeptConditions> kKeptConditions = {
    "KeptConditions", kKeptFields,
    "What the last job that used the profile measured of noise and latency. A job that takes the "
    "profile over is first planned for it."};

// Profiles.

constexpr Field kProfilingFields[] = {
    Inline<&JobView::profiling>(kProfilingSummary),
    Value<&JobView::sweeps_again>("again").Sometimes().Says(
        "Whether the ranks measure anew, under the plans of the profile before.")};
constexpr Message<JobView> kProfiling = {"Profiling", kProfilingFields,
                                         "What ranks said of their measurements."};
constexpr Field kDriftFields[] = {
    Value<&Drift::key, &ProfileKey::stage>("stage").Sometimes(),
    Value("instruction", [](const Drift& drift) { return ComputationTypeName(drift.key.type); })
        .Sometimes(),
    Value<&Drift::key, &ProfileKey::clock_mhz>("frequency").Sometimes().UnlessEmpty(),
    Value("percent", [](const Drift& drift) { return 100 * (drift.ratio() - 1); }).Sometimes(),
    Value<&Drift::measured_seconds>("measured_s").Sometimes(),
    Value<&Drift::profile_seconds>("profile_s").Sometimes(),
    Value<&Drift::computations>("computations").Sometimes(),
    Value<DriftText>("sentence").Sometimes()};
constexpr Message<Drift> kDrift = {"Drift", kDriftFields};

constexpr Field kProfileRecordFields[] = {
    Value<&store::ProfileRecord::id>("id"), Value<&store::ProfileRecord::model>("model"),
    Value<&store::ProfileRecord::job>("job"),
    Value<&store::ProfileRecord::created_at_seconds>("created_at"),
    Value("reusable", [](const store::ProfileRecord& profile) { return !profile.layout.empty(); })
        .Sometimes()
        .Says("Whether another job may find it: its job had a label, and all ranks said "
              "their GPUs."),
    Value<&store::ProfileRecord::blocking_power_watts>("blocking_power_w").Sometimes(),
    Value("metadata",
          [](const store::ProfileRecord& profile) { return Compacted(profile.metadata_json); })
        .Optional()
        .UnlessEmpty(),
    Object("conditions", kKeptConditions,
           [](const store::ProfileRecord& profile) {
             return ParseKeptConditions(profile.conditions_json);
           })
        .Nullable()
        .Says("null: no job that used it has measured enough."),
    // In lists it is left out.
    Value<&store::ProfileRecord::profile_csv>("profile_csv").Sometimes().UnlessEmpty()};

// Jobs.

constexpr Field kIterationSummaryFields[] = {
    Value<&store::IterationSummary::plan_version>("plan_version"),
    Value<&store::IterationSummary::reports>("reports"),
    Value("mean_s",
          [](const store::IterationSummary& sum) {
            return sum.total_seconds / static_cast<double>(sum.reports);
          }),
    Value<&store::IterationSummary::least_seconds>("least_s"),
    Value<&store::IterationSummary::most_seconds>("most_s"),
    Value<&store::IterationSummary::total_joules>("energy_j")};
constexpr Message<store::IterationSummary> kIterationSummary = {"IterationSummary",
                                                                kIterationSummaryFields};
constexpr Field kTroubledFields[] = {Value<&ClientReport::rank>("rank"),
                                     Value<&ClientReport::error>("error")};
constexpr Message<ClientReport> kTroubledClient = {"TroubledClient", kTroubledFields};
constexpr Field kClientsShownFields[] = {
    Value<&JobView::client_counts>("counts").Says("Sums over ranks."),
    Value<&JobView::client_states>("states").Sometimes().Says("How many ranks report each state."),
    Value<&JobView::complaining_clients>("complaining")
        .Sometimes()
        .Says("How many ranks report an error."),
    Object<&JobView::troubled_clients>("troubled", kTroubledClient).Says("The first 100 of them.")};
constexpr Message<JobView> kClientsShown = {"ClientsShown", kClientsShownFields};
constexpr Field kNoteFields[] = {
    Choice("severity", "odd implausible impossible"),
    Text("text").Says("One sentence, without a full stop."),
    Text("source").Sometimes().Says("profile_csv, where the line is one of it."),
    Integer("line").Sometimes(), Integer("column").Sometimes()};
constexpr AnyMessage kNote = {"Note", kNoteFields};
constexpr Field kRecentFields[] = {
    Value<&RecentFigures::iterations>("iterations").Says("The figures are of these last ones."),
    Value<&RecentFigures::iteration_seconds>("iteration_time_s")
        .Says("Their median; of each iteration the slowest rank."),
    Value<&RecentFigures::watts>("power_w").Nullable().Says(
        "Of all GPUs together; null: not all ranks report their energy."),
    Value<&RecentFigures::at_seconds>("at").Says(
        "When the last one was over, seconds since 1970.")};
constexpr Message<RecentFigures> kMeasuredNow = {"MeasuredNow", kRecentFields};
constexpr Field kTimelineHeadFields[] = {Value<&MeasuredTimeline::iteration>("iteration"),
                                         Value<&MeasuredTimeline::plan_version>("plan_version"),
                                         Value<&MeasuredTimeline::heard_at_seconds>("at").Says(
                                             "When its last rank reported, seconds since 1970.")};
constexpr Message<MeasuredTimeline> kTimelineHead = {"TimelineHead", kTimelineHeadFields};

// None: ranks may follow of which nothing was heard yet.
std::optional<std::int64_t> FollowingOf(const JobView& view) {
  std::int64_t heard = 0;
  for (const auto& [state, ranks] : view.client_states) heard += ranks;
  const auto found = view.client_states.find("following");
  const std::int64_t following = found == view.client_states.end() ? 0 : found->second;
  if (following > 0 || (heard > 0 && heard >= view.ranks_registered)) return following;
  return std::nullopt;
}
constexpr const JobView& Itself(const JobView& view) { return view; }
using store::JobRecord;
constexpr std::string_view kOrigins[] = {"api", "zeus"};
constexpr Field kJobSummaryFields[] = {
    Value<&JobView::record, &JobRecord::id>("id"),
    Value<&JobView::revision>("revision").Says("Grows with every change; see If-Match."),
    Value<&JobView::record, &JobRecord::name>("name").Sometimes(),
    Value<&JobView::record, &JobRecord::labels>("labels").Sometimes().Says("Name to value."),
    Value<&JobView::record, &JobRecord::client_key>("client_key")
        .Sometimes()
        .Says("As given at creation; begins with - where none was"),
    Choice<&JobView::record, &JobRecord::state>("state", store::kJobStateNames),
    Value<&JobView::record, &JobRecord::reason>("reason"),
    Choice<&JobView::record, &JobRecord::origin>("origin", kOrigins).Sometimes(),
    Value<&JobView::record, &JobRecord::created_at_seconds>("created_at").Sometimes(),
    Value(
        "world_size",
        [](const JobView& view) {
          const JobRecord& job = view.record;
          return Shape{job.pipeline_parallel, job.data_parallel, job.tensor_parallel}.world_size();
        }),
    Value<&JobView::record, &JobRecord::pipeline_parallel>("pipeline_parallel").Sometimes(),
    Value<&JobView::record, &JobRecord::data_parallel>("data_parallel").Sometimes(),
    Value<&JobView::record, &JobRecord::tensor_parallel>("tensor_parallel").Sometimes(),
    Value<&JobView::ranks_registered>("ranks_registered").Sometimes(),
    Value<&JobView::ranks_measured>("ranks_measured").Sometimes(),
    Value<&JobView::target>("at").Sometimes(),
    Value<&JobView::progress>("progress").Sometimes(),
    Value<&JobView::refined>("refined").Sometimes(),
    Value("stragglers", [](const JobView& view) { return view.stragglers.size(); })
        .Sometimes()
        .Says("Reports: several may be of one pipeline."),
    Value<&JobView::slow_pipelines>("slow_pipelines")
        .Sometimes()
        .Says("How many pipelines the stragglers slow, now or later."),
    Value<&JobView::complaining_clients>("complaining")
        .Sometimes()
        .Says("How many ranks report an error."),
    Object<&JobView::watch, &WatchView::recent>("measured", kMeasuredNow)
        .Optional()
        .Says("What the last iterations took; null: this server heard of none."),
    Object("measured_saving", kLastMeasured,
           [](const JobView& view) -> const MeasuredSaving* {
             const auto& all = view.watch.measured_savings;
             const auto last =
                 std::find_if(all.rbegin(), all.rend(),
                              [](const MeasuredSaving& each) { return each.saving.has_value(); });
             return last == all.rend() ? nullptr : &*last;
           })
        .Optional()
        .Says("The saving of the newest plan that was compared with default clocks, in "
              "percent; null: none was compared."),
    Value("believable", [](const JobView& view) { return AreBelievable(view.notes); })
        .Sometimes()
        .Says("false: the job has an implausible note, and its planned figures are no "
              "result."),
    Value<FollowingOf>("following")
        .Sometimes()
        .Says("How many ranks report to this server that they follow the plan. 0: all report here, "
              "and "
              "none follows, so the plan saves nothing. Missing: it is not known."),
    Value<&JobView::has_ended>("ended").Sometimes().UnlessEmpty().Says(
        "true: all its registered ranks have told this server that their trainers end. A run with "
        "the same client key goes on."),
    Value<&JobView::profile_source>("profile_source")
        .Optional()
        .UnlessEmpty()
        .Says("given, measured, or \"reused from JOB (PROFILE)\"; null: there is no profile yet."),
    Object<PlanOf>("plan", kPlanShown)
        .Optional()
        .Says("Its figures are those of the pipelines that do not straggle, an iteration of one "
              "pipeline each; 'pipelines' has those that run another plan, 'whole_job' what all do "
              "together")};
constexpr Field kJobFields[] = {
    Base(kJobSummary),
    Value("settings", [](const JobView& view) { return Compacted(view.record.settings_json); })
        .Optional()
        .UnlessEmpty(),
    Object("notes", kNote,
           [](const JobView& view) { return Compacted(formats::NotesJson(view.notes)); })
        .List()
        .Says("What is odd or implausible in the profile and the settings: wrong units, most "
              "likely."),
    Object(
        "frontier", kFrontierFigures,
        [](const JobView& view) { return view.plan == nullptr ? nullptr : view.plan->curve.get(); })
        .Optional(),
    Value<&JobView::missing_ranks>("missing_ranks")
        .Sometimes()
        .UnlessEmpty()
        .Says("The first 8 that have not registered."),
    Object<&JobView::stragglers>("stragglers", kStraggler).Replacing(),
    Object<&JobView::iterations>("iterations", kIterationSummary).Sometimes(),
    Value("model",
          [](const JobView& view) { return ParseLibraryRequest(view.record.library_json).model; })
        .Sometimes()
        .Says("The label that the profile library goes by."),
    Object<Itself>("profiling", kProfiling).Sometimes(),
    Object<ConditionsOfJob>("conditions", kConditionsShown).Sometimes(),
    Object<&JobView::timeline>("timeline", kTimelineHead)
        .Optional()
        .Says("The last iteration that its ranks timed, which GET .../timeline has; null: none "
              "since this server began."),
    Object<&JobView::drifts>("drift", kDrift)
        .Sometimes()
        .Says("Kinds of computations that take another time than the profile says, as far as they "
              "report to this server."),
    Object<&JobView::watch>("detection", kDetection).Sometimes(),
    Object<Itself>("savings", kSavings).Sometimes(),
    Object<Itself>("clients", kClientsShown).Sometimes()};

constexpr Field kStragglerFields[] = {
    Value<&store::StragglerRecord::id>("straggler_id"),
    Value<&store::StragglerRecord::pipeline>("pipeline").Sometimes(),
    Value<&store::StragglerRecord::rank>("rank").Sometimes(),
    Value<&store::StragglerRecord::node>("node").Sometimes().UnlessEmpty(),
    Value<&store::StragglerRecord::factor>("factor").Sometimes().UnlessEmpty(),
    Value<&store::StragglerRecord::delay_seconds>("delay_s").Sometimes().UnlessEmpty(),
    Value<&store::StragglerRecord::starts_at_seconds>("starts_at"),
    Value<&store::StragglerRecord::expires_at_seconds>("expires_at").Optional()};

}  // namespace

constexpr Message<store::StragglerRecord> kStraggler = {"Straggler", kStragglerFields};
constexpr Message<store::ProfileRecord> kProfileRecord = {
    "Profile", kProfileRecordFields, "A profile that some job measured, kept beyond it."};
constexpr Message<WatchSettings> kDetectionSettings = {"DetectionSettings",
                                                       kDetectionSettingsFields};
constexpr Message<WatchView> kDetection = {"Detection", kDetectionFields};
constexpr Message<ComparisonBlocks> kComparisonNow = {"ComparisonNow", kComparisonNowFields};
constexpr Message<JobView> kSavings = {"Savings", kSavingsFields};
constexpr Message<JobView> kJobSummary = {"JobSummary", kJobSummaryFields};
constexpr Message<JobView> kJob = {"Job", kJobFields};

}  // namespace perseus::server
