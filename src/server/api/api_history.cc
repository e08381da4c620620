// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What jobs used, by time: of one job for charts, of all jobs for accounts.

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/labels.h"
#include "server/api/api_handlers.h"
#include "server/api/api_schemas.h"
#include "server/api/api_text.h"
#include "server/api/energy_figures.h"
#include "server/api/label_texts.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;
using store::NamedHistoryRow;
using store::Resolution;

// More is neither sent quickly nor read.
constexpr std::size_t kMostEnergyRows = 10'000;
// Later than any day.
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

constexpr Field kFiguresMembers[] = {
    Number("iterations"),
    Number("gpu_hours").Says("Of all ranks, while they ran these iterations."),
    Number("covered_share")
        .Nullable()
        .Says("Of the time from the first of these iterations to the last, the part in which ranks "
              "reported iterations. The rest is in no figure: pauses, time between iterations, and "
              "iterations that no server heard of, as none was up. null: an older Perseus kept "
              "these rows."),
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
        .Says("The part of energy_j whose plan was compared with iterations with no clock set."),
    Number("realised_saved_j")
        .Nullable()
        .Says("What this part saved by that comparison, so against no clock set. Negative: it used "
              "more; null: nothing was compared.")};
constexpr Field kHistoryRowMembers[] = {
    Integer("start").Says("When the span began, seconds since 1970."),
    Number("iteration_time_s")
        .Nullable()
        .Says("Mean of the iterations that were complete in the span; of each the slowest rank. "
              "null: none was. Rows that an older Perseus kept have the mean of all ranks."),
    Number("power_w").Nullable().Says(
        "Of all GPUs together: the energy of the iterations of which all ranks told it, over "
        "their time, the slowest rank's. null: there is none.")};
constexpr Field kHistoryMembers[] = {Choice("resolution", store::kResolutionNames),
                                     Integer("span_s"), Object("rows", "HistoryRow").List()};
constexpr Field kEnergyRowMembers[] = {
    Text("day").Sometimes().Says("2026-11-27, in UTC."),
    Text("job").Sometimes(),
    Text("name").Sometimes().Says("Of the job."),
    Text("user").Sometimes().Says("Name of the token that created the job; empty: none did."),
    Object("labels").Sometimes().Says("Of the job: name to value."),
    Text("label").Optional().Says("The value of the label that `by` names; null: the job has none. "
                                  "A job counts by the labels that it has now, or had last.")};
constexpr Field kEnergyMembers[] = {Text("by"), Object("rows", "EnergyRow").List(kMostEnergyRows),
                                    Object("total", "EnergyFigures")};
constexpr AnyMessage kHistorySchemas[] = {
    {"EnergyFigures", kFiguresMembers},
    {.name = "HistoryRow", .fields = kHistoryRowMembers, .base = "EnergyFigures"},
    {"History", kHistoryMembers},
    {.name = "EnergyRow", .fields = kEnergyRowMembers, .base = "EnergyFigures"},
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

Json HistoryRowJson(const NamedHistoryRow& named) {
  const store::HistoryRow& row = named.row;
  Json json = {{"start", row.start}, {"iteration_time_s", nullptr}, {"power_w", nullptr}};
  if (named.iteration_seconds > 0) json["iteration_time_s"] = named.iteration_seconds;
  if (named.measured_iteration_seconds > 0) {
    const double of_rank = row.measured_joules / static_cast<double>(row.measured_times.reports);
    json["power_w"] = of_rank * row.ranks / named.measured_iteration_seconds;
  }
  EnergyFigures figures;
  figures.Add(row);
  figures.AddTime(row.last_seconds - row.first_seconds, row.ranks);
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
    if (each.row.reports > 0) list.push_back(HistoryRowJson(each));
  }
  return JsonAnswer(200,
                    {{"resolution", store::kResolutionNames[static_cast<std::size_t>(resolution)]},
                     {"span_s", store::SpanOf(resolution)},
                     {"rows", std::move(list)}});
}

// By day, name, job and user, in this order; then by label: jobs without it come first.
using GroupKey = std::tuple<std::int64_t, std::string, std::string, std::string,
                            std::optional<std::string>, JobLabels>;

// What rows of an account are told apart by.
struct Grouping {
  std::string text;   // As it was asked for.
  std::string label;  // The name of one; empty: none.
  bool has_job = false;
  bool has_name = false;
  bool has_user = false;
  bool has_day = false;

  GroupKey KeyOf(const NamedHistoryRow& each) const {
    const auto found = label.empty() ? each.labels.end() : each.labels.find(label);
    return {has_day ? each.row.start : 0,
            has_name ? each.name : "",
            has_job ? each.row.job : "",
            has_user ? each.owner : "",
            found == each.labels.end() ? std::nullopt : std::optional(found->second),
            has_job ? each.labels : JobLabels()};
  }

  Json RowOf(const GroupKey& key) const {
    const auto& [day, name, job, user, value, labels] = key;
    Json row = Json::object();
    if (has_day) {
      row["day"] = fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(day)));
    }
    if (has_job) row["job"] = job;
    if (has_name) row["name"] = name;
    if (has_user) row["user"] = user;
    if (!label.empty()) row["label"] = value ? Json(*value) : Json();
    if (has_job) row["labels"] = labels;
    return row;
  }
};

// Reads "job", "user,day" or "label:team,day".
Outcome<Grouping> GroupingOf(const std::string& text) {
  constexpr std::string_view kLabel = "label:";
  constexpr std::string_view kDay = ",day";
  Grouping by;
  by.text = text.empty() ? "job" : text;
  std::string what = by.text;
  if (what == "day" || what.ends_with(kDay)) {
    by.has_day = true;
    what.resize(what.size() - std::min(what.size(), kDay.size()));
  }
  if (what.starts_with(kLabel)) {
    by.label = what.substr(kLabel.size());
    const Result<void> good = CheckLabelName(by.label);
    if (!good) return Fail(FailureCode::kInvalid, "'by': " + good.error().message, "by");
    return by;
  }
  by.has_job = what == "job";
  by.has_name = by.has_job || what == "name";
  by.has_user = by.has_job || what == "user";
  if (by.has_name || by.has_user || by.text == "day") return by;
  return Fail(FailureCode::kInvalid,
              "'by' must be job, name, user, day or label:NAME; ',day' may follow any but day",
              "by");
}

// For how long a job might have run iterations, as far as that belongs to one of its days. It did
// so from its first to its last iteration, also on days of which there is no report.
struct PossibleTime {
  double on_its_day = 0;
  double on_days_before = 0;  // Since the day of the row before.
};

// Of row i of rows by job and day.
PossibleTime TimeOf(const std::vector<NamedHistoryRow>& rows, std::size_t i) {
  const store::HistoryRow& row = rows[i].row;
  if (row.last_seconds <= 0) return {};
  const auto is_known = [&](std::size_t other) {
    return rows[other].row.job == row.job && rows[other].row.last_seconds > 0;
  };
  const bool went_on = i > 0 && is_known(i - 1);
  const bool goes_on = i + 1 < rows.size() && is_known(i + 1);
  const std::int64_t span = store::SpanOf(row.resolution);
  const auto start = static_cast<double>(row.start);
  const double first = went_on ? start : row.first_seconds;
  const double last = goes_on ? start + static_cast<double>(span) : row.last_seconds;
  const std::int64_t gap = went_on ? row.start - rows[i - 1].row.start - span : 0;
  return {.on_its_day = last - first, .on_days_before = static_cast<double>(gap)};
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
  const Outcome<Grouping> by = GroupingOf(QueryText(call.request, "by"));
  if (!by) return FailureResponse(by.error());
  const Outcome<JobLabels> labels = WantedLabels(call.request);
  if (!labels) return FailureResponse(labels.error());
  std::vector<NamedHistoryRow> seen;
  std::copy_if(rows->begin(), rows->end(), std::back_inserter(seen), [&](const auto& each) {
    return HasLabels(each.labels, *labels) && SeesRow(call, each.row);
  });
  std::map<GroupKey, EnergyFigures> groups;
  EnergyFigures total;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const NamedHistoryRow& each = seen[i];
    const PossibleTime time = TimeOf(seen, i);
    total.Add(each.row);
    total.AddTime(time.on_its_day + time.on_days_before, each.row.ranks);
    EnergyFigures& group = groups[by->KeyOf(each)];
    group.Add(each.row);
    group.AddTime(time.on_its_day + (by->has_day ? 0 : time.on_days_before), each.row.ranks);
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
    Json row = by->RowOf(key);
    row.update(figures.ToJson());
    list.push_back(std::move(row));
  }
  return JsonAnswer(200, {{"by", by->text}, {"rows", std::move(list)}, {"total", total.ToJson()}});
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
