// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/api/watch_json.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/belief.h"
#include "server/api/job_json.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr Field kDetectionSettingsMembers[] = {Choice("mode", "off advisory act"),
                                               Number("threshold"), Integer("window")};
constexpr Field kSlowRankMembers[] = {
    Integer("rank"),
    Integer("pipeline").Sometimes(),
    Integer("stage").Sometimes(),
    Text("node").Sometimes(),
    Number("factor"),
    Integer("since_iteration").Sometimes(),
    Integer("straggler_id").Optional(),
    Boolean("dismissed")
        .Sometimes()
        .Says("An operator cleared its straggler; left alone until it has recovered"),
    Text("cause").Sometimes()};
constexpr Field kFindingMembers[] = {
    Choice("kind", "straggler factor recovered drift drift_over slow slow_over compared"),
    Integer("iteration").Sometimes(), Integer("delay_iterations").Sometimes(), Text("sentence")};
constexpr Field kDetectionMembers[] = {
    Integer("watched_ranks").Sometimes().Says("Ranks whose usual pace this server knows."),
    Integer("reporting_ranks")
        .Sometimes()
        .Says("Ranks that told this server of iterations within the last minute (of longer "
              "iterations: the last ten). Others report to other servers, or do not report."),
    Integer("ranks").Sometimes().Says("Ranks that are registered."),
    Object("slow", "SlowRank").List(),
    Text("together").Sometimes().Says("A place that holds all slow ranks and no other"),
    Number("drift_factor").Sometimes().Says("By which nearly all ranks are slow together; 1: none"),
    Number("iteration_factor")
        .Sometimes()
        .Says("By which iterations are longer than planned; 1: none"),
    Text("iteration_cause").Sometimes(),
    Object("findings", "Finding").List()};
constexpr Field kComparisonMembers[] = {Integer("every"), Integer("iterations")};
constexpr Field kComparisonNowMembers[] = {Object("comparison", "Comparison").Nullable()};
constexpr Field kEstimateMembers[] = {Number("mean"), Number("least"), Number("most")};
constexpr Field kPromiseMembers[] = {
    Integer("plan_version").Sometimes(),
    Boolean("believable").Sometimes(),
    Number("time_percent").Sometimes(),
    Number("saving_percent").Sometimes(),
    Object("saving_interval", "SavingInterval").Sometimes(),
    Object("unlocked", "AgainstUnlocked")
        .Sometimes()
        .Says("What the comparison measures, as its stretches have no clock set.")};
constexpr Field kLastRealisedMembers[] = {
    Integer("plan_version").Says("That it was measured of; the present one may be newer.")};
constexpr Field kRealisedMembers[] = {
    Integer("plan_version"),
    Integer("pairs"),
    Number("with_plan_s").Sometimes(),
    Number("without_plan_s").Sometimes(),
    Object("time_percent", "Estimate").Optional(),
    Integer("energy_pairs").Sometimes(),
    Number("with_plan_j_per_gpu").Optional(),
    Number("without_plan_j_per_gpu").Optional(),
    Object("saving_percent", "Estimate").Optional(),
    Choice("settling", "unknown over goes_on")
        .Sometimes()
        .Says("Whether what a change of clocks does is over "
              "within half a stretch; goes_on: the figures are "
              "biased, stretches are too short"),
    Boolean("agrees").Optional().Says("Whether the saving may be the promised one, as far as "
                                      "their intervals tell; null: not known yet")};
constexpr Field kSavingsMembers[] = {
    Choice("kind", "promised realised estimated")
        .Says(
            "estimated: in shadow mode nothing is saved; what is promised is what would have been"),
    Choice("baseline", "unlocked")
        .Sometimes()
        .Says(
            "What `realised` is against: stretches with no clock set, in which a GPU boosts or is "
            "held back by its power cap."),
    Object("promised", "Promise").Nullable(),
    Object("comparison", "Comparison").Optional(),
    Object("realised", "Realised").List(),
    Integer("dropped_cycles")
        .Sometimes()
        .Says("In which the plan changed, or something is missing"),
    Integer("shadow_ranks").Sometimes(),
    Number("measured_at_maximum_s")
        .Optional()
        .Says(
            "Mean of the iterations without a plan, which run with no clock set; null: none ran.")};
constexpr AnyMessage kWatchSchemas[] = {
    kNewDetectionSchema,
    kNewComparisonSchema,
    {"DetectionSettings", kDetectionSettingsMembers},
    {"SlowRank", kSlowRankMembers},
    {"Finding", kFindingMembers},
    {.name = "Detection", .fields = kDetectionMembers, .base = "DetectionSettings"},
    {"Comparison", kComparisonMembers,
     "Of every so many iterations, so many in one stretch run with no clock set; "
     "docs/how-to/savings.md "
     "says which."},
    {"ComparisonNow", kComparisonNowMembers},
    {"Estimate", kEstimateMembers,
     "Percent, with the ends of its 95 % confidence interval; null: too few pairs."},
    {.name = "LastRealised", .fields = kLastRealisedMembers, .base = "Estimate"},
    {"Promise", kPromiseMembers},
    {"Realised", kRealisedMembers},
    {"Savings", kSavingsMembers}};

Json EstimateJson(const std::optional<ShareEstimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"mean", 100 * estimate->share},
          {"least", 100 * estimate->least},
          {"most", 100 * estimate->most}};
}

// Whether the interval of what was realised meets that of what was promised; null where one is not
// known.
Json AgreesJson(const Realised& realised, const Json& promise) {
  if (!realised.saving || promise.is_null() || promise["plan_version"] != realised.plan_version) {
    return nullptr;
  }
  const double promised = promise["saving_percent"];
  const Json interval = promise.value("saving_interval", Json::object());
  // The stretches run with no clock set. Where the saving against that is known, it is as sure as
  // the one against the highest clock, whose interval is then taken.
  const double differs =
      promise.value("unlocked", Json::object()).value("saving_percent", promised) - promised;
  return 100 * realised.saving->least <= interval.value("most_percent", promised) + differs &&
         100 * realised.saving->most >= interval.value("least_percent", promised) + differs;
}

Json RealisedJson(const Realised& realised, const Json& promise) {
  Json json = {{"plan_version", realised.plan_version},
               {"pairs", realised.pairs},
               {"with_plan_s", realised.with_seconds},
               {"without_plan_s", realised.without_seconds},
               {"time_percent", EstimateJson(realised.slowdown)},
               {"energy_pairs", realised.energy_pairs}};
  const bool has_energy = realised.energy_pairs > 0;
  json["with_plan_j_per_gpu"] = has_energy ? Json(realised.with_joules) : Json(nullptr);
  json["without_plan_j_per_gpu"] = has_energy ? Json(realised.without_joules) : Json(nullptr);
  json["saving_percent"] = EstimateJson(realised.saving);
  json["settling"] = kSettlingNames.Of(realised.settling);
  json["agrees"] = AgreesJson(realised, promise);
  return json;
}

// Of the plan that all pipelines run; none where a straggler has one of its own.
Json PromiseJson(const JobView& view) {
  if (view.plan == nullptr || view.plan->curve == nullptr) return nullptr;
  if (!view.plan->version.exceptions.empty()) return nullptr;
  const CurvePlan* const plan = view.plan->curve->Find(view.plan->version.plan);
  if (plan == nullptr) return nullptr;
  const double baseline = view.plan->curve->baseline_time_seconds();
  Json json = {{"plan_version", view.plan->version.version},
               {"believable", AreBelievable(view.notes)},
               {"time_percent", 100 * (plan->iteration_time_seconds / baseline - 1)},
               {"saving_percent", plan->saving_percent}};
  if (plan->saving_interval) json["saving_interval"] = SavingIntervalJson(*plan->saving_interval);
  if (plan->unlocked) json["unlocked"] = UnlockedJson(*plan->unlocked);
  return json;
}

Json SlowRankJson(const ShownSlowRank& slow) {
  return {{"rank", slow.rank},
          {"pipeline", slow.dp_rank},
          {"stage", slow.pp_rank},
          {"node", slow.node},
          {"factor", slow.factor},
          {"since_iteration", slow.since_iteration},
          {"straggler_id", slow.straggler ? Json(*slow.straggler) : Json(nullptr)},
          {"dismissed", slow.dismissed},
          {"cause", slow.cause}};
}

}  // namespace

Schemas WatchSchemas() { return kWatchSchemas; }

Json DetectionSettingsJson(const WatchSettings& settings) {
  return {{"mode", DetectionModeName(settings.mode)},
          {"threshold", settings.shift.threshold},
          {"window", settings.shift.window}};
}

Json ComparisonJson(const ComparisonBlocks& blocks) {
  if (!blocks.is_on()) return nullptr;
  return {{"every", blocks.every}, {"iterations", blocks.iterations}};
}

Json LastRealisedJson(const WatchView& view) {
  for (auto each = view.realised.rbegin(); each != view.realised.rend(); ++each) {
    if (!each->saving) continue;
    Json json = EstimateJson(each->saving);
    json["plan_version"] = each->plan_version;
    return json;
  }
  return nullptr;
}

Json DetectionJson(const WatchView& view) {
  Json json = DetectionSettingsJson(view.settings);
  json["watched_ranks"] = view.watched_ranks;
  json["reporting_ranks"] = view.reporting_ranks;
  json["ranks"] = view.ranks;
  json["slow"] = Json::array();
  for (const ShownSlowRank& slow : view.slow) json["slow"].push_back(SlowRankJson(slow));
  json["together"] = view.together;
  json["drift_factor"] = view.drift_factor;
  json["iteration_factor"] = view.slow_factor;
  json["iteration_cause"] = view.slow_cause;
  json["findings"] = Json::array();
  for (const WatchEvent& event : view.events) {
    json["findings"].push_back({{"kind", event.kind},
                                {"iteration", event.finding.iteration},
                                {"delay_iterations", event.finding.delay_iterations},
                                {"sentence", event.sentence}});
  }
  return json;
}

Json SavingsJson(const JobView& view) {
  const bool is_shadow = view.shadow_clients > 0;
  Json json = {{"kind", is_shadow                     ? "estimated"
                        : view.watch.realised.empty() ? "promised"
                                                      : "realised"},
               {"baseline", "unlocked"},
               {"promised", PromiseJson(view)},
               {"comparison", ComparisonJson(view.watch.settings.comparison)},
               {"realised", Json::array()},
               {"dropped_cycles", view.watch.dropped_cycles},
               {"shadow_ranks", view.shadow_clients}};
  for (const Realised& realised : view.watch.realised) {
    json["realised"].push_back(RealisedJson(realised, json["promised"]));
  }
  json["measured_at_maximum_s"] = nullptr;
  for (const auto& summary : view.iterations) {
    if (summary.plan_version != 0 || summary.reports == 0) continue;
    json["measured_at_maximum_s"] = summary.total_seconds / static_cast<double>(summary.reports);
  }
  return json;
}

}  // namespace perseus::server
