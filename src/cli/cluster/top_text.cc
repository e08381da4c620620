// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/top_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cli/cluster/job_values.h"
#include "cli/cluster/json_values.h"
#include "cli/framework/table.h"
#include "common/printable.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> TimeNow(const Json& job) {
  return NumberOf(ObjectOf(job, "measured"), "iteration_time_s");
}

std::optional<double> TimePromised(const Json& job) {
  return NumberOf(WholeJobOf(ObjectOf(job, "plan")), "iteration_time_s");
}

std::optional<double> LateShare(const Json& job) {
  const auto now = TimeNow(job);
  const auto promised = TimePromised(job);
  if (!now || !promised || *promised <= 0) return std::nullopt;
  return *now / *promised - 1;
}

struct TopOrder {
  std::string_view name;
  std::optional<double> (*figure)(const Json& job);  // Null: by text,
  const char* text;                                  // that of this member.
};

constexpr std::array<TopOrder, 7> kTopOrders = {
    {{"watts", [](const Json& job) { return NumberOf(ObjectOf(job, "measured"), "power_w"); },
      nullptr},
     {"late", LateShare, nullptr},
     {"saved", [](const Json& job) { return NumberOf(ObjectOf(job, "realised"), "mean"); },
      nullptr},
     {"promised",
      [](const Json& job) { return NumberOf(WholeJobOf(ObjectOf(job, "plan")), "saving_percent"); },
      nullptr},
     {"stragglers", [](const Json& job) { return std::optional<double>(SlowPipelines(job)); },
      nullptr},
     {"name", nullptr, "name"},
     {"state", nullptr, "state"}}};

const TopOrder* TopOrderNamed(std::string_view name) {
  const auto* const found = std::find_if(kTopOrders.begin(), kTopOrders.end(),
                                         [&](const TopOrder& each) { return each.name == name; });
  return found == kTopOrders.end() ? nullptr : found;
}

// Whether the last iteration ended a moment ago, as measured in iterations.
bool IsFresh(const Json& measured, double now_seconds) {
  constexpr double kLeastSeconds = 120;
  constexpr double kIterations = 20;
  const auto at = NumberOf(measured, "at");
  const auto seconds = NumberOf(measured, "iteration_time_s");
  return at && now_seconds - *at < std::max(kLeastSeconds, kIterations * seconds.value_or(0));
}

std::string ShownName(const Json& job) {
  constexpr std::size_t kWidestName = 24;
  const std::string name = MemberText(job, "name");
  return CutTo(kWidestName, name.empty() ? MemberText(job, "id") : name, "\u2026");
}

std::string FigureOrNothing(std::optional<double> value, int decimals) {
  return value ? WithThousands(*value, decimals) : "";
}

// Nothing where there is nothing to look at.
std::string CountIfAny(const Json& job, const char* key) {
  const auto count = NumberOf(job, key);
  return count && *count > 0 ? CountText(job[key]) : "";
}

}  // namespace

bool IsTopOrder(std::string_view order) { return TopOrderNamed(order) != nullptr; }

void SortJobs(std::string_view order, Json* jobs) {
  const TopOrder* const chosen = TopOrderNamed(order);
  if (chosen == nullptr) return;
  std::vector<std::pair<std::optional<double>, Json>> rows;
  rows.reserve(jobs->size());
  for (Json& job : *jobs) {
    rows.emplace_back(chosen->figure == nullptr ? std::nullopt : chosen->figure(job),
                      std::move(job));
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    if (chosen->figure != nullptr) return a.first > b.first;
    return MemberText(a.second, chosen->text) < MemberText(b.second, chosen->text);
  });
  *jobs = Json::array();
  for (auto& row : rows) jobs->push_back(std::move(row.second));
}

std::string TopTable(const Json& jobs, const Style& style, double now_seconds,
                     std::size_t most_rows) {
  if (jobs.empty()) return "The server has no unfinished job; --all shows finished ones, too.\n";
  Table table({"job", "state", "ranks", "now s", "promised s", "watts", "saved", "promised", "slow",
               "errors"},
              {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
               Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  double watts = 0;
  std::size_t rows = 0;
  for (const Json& job : jobs) {
    const Json& measured = ObjectOf(job, "measured");
    const bool is_fresh = !HasEnded(job) && IsFresh(measured, now_seconds);
    const auto power = is_fresh ? NumberOf(measured, "power_w") : std::nullopt;
    watts += power.value_or(0);
    if (++rows > most_rows) continue;
    const long long slow = SlowPipelines(job);
    const Json& realised = ObjectOf(job, "realised");
    const auto saved = NumberOf(realised, "mean");
    // The plan that is promised beside it may be a newer one.
    const bool is_older =
        saved && NumberOf(realised, "plan_version") != NumberOf(ObjectOf(job, "plan"), "version");
    table.AddRow(
        {ShownName(job), StateOf(job),
         fmt::format("{}/{}", MemberText(job, "ranks_registered"), MemberText(job, "world_size")),
         is_fresh ? FigureOrNothing(TimeNow(job), 4) : "", FigureOrNothing(TimePromised(job), 4),
         FigureOrNothing(power, 0),
         saved ? FormatPercent(*saved, 2) + (is_older ? " (older plan)" : "") : "", SavingNow(job),
         slow > 0 ? std::to_string(slow) : "", CountIfAny(job, "complaining")});
  }
  const std::string beyond = rows > most_rows ? fmt::format("and {} more\n", rows - most_rows) : "";
  return fmt::format("{}, {} measured\n\n{}{}", CountOf(static_cast<long long>(jobs.size()), "job"),
                     FormatWatts(watts), table.Format(style.rule()), beyond);
}

}  // namespace perseus::cli
