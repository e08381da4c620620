// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/api/conditions_json.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perseus/job.h"
#include "perseus/job_file.h"
#include "server/api/api_schemas.h"
#include "server/planning/conditions_state.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kPlannedSources = {"assumed", "measured", "given", "none",
                                                             "library"};
constexpr Field kConditionShownMembers[] = {
    Choice("name", kConditionNames),
    Number("planned").Says("What the plans are made for. Noise: a share of the time; latency: "
                           "seconds."),
    Boolean("assumed").Says("planned is assumed: the ranks were not sure enough of it."),
    Boolean("library").Says("planned is what the job in `from` measured."),
    Number("measured").Nullable().Says("By the ranks; null: not measured yet."),
    Number("measured_std").Nullable().Says("Its standard error."),
    Integer("ranks").Says("That it comes from.")};
constexpr Field kTransferShownMembers[] = {
    Integer("boundary").Says("Between this stage and the next one."),
    Number("planned_s").Says("What the plans are made for."),
    Number("measured_s").Nullable().Says("One way; null: not by ranks of this server, or not yet."),
    Number("measured_s_std").Nullable().Says("Its standard error."),
    Integer("iterations").Says("That it comes from.")};
constexpr Field kLatencyShownMembers[] = {
    Integer("clock_mhz"), Number("planned_s").Says("What the plans are made for."),
    Number("measured_s").Nullable().Says("By the ranks; null: not measured yet."),
    Number("measured_s_std").Nullable().Says("Its standard error."),
    Integer("ranks").Says("That it comes from.")};
constexpr Field kConditionsMembers[] = {
    Choice("source", kPlannedSources)
        .Says("Where the planned values come from. assumed: the ranks measure them, and have not "
              "told enough yet; measured: by the ranks, but for what is still assumed; given: by "
              "the settings; none: plans are made for clocks that come at once, and no noise; "
              "library: by the job in `from`, which used the same profile."),
    Object("from", "ConditionsFrom")
        .Nullable()
        .Says("Who measured what plans began with; null: no other job."),
    Boolean("changing").Says("Plans for the measured values are being made."),
    Number("planned_at")
        .Nullable()
        .Says("When plans were first made for these values; null: they are the first."),
    Integer("iterations").Says("That the measured noise comes from,"),
    Integer("calls").Says("and clock calls that the latency comes from."),
    Object("figures", "ConditionShown").List(),
    Object("latency_at", "LatencyShown")
        .List()
        .Optional()
        .Says("Clocks whose calls take another time than switch_latency: so it was surely "
              "measured, or the plans are made for it."),
    Object("transfers", "TransferShown")
        .List()
        .Optional()
        .Says("Between stages, where any is measured or planned for.")};
constexpr Field kFromMembers[] = {
    Text("job"), Number("at").Says("When it measured, seconds since 1970."),
    Text("profile").Says("The profile of the library that it came with, also after the ranks "
                         "have measured another one.")};
constexpr Field kKeptMembers[] = {
    Text("job").Says("That measured it, under this profile."),
    Number("at").Says("When, seconds since 1970."),
    Integer("iterations").Says("That the noise comes from,"),
    Integer("calls").Says("and clock calls that the latency comes from."),
    Object("figures", "ConditionKept").List(),
    Object("latency_at", "LatencyKept")
        .List()
        .Optional()
        .Says("Of clocks whose calls surely take another time.")};
constexpr Field kLatencyKeptMembers[] = {Integer("clock_mhz"), Number("measured_s"),
                                         Number("measured_s_std").Says("Its standard error."),
                                         Integer("ranks").Says("That it comes from.")};
constexpr Field kConditionKeptMembers[] = {Choice("name", kConditionNames), Number("measured"),
                                           Number("measured_std").Says("Its standard error."),
                                           Integer("ranks").Says("That it comes from.")};
constexpr AnyMessage kConditionsSchemas[] = {
    {"ConditionShown", kConditionShownMembers},
    {"LatencyShown", kLatencyShownMembers},
    {"TransferShown", kTransferShownMembers},
    {"ConditionsFrom", kFromMembers},
    {"ConditionKept", kConditionKeptMembers},
    {"LatencyKept", kLatencyKeptMembers},
    {"KeptConditions", kKeptMembers,
     "What the last job that used the profile measured of noise and latency. A job that takes the "
     "profile over is first planned for it."},
    {"Conditions", kConditionsMembers,
     "What the ranks measure of noise and latency, and for which "
     "of them the plans are made."}};

// Of a job that is told its conditions, or has none.
PlannedConditions GivenConditions(const JobView& view, bool* is_given) {
  PlannedConditions planned;
  planned.values = {};
  *is_given = false;
  const auto settings = ParseJobFile(view.record.settings_json, "job", JobFileFormat::kJson);
  if (!settings || !HasConditions(*settings)) return planned;
  *is_given = true;
  const Conditions conditions = ConditionsOf(*settings);
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

// Of clocks that are planned, or were surely measured, to take another time than all: what the
// plans are made for, and what was measured.
Json LatenciesJson(const PlannedConditions& planned, const MeasuredConditions& measured) {
  std::map<int, Json> clocks;
  const auto entry = [&](int clock_mhz) -> Json& {
    Json& json = clocks[clock_mhz];
    if (json.is_null()) {
      json = {{"clock_mhz", clock_mhz},
              {"planned_s", planned.Of(Condition::kLatency)},
              {"measured_s", nullptr},
              {"measured_s_std", nullptr},
              {"ranks", 0}};
    }
    return json;
  };
  for (const MeasuredClockLatency& each : planned.latency_at) {
    entry(each.clock_mhz)["planned_s"] = each.seconds.value;
  }
  for (const MeasuredClockLatency& each :
       OwnLatencies(measured.latency_at, planned.Of(Condition::kLatency))) {
    entry(each.clock_mhz);
  }
  for (const MeasuredClockLatency& each : measured.latency_at) {
    if (!clocks.contains(each.clock_mhz)) continue;
    Json& json = entry(each.clock_mhz);
    json["measured_s"] = each.seconds.value;
    json["measured_s_std"] = each.seconds.error;
    json["ranks"] = each.seconds.ranks;
  }
  Json list = Json::array();
  for (auto& [clock_mhz, json] : clocks) list.push_back(std::move(json));
  return list;
}

// By boundary: what the plans are made for, which may be what an earlier plan's ranks showed, and
// what the ranks show now.
Json TransfersJson(const JobView& view) {
  const std::vector<double>& planned = view.transfer_seconds;
  std::map<int, Json> boundaries;
  const auto entry = [&](int boundary) -> Json& {
    Json& json = boundaries[boundary];
    if (json.is_null()) {
      const auto at = static_cast<std::size_t>(boundary);
      const double seconds = planned.empty() ? 0 : planned[std::min(at, planned.size() - 1)];
      json = {{"boundary", boundary},
              {"planned_s", seconds},
              {"measured_s", nullptr},
              {"measured_s_std", nullptr},
              {"iterations", 0}};
    }
    return json;
  };
  for (std::size_t boundary = 0; boundary < planned.size(); ++boundary) {
    entry(static_cast<int>(boundary));
  }
  for (const MeasuredTransfer& transfer : view.measured.transfers) {
    Json& json = entry(transfer.boundary);
    json["measured_s"] = transfer.seconds;
    json["measured_s_std"] = transfer.error_seconds;
    json["iterations"] = transfer.iterations;
  }
  Json list = Json::array();
  for (auto& [boundary, json] : boundaries) list.push_back(std::move(json));
  return list;
}

}  // namespace

Schemas ConditionsSchemas() { return kConditionsSchemas; }

Json ConditionsJson(const JobView& view) {
  bool is_given = false;
  const PlannedConditions planned =
      view.conditions ? view.conditions->plan : GivenConditions(view, &is_given);
  const MeasuredConditions& measured = view.conditions ? view.conditions->measured : view.measured;
  Json figures = Json::array();
  for (std::size_t i = 0; i < kConditions; ++i) {
    const MeasuredCondition& figure = measured.figures[i];
    const bool is_there = figure.ranks > 0;
    const bool is_from_start =
        view.conditions && view.conditions->IsFromStart(static_cast<Condition>(i));
    figures.push_back({{"name", kConditionNames[i]},
                       {"planned", planned.values[i]},
                       {"assumed", view.conditions && !planned.measured[i] && !is_from_start},
                       {"library", is_from_start},
                       {"measured", is_there ? Json(figure.value) : Json()},
                       {"measured_std", is_there ? Json(figure.error) : Json()},
                       {"ranks", figure.ranks}});
  }
  const double planned_at = view.conditions ? view.conditions->planned_at_seconds : 0;
  const bool has_start = view.conditions && view.conditions->start;
  const char* const of_ranks = planned.any_measured() ? "measured"
                               : has_start            ? "library"
                                                      : "assumed";
  return {{"source", view.conditions ? of_ranks
                     : is_given      ? "given"
                                     : "none"},
          {"from", has_start ? Json{{"job", view.conditions->start->job},
                                    {"at", view.conditions->start->at_seconds},
                                    {"profile", view.conditions->start_profile}}
                             : Json()},
          {"changing", view.conditions && view.conditions->next},
          {"planned_at", planned_at > 0 ? Json(planned_at) : Json()},
          {"iterations", measured.iterations},
          {"calls", measured.calls},
          {"figures", std::move(figures)},
          {"latency_at", LatenciesJson(planned, measured)},
          {"transfers", TransfersJson(view)}};
}

Json KeptConditionsJson(const std::string& conditions_json) {
  const std::optional<KeptConditions> kept = ParseKeptConditions(conditions_json);
  if (!kept) return nullptr;
  Json figures = Json::array();
  for (std::size_t i = 0; i < kConditions; ++i) {
    const MeasuredCondition& figure = kept->measured.figures[i];
    if (figure.ranks == 0) continue;
    figures.push_back({{"name", kConditionNames[i]},
                       {"measured", figure.value},
                       {"measured_std", figure.error},
                       {"ranks", figure.ranks}});
  }
  Json latencies = Json::array();
  for (const MeasuredClockLatency& each :
       OwnLatencies(kept->measured.latency_at, kept->measured.Of(Condition::kLatency).value)) {
    latencies.push_back({{"clock_mhz", each.clock_mhz},
                         {"measured_s", each.seconds.value},
                         {"measured_s_std", each.seconds.error},
                         {"ranks", each.seconds.ranks}});
  }
  return {{"job", kept->job},
          {"at", kept->at_seconds},
          {"iterations", kept->measured.iterations},
          {"calls", kept->measured.calls},
          {"figures", std::move(figures)},
          {"latency_at", std::move(latencies)}};
}

}  // namespace perseus::server
