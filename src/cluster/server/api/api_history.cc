// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What jobs used, by time: of one job for charts, of all jobs for accounts.

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "server/api/api_handlers.h"
#include "server/api/api_schemas.h"
#include "server/api/api_text.h"
#include "server/api/energy_figures.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;
using store::NamedHistoryRow;
using store::Resolution;

// More is neither sent quickly nor read.
constexpr std::size_t kMostEnergyRows = 10'000;
// Later than any day.
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

constexpr Member kFiguresMembers[] = {
    Number("iterations"),
    Number("gpu_hours").Says("Of all ranks, while they ran these iterations."),
    Number("measured_share")
        .Says("Of the iterations of ranks, those whose energy the rank reported. All that follows "
              "is of these alone."),
    Number("energy_j")
        .Nullable()
        .Says("Of the GPUs, as their counters measured it; null: no rank reported any."),
    Number("promised_saved_j")
        .Nullable()
        .Says("Saved against maximum clocks, if the plan keeps what it promises. 0 where the job's "
              "figures cannot be believed."),
    Number("compared_energy_j")
        .Says("The part of energy_j whose plan was compared with maximum clocks."),
    Number("realised_saved_j")
        .Nullable()
        .Says("What this part saved by that comparison. Negative: it used more; null: nothing was "
              "compared.")};
constexpr Member kHistoryRowMembers[] = {
    Integer("start").Says("When the span began, seconds since 1970."),
    Number("iteration_time_s").Says("Mean."),
    Number("power_w").Nullable().Says("Mean of all GPUs together, while they ran iterations.")};
constexpr Member kHistoryMembers[] = {Choice("resolution", store::kResolutionNames),
                                      Integer("span_s"), Object("rows", "HistoryRow").List()};
constexpr Member kEnergyRowMembers[] = {
    Text("day").Sometimes().Says("2026-11-27, in UTC."), Text("job").Sometimes(),
    Text("name").Sometimes().Says("Of the job."),
    Text("user").Sometimes().Says("Name of the token that created the job; empty: none did.")};
constexpr Member kEnergyMembers[] = {Text("by"), Object("rows", "EnergyRow").List(kMostEnergyRows),
                                     Object("total", "EnergyFigures")};
constexpr ObjectSchema kHistorySchemas[] = {
    {"EnergyFigures", kFiguresMembers},
    {.name = "HistoryRow", .members = kHistoryRowMembers, .base = "EnergyFigures"},
    {"History", kHistoryMembers},
    {.name = "EnergyRow", .members = kEnergyRowMembers, .base = "EnergyFigures"},
    {"Energy", kEnergyMembers}};

Resolution ResolutionOf(const std::string& name) {
  const auto* const found =
      std::find(store::kResolutionNames.begin(), store::kResolutionNames.end(), name);
  // CheckQuery() lets no other in.
  if (found == store::kResolutionNames.end()) return Resolution::kMinute;
  return static_cast<Resolution>(found - store::kResolutionNames.begin());
}

// The beginning of the span that it is in.
std::int64_t Since(const Call& call, Resolution resolution) {
  const std::int64_t since = QueryInteger(call.request, "since").value_or(0);
  return since - since % store::SpanOf(resolution);
}

Json HistoryRowJson(const store::HistoryRow& row) {
  Json json = {{"start", row.start},
               {"iteration_time_s", row.total_seconds / static_cast<double>(row.reports)},
               {"power_w", nullptr}};
  if (row.energy_seconds > 0) json["power_w"] = row.joules * row.ranks / row.energy_seconds;
  EnergyFigures figures;
  figures.Add(row);
  json.update(figures.ToJson());
  return json;
}

http::Response ShowHistory(const ManagedJob& job, const Call& call) {
  const Resolution resolution = ResolutionOf(QueryText(call.request, "resolution"));
  const auto rows = call.service.ListHistory({.job = job.id(),
                                              .resolution = resolution,
                                              .since = Since(call, resolution),
                                              .until = kNever});
  if (!rows) return FailureResponse(rows.error());
  Json list = Json::array();
  for (const NamedHistoryRow& each : *rows) {
    if (each.row.reports > 0) list.push_back(HistoryRowJson(each.row));
  }
  return JsonAnswer(200,
                    {{"resolution", store::kResolutionNames[static_cast<std::size_t>(resolution)]},
                     {"span_s", store::SpanOf(resolution)},
                     {"rows", std::move(list)}});
}

// A token that is bound to jobs sees these, as long as they are there.
bool SeesRow(const Call& call, const store::HistoryRow& row) {
  if (call.request.binding.is_free()) return true;
  const auto job = call.service.HeadOf(row.job);
  return job && Sees(call.request.binding, job->id, job->client_key);
}

http::Response ShowEnergy(const Call& call) {
  const store::HistoryQuery wanted = {
      .since = Since(call, Resolution::kDay),
      .until = QueryInteger(call.request, "until").value_or(kNever)};
  const auto rows = call.service.ListHistory(wanted);
  if (!rows) return FailureResponse(rows.error());
  if (rows->size() > wanted.most) {
    return FailureResponse(
        {FailureCode::kInvalid,
         fmt::format("these are more than {} days of jobs; ask for a shorter time ('since', "
                     "'until')",
                     wanted.most),
         "since"});
  }
  std::string by = QueryText(call.request, "by");
  if (by.empty()) by = "job";
  const bool has_day = by.ends_with("day");
  const bool has_job = by.starts_with("job");
  const bool has_name = has_job || by.starts_with("name");
  const bool has_user = has_job || by.starts_with("user");
  // By day, name, job and user, in this order.
  std::map<std::tuple<std::int64_t, std::string, std::string, std::string>, EnergyFigures> groups;
  EnergyFigures total;
  for (const NamedHistoryRow& each : *rows) {
    if (!SeesRow(call, each.row)) continue;
    total.Add(each.row);
    groups[{has_day ? each.row.start : 0, has_name ? each.name : "", has_job ? each.row.job : "",
            has_user ? each.owner : ""}]
        .Add(each.row);
    if (groups.size() <= kMostEnergyRows) continue;
    return FailureResponse(
        {FailureCode::kInvalid,
         fmt::format("these are more than {} rows; ask for a shorter time ('since', 'until') or "
                     "fewer groups ('by')",
                     kMostEnergyRows),
         "since"});
  }
  Json list = Json::array();
  for (const auto& [key, figures] : groups) {
    const auto& [day, name, job, user] = key;
    Json row = Json::object();
    if (has_day) {
      row["day"] = fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(day)));
    }
    if (has_job) row["job"] = job;
    if (has_name) row["name"] = name;
    if (has_user) row["user"] = user;
    row.update(figures.ToJson());
    list.push_back(std::move(row));
  }
  return JsonAnswer(200, {{"by", by}, {"rows", std::move(list)}, {"total", total.ToJson()}});
}

}  // namespace

Schemas HistorySchemas() { return kHistorySchemas; }

void AddHistoryRoutes(RouteMaker* routes) {
  routes->OnJob(RowOf("showHistory"), [](const JobPointer& job, const CallPointer& call) {
    call->service.OnReader([job, call] { Send(*call, ShowHistory(*job, *call)); });
  });
  routes->OnStore(RowOf("showEnergy"), ShowEnergy);
}

}  // namespace perseus::server
