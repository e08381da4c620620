// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Usage of jobs by time: of one job for charts, of all jobs for accounts.

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

#include "common/json_text.h"
#include "common/labels.h"
#include "server/api/api_handlers.h"
#include "server/api/messages.h"

namespace perseus::server {
namespace {

using store::NamedHistoryRow;
using store::Resolution;

// More is neither sent quickly nor read.
constexpr std::size_t kMostEnergyRows = 10'000;
// Later than any day.
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

// Sums of rows of the history, also of several jobs.
struct EnergyFigures {
  double iterations = 0;
  double gpu_seconds = 0;
  double covered_gpu_seconds = 0;   // The part of which it is known when that was.
  double possible_gpu_seconds = 0;  // For how long these ranks might have run some.
  std::int64_t reports = 0;
  std::int64_t energy_reports = 0;
  double joules = 0;
  double predicted_joules = 0;
  double compared_joules = 0;
  double measured_joules = 0;  // Saved.

  void Add(const store::HistoryRow& row) {
    // All ranks report each iteration.
    iterations += static_cast<double>(row.reports) / std::max(row.ranks, 1);
    gpu_seconds += row.total_seconds;
    if (row.last_seconds > 0) covered_gpu_seconds += row.total_seconds;
    reports += row.reports;
    energy_reports += row.energy_reports;
    joules += row.joules;
    predicted_joules += row.predicted_joules;
    compared_joules += row.compared_joules;
    measured_joules += row.measured_saved_joules;
  }
  void AddTime(double seconds, int ranks) { possible_gpu_seconds += seconds * ranks; }
};
std::optional<double> If(bool is_known, double value) {
  return is_known ? std::optional(value) : std::nullopt;
}
// Figures that were not measured are null, rather than 0.
constexpr Field kFiguresFields[] = {
    Value<&EnergyFigures::iterations>("iterations"),
    Value("gpu_hours", [](const EnergyFigures& sums) { return sums.gpu_seconds / 3600; })
        .Says("Of all ranks, while they ran these iterations."),
    Value("covered_share",
          [](const EnergyFigures& sums) {
            // Reports of a moment may be of iterations that took longer.
            return If(sums.possible_gpu_seconds > 0,
                      std::min(sums.covered_gpu_seconds / sums.possible_gpu_seconds, 1.0));
          })
        .Nullable()
        .Says("Of the time from the first of these iterations to the last, the part in "
              "which ranks reported iterations. The rest is in no figure: pauses, time "
              "between iterations, and iterations that no server heard of, as none was "
              "up. null: an older Perseus kept these rows."),
    Value("measured_share",
          [](const EnergyFigures& sums) {
            return sums.reports == 0 ? 0.0
                                     : static_cast<double>(sums.energy_reports) /
                                           static_cast<double>(sums.reports);
          })
        .Says(
            "Of the iterations of ranks, those whose energy the rank reported. All that follows is "
            "of these alone."),
    Value("energy_j",
          [](const EnergyFigures& sums) { return If(sums.energy_reports > 0, sums.joules); })
        .Nullable()
        .Says("Of the GPUs, as their counters measured it; null: no rank reported any."),
    Value("predicted_saved_j",
          [](const EnergyFigures& sums) {
            return If(sums.energy_reports > 0, sums.predicted_joules);
          })
        .Nullable()
        .Says("Saved against maximum clocks, if the plan's prediction is right. 0 where "
              "the job's figures cannot be believed."),
    Value<&EnergyFigures::compared_joules>("compared_energy_j")
        .Says("The part of energy_j whose plan was compared with iterations at default clocks."),
    Value("measured_saved_j",
          [](const EnergyFigures& sums) {
            return If(sums.compared_joules > 0, sums.measured_joules);
          })
        .Nullable()
        .Says("What this part saved by that comparison, so against default clocks. "
              "Negative: it used more; null: nothing was compared.")};
constexpr Message<EnergyFigures> kEnergyFigures = {"EnergyFigures", kFiguresFields};

struct HistoryRow {
  std::int64_t start = 0;
  std::optional<double> iteration_seconds = {};
  std::optional<double> watts = {};
  EnergyFigures figures = {};
};
constexpr Field kHistoryRowFields[] = {
    Value<&HistoryRow::start>("start").Says("When the span began, seconds since 1970."),
    Value<&HistoryRow::iteration_seconds>("iteration_time_s")
        .Nullable()
        .Says("Mean of the iterations that were complete in the span; of each the slowest rank. "
              "null: none was. Rows that an older Perseus kept have the mean of all ranks."),
    Value<&HistoryRow::watts>("power_w").Nullable().Says(
        "Of all GPUs together: the energy of the iterations of which all ranks told it, over "
        "their time, the slowest rank's. null: there is none."),
    Inline<&HistoryRow::figures>(kEnergyFigures)};
constexpr Message<HistoryRow> kHistoryRow = {"HistoryRow", kHistoryRowFields};
struct History {
  Resolution resolution = Resolution::kMinute;
  std::vector<HistoryRow> rows = {};
};
constexpr Field kHistoryFields[] = {
    Choice<&History::resolution>("resolution", store::kResolutionNames),
    Value("span_s", [](const History& history) { return store::SpanOf(history.resolution); }),
    Object<&History::rows>("rows", kHistoryRow)};
constexpr Message<History> kHistory = {"History", kHistoryFields};

// By day, name, job and user, in this order; then by label: jobs without it come first.
struct GroupKey {
  std::int64_t day = 0;
  std::optional<std::string> name = {};
  std::optional<std::string> job = {};
  std::optional<std::string> user = {};
  std::optional<std::string> label = {};
  JobLabels labels = {};  // Only of jobs.

  friend bool operator<(const GroupKey& a, const GroupKey& b) {
    return std::tie(a.day, a.name, a.job, a.user, a.label, a.labels) <
           std::tie(b.day, b.name, b.job, b.user, b.label, b.labels);
  }
};
struct EnergyRow {
  GroupKey key;
  std::string day = {};  // Empty: rows are not told apart by it.
  RawJson label = {};    // Empty: the same. null: the job has none.
  RawJson labels = {};   // Empty: rows are not of jobs.
  EnergyFigures figures = {};
};
constexpr Field kEnergyRowFields[] = {
    Value<&EnergyRow::day>("day").Sometimes().UnlessEmpty().Says("2026-11-27, in UTC."),
    Value<&EnergyRow::key, &GroupKey::job>("job").Sometimes(),
    Value<&EnergyRow::key, &GroupKey::name>("name").Sometimes().Says("Of the job."),
    Value<&EnergyRow::key, &GroupKey::user>("user").Sometimes().Says(
        "Name of the token that created the job; empty: none did."),
    Value<&EnergyRow::label>("label")
        .As(wire::Kind::kText)
        .Optional()
        .LeftOut()
        .Says("The value of the label that `by` names; null: the job has none. A job counts by the "
              "labels that it has now, or had last."),
    Value<&EnergyRow::labels>("labels").Sometimes().UnlessEmpty().Says(
        "Of the job: name to value."),
    Inline<&EnergyRow::figures>(kEnergyFigures)};
constexpr Message<EnergyRow> kEnergyRow = {"EnergyRow", kEnergyRowFields};
struct Energy {
  std::string by = {};
  std::vector<EnergyRow> rows = {};
  EnergyFigures total = {};
};
constexpr Field kEnergyFields[] = {Value<&Energy::by>("by"),
                                   Object<&Energy::rows>("rows", kEnergyRow).List(kMostEnergyRows),
                                   Object<&Energy::total>("total", kEnergyFigures)};
constexpr Message<Energy> kEnergy = {"Energy", kEnergyFields};

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

HistoryRow HistoryRowOf(const NamedHistoryRow& named) {
  const store::HistoryRow& row = named.row;
  HistoryRow shown = {.start = row.start};
  if (row.times.iterations > 0) shown.iteration_seconds = row.times.MeanSeconds();
  if (row.measured_times.iterations > 0) {
    const double of_rank = row.measured_joules / static_cast<double>(row.measured_times.reports);
    shown.watts = of_rank * row.ranks / row.measured_times.MeanSeconds();
  }
  shown.figures.Add(row);
  shown.figures.AddTime(row.last_seconds - row.first_seconds, row.ranks);
  return shown;
}

http::Response ShowHistory(const ManagedJob& job, const Call& call) {
  const Resolution resolution = ResolutionOf(QueryText(call.request, "resolution"));
  const auto rows = call.service.ListHistory({.job = job.id(),
                                              .resolution = resolution,
                                              .since = Since(call, resolution),
                                              .until = kNever});
  if (!rows) return FailureResponse(rows.error());
  History history = {.resolution = resolution};
  for (const NamedHistoryRow& each : *rows) {
    if (each.row.reports > 0) history.rows.push_back(HistoryRowOf(each));
  }
  return JsonAnswer(200, kHistory, history);
}

// The keys that tell rows of an account apart.
struct Grouping {
  std::string text = {};  // As it was asked for.
  std::string label;      // The name of one = {}; empty: none.
  bool has_job = false;
  bool has_name = false;
  bool has_user = false;
  bool has_day = false;

  GroupKey KeyOf(const NamedHistoryRow& each) const {
    GroupKey key;
    if (has_day) key.day = each.row.start;
    if (has_name) key.name = each.name;
    if (has_job) key.job = each.row.job;
    if (has_user) key.user = each.owner;
    if (has_job) key.labels = each.labels;
    const auto found = each.labels.find(label);
    if (!label.empty() && found != each.labels.end()) key.label = found->second;
    return key;
  }

  EnergyRow RowOf(const GroupKey& key, const EnergyFigures& figures) const {
    EnergyRow row = {.key = key, .figures = figures};
    if (has_day) {
      row.day = fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(key.day)));
    }
    if (!label.empty()) row.label.text = key.label ? FormatCompact(*key.label) : "null";
    if (has_job) row.labels.text = FormatCompact(key.labels);
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
  Energy energy = {.by = by->text, .total = total};
  for (const auto& [key, figures] : groups) energy.rows.push_back(by->RowOf(key, figures));
  return JsonAnswer(200, kEnergy, energy);
}

}  // namespace

Messages HistoryMessages() {
  static constexpr const AnyMessage* kAll[] = {&kHistory, &kEnergy};
  return kAll;
}

void AddHistoryRoutes(RouteMaker* routes) {
  routes->OnJob(RowOf("showHistory"), [](const JobPointer& job, const CallPointer& call) {
    call->service.OnReader([job, call] { Send(*call, ShowHistory(*job, *call)); });
  });
  routes->OnStore(RowOf("showEnergy"), ShowEnergy);
}

}  // namespace perseus::server
