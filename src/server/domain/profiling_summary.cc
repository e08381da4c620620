// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/profiling_summary.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRanksShown = 8;  // Of a note.
constexpr double kDoubtfulWaiting = 0.1;    // Relative standard error.

Json SweepJson(const SweepSummary& sweep) {
  return {{"ranks", sweep.ranks},
          {"iterations", sweep.cost.iterations},
          {"seconds", sweep.cost.seconds},
          {"joules", sweep.cost.joules},
          {"extra_seconds", sweep.cost.extra_seconds},
          {"extra_joules", sweep.cost.extra_joules},
          {"counter_period_s",
           sweep.counter_period_seconds > 0 ? Json(sweep.counter_period_seconds) : Json(nullptr)}};
}

}  // namespace

ProfilingSummary SummaryOf(const ProfileTable& table, int pipeline_parallel) {
  ProfilingSummary summary;
  summary.blocking = table.Blocking(pipeline_parallel);
  summary.waiting = table.Waiting(pipeline_parallel);
  summary.sweep = table.Sweep();
  summary.throttled = table.Throttled();
  for (const auto& [note, ranks] : table.notes()) summary.notes.emplace_back(note, ranks);
  return summary;
}

Json ProfileKeyJson(const ProfileKey& key) {
  Json json = {{"stage", key.stage}, {"instruction", ComputationTypeName(key.type)}};
  if (key.clock_mhz != store::kUnlockedMhz) json["frequency"] = key.clock_mhz;
  return json;
}

Json ProfilingJson(const ProfilingSummary& summary) {
  Json json = {{"blocking_power_w", Json::array()},
               {"blocking_power_std_w", Json::array()},
               {"waiting", Json::array()},
               {"sweep", summary.sweep ? SweepJson(*summary.sweep) : Json(nullptr)},
               {"throttled", Json::array()},
               {"notes", Json::array()}};
  for (const BlockingPower& power : summary.blocking) {
    json["blocking_power_w"].push_back(power.watts);
    json["blocking_power_std_w"].push_back(power.std_watts);
  }
  for (std::size_t pp_rank = 0; pp_rank < summary.waiting.size(); ++pp_rank) {
    for (const auto& [mhz, power] : summary.waiting[pp_rank]) {
      json["waiting"].push_back({{"pp_rank", pp_rank},
                                 {"frequency", mhz},
                                 {"power_w", power.watts},
                                 {"power_std_w", power.std_watts},
                                 {"doubtful", power.std_watts > kDoubtfulWaiting * power.watts}});
    }
  }
  for (const ProfileKey& key : summary.throttled) json["throttled"].push_back(ProfileKeyJson(key));
  for (const auto& [note, ranks] : summary.notes) {
    const auto shown = std::next(
        ranks.begin(), static_cast<std::ptrdiff_t>(std::min(ranks.size(), kMostRanksShown)));
    json["notes"].push_back({{"note", note},
                             {"ranks", ranks.size()},
                             {"first_ranks", std::vector<int>(ranks.begin(), shown)}});
  }
  return json;
}

}  // namespace perseus::server
