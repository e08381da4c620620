// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/server_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "common/json_text.h"
#include "common/report_limits.h"
#include "common/tree.h"
#include "common/tree_reader.h"
#include "perseus/version.h"

namespace perseus::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostMhz = 100'000;
constexpr std::size_t kQuoted = 200;  // Bytes of an answer that a sentence shows.

Json Optional(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json AgentJson(const AgentWord& agent) {
  Json conflicts = Json::array();
  for (const std::string& conflict : agent.conflicts) {
    if (conflicts.size() < kMostFights) conflicts.push_back(conflict.substr(0, kMostFightBytes));
  }
  return {{"version", agent.version.substr(0, kMostVersionBytes)},
          {"fights", std::move(conflicts)}};
}

Json BusyByType(const IterationRecord& record) {
  Json busy = Json::object();
  for (int i = 0; i < kNumComputationTypes; ++i) {
    const double seconds = record.busy_by_type[static_cast<std::size_t>(i)];
    if (seconds > 0) busy[ComputationTypeName(static_cast<ComputationType>(i))] = seconds;
  }
  return busy;
}

Json MeasuredRow(const measure::Estimate& row) {
  Json json = {{"stage", row.kind.stage}, {"instruction", ComputationTypeName(row.kind.type)}};
  if (row.mhz != measure::kUnlockedMhz) json["frequency"] = row.mhz;
  json["time"] = row.seconds;
  json["energy"] = row.joules;
  if (row.samples > 0) {
    json["samples"] = row.samples;
  } else {
    json["predicted"] = true;
  }
  json["time_std"] = row.seconds_std;
  json["energy_std"] = row.joules_std;
  if (!row.time_errors.empty()) json["time_errors"] = row.time_errors;
  if (!row.power_errors.empty()) json["power_errors"] = row.power_errors;
  json["time_residual_std"] = row.seconds_residual_std;
  json["energy_residual_std"] = row.joules_residual_std;
  if (row.temperature_celsius) json["temperature_c"] = *row.temperature_celsius;
  json["throttled"] = row.throttled;
  if (row.work > 0) json["work"] = row.work;
  if (row.seconds_per_work) json["time_per_work"] = *row.seconds_per_work;
  if (row.joules_per_work) json["energy_per_work"] = *row.joules_per_work;
  return json;
}

Json KindsJson(const std::vector<KindTimes>& kinds) {
  Json list = Json::array();
  for (const KindTimes& kind : kinds) {
    list.push_back({{"stage", kind.stage},
                    {"instruction", ComputationTypeName(kind.type)},
                    {"frequency", kind.mhz},
                    {"count", kind.count},
                    {"time", kind.seconds / static_cast<double>(kind.count)},
                    {"steady", kind.is_steady}});
  }
  return list;
}

Json TimelineJson(const RankTimeline& timeline) {
  Json begins = Json::array();
  Json ends = Json::array();
  for (const DeviceSpan& row : timeline.rows) {
    begins.push_back(row.begin_ns);
    ends.push_back(row.end_ns);
  }
  return {
      {"begin_ns", std::move(begins)}, {"end_ns", std::move(ends)}, {"changes", timeline.changes}};
}

void PutEstimated(const char* name, const std::optional<Estimated>& figure, Json* json) {
  if (!figure) return;
  (*json)[name] = figure->value;
  (*json)[fmt::format("{}_std", name)] = figure->error;
}

Json ConditionsJson(const RankConditions& conditions) {
  Json json = Json::object();
  if (conditions.noise) {
    const NoiseFigures& noise = *conditions.noise;
    PutEstimated("noise_variance", noise.variance, &json);
    PutEstimated("rank_noise_variance", noise.rank_variance, &json);
    PutEstimated("noise_correlation", noise.correlation, &json);
    PutEstimated("rare_noise_variance", noise.rare_variance, &json);
    PutEstimated("rare_noise_share", noise.rare_share, &json);
    json["iterations"] = noise.iterations;
    json["computations"] = noise.computations;
  }
  if (conditions.latency) {
    PutEstimated("switch_latency_s", conditions.latency->seconds, &json);
    PutEstimated("switch_latency_spread_s", conditions.latency->spread_seconds, &json);
    json["calls"] = conditions.latency->calls;
    for (const ClockLatencyFigures& each : conditions.latency->of_clock) {
      Json of_clock = {{"clock_mhz", each.mhz}, {"calls", each.calls}};
      PutEstimated("switch_latency_s", each.seconds, &of_clock);
      json["switch_latency_at"].push_back(std::move(of_clock));
    }
  }
  return json;
}

Json CountsJson(const ComputationCounts& counts) {
  Json list = Json::array();
  for (const auto& [kind, count] : counts) {
    const auto& [type, stage] = kind;
    list.push_back(
        {{"stage", stage}, {"instruction", ComputationTypeName(type)}, {"count", count}});
  }
  return list;
}

// Null: not known.
Json ClocksName(Clocks clocks, const ClientSettings& settings) {
  if (settings.shadow) return "maximum";
  switch (clocks) {
    case Clocks::kUnknown:
      break;
    case Clocks::kPlanned:
      return "plan";
    case Clocks::kCoarse:
      return "coarse";
    case Clocks::kDrivers:
      return "maximum";
  }
  return {};
}

// A string, or a whole number in digits.
std::string IdText(const TreeCursor& value) {
  if (value.IsString()) return value.String();
  const double number = value.Number(kNotNegative);
  return fmt::format("{}", static_cast<std::int64_t>(number));
}

}  // namespace

std::string FormatRank(const ClientSettings& settings, const std::optional<device::GpuInfo>& gpu) {
  Json json = {{"rank", settings.rank},
               {"dp_rank", settings.dp_rank},
               {"pp_rank", settings.pp_rank},
               {"tp_rank", settings.tp_rank},
               {"node", settings.node}};
  if (gpu) {
    json["gpu"] = {{"uuid", gpu->uuid}, {"name", gpu->name}};
    json["clocks_mhz"] = gpu->clocks_mhz;
  }
  return FormatCompact(json);
}

Result<JobAnswer> ParseJob(std::string_view json) {
  const std::string name = "the server's answer";
  const Result<TreeNode> tree = ParseJsonTree(json, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  JobAnswer job;
  job.id = IdText(reader.Root().Get("id"));
  if (const auto state = reader.Root().Find("state"); state && state->IsString()) {
    job.state = state->String();
  }
  if (reader.failed()) return tl::unexpected(*reader.error());
  return job;
}

std::vector<int> ReportedRows::CompleteClocks() const {
  std::set<std::pair<std::string, int>> kinds;
  std::map<int, std::set<std::pair<std::string, int>>> by_clock;
  for (const Row& row : rows) {
    kinds.emplace(row.instruction, row.stage);
    by_clock[row.mhz].emplace(row.instruction, row.stage);
  }
  std::vector<int> clocks;
  for (const auto& [mhz, of_clock] : by_clock) {
    if (of_clock == kinds) clocks.push_back(mhz);
  }
  return clocks;
}

Result<ReportedRows> ParseReportedRows(std::string_view json) {
  const std::string name = "the server's measurements";
  const Result<TreeNode> tree = ParseJsonTree(json, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  ReportedRows reported;
  if (const auto done = root.Find("done"); done && std::holds_alternative<bool>(done->node().value))
    reported.done = done->Bool();
  const TreeCursor rows = root.Get("rows");
  for (std::size_t i = 0; i < rows.Size() && !reader.failed(); ++i) {
    const TreeCursor row = rows.At(i);
    reported.rows.push_back({row.Get("instruction").String(), row.Get("stage").Integer(-1),
                             row.Get("frequency").Integer(1, kMostMhz)});
  }
  if (const auto unlocked = root.Find("unlocked")) {
    for (std::size_t i = 0; i < unlocked->Size() && !reader.failed(); ++i) {
      const TreeCursor row = unlocked->At(i);
      reported.rows.push_back(
          {row.Get("instruction").String(), row.Get("stage").Integer(-1), measure::kUnlockedMhz});
    }
  }
  if (reader.failed()) return tl::unexpected(*reader.error());
  return reported;
}

std::string FormatMeasurements(int rank, const ProfileReport& report) {
  Json rows = Json::array();
  Json unlocked = Json::array();
  for (const measure::Estimate& row : report.rows) {
    (row.mhz == measure::kUnlockedMhz ? unlocked : rows).push_back(MeasuredRow(row));
  }
  Json notes = Json::array();
  for (const std::string& note : report.notes) {
    if (notes.size() < kMostReportedNotes) notes.push_back(note.substr(0, kMostReportedNoteBytes));
  }
  Json json = {{"rank", rank}, {"rows", std::move(rows)}};
  if (!unlocked.empty()) json["unlocked"] = std::move(unlocked);
  json["blocking_power_w"] = report.blocking ? Json(report.blocking->watts) : Json();
  if (report.blocking) json["blocking_power_std_w"] = report.blocking->watts_std;
  for (const measure::WaitingRow& row : report.waiting) {
    json["waiting"].push_back({{"frequency", row.mhz},
                               {"power_w", row.power.watts},
                               {"power_std_w", row.power.watts_std}});
  }
  if (report.counter_period_seconds) json["counter_period_s"] = *report.counter_period_seconds;
  const measure::SweepCost& cost = report.cost;
  json["sweep"] = {
      {"iterations", cost.iterations}, {"seconds", cost.seconds}, {"joules", cost.joules}};
  if (cost.extra_seconds) json["sweep"]["extra_seconds"] = *cost.extra_seconds;
  if (cost.extra_joules) json["sweep"]["extra_joules"] = *cost.extra_joules;
  if (!notes.empty()) json["notes"] = std::move(notes);
  json["done"] = report.done;
  return FormatCompact(json);
}

std::string FormatIterations(const ClientSettings& settings,
                             const std::vector<IterationReport>& reports,
                             const perseus_client_stats& stats, const std::string& error,
                             const std::optional<AgentWord>& agent) {
  const int rank = settings.rank;
  Json list = Json::array();
  for (const IterationReport& report : reports) {
    const IterationRecord& record = report.record;
    list.push_back({{"rank", rank},
                    {"iteration", record.iteration},
                    {"plan_version", record.plan_version < 0 ? Json() : Json(record.plan_version)},
                    {"time_s", record.seconds},
                    {"energy_j", Optional(report.joules)},
                    {"tokens", record.tokens > 0 ? Json(record.tokens) : Json()},
                    {"busy_s", record.busy_seconds},
                    {"busy_by_type_s", BusyByType(record)},
                    {"clocks", ClocksName(record.clocks, settings)}});
    if (!report.kinds.empty()) list.back()["kinds"] = KindsJson(report.kinds);
    if (report.timeline) list.back()["timeline"] = TimelineJson(*report.timeline);
  }
  Json client = {{"rank", rank},
                 {"client", settings.client_id},
                 {"process", settings.process},
                 {"version", PERSEUS_VERSION_STRING},
                 {"state", StateName(stats.state)},
                 {"shadow", settings.shadow},
                 {"level", LevelName(stats.level)},
                 {"plan_version", stats.plan_version},
                 {"calls", stats.calls},
                 {"coalesced", stats.coalesced},
                 {"refused", stats.refused},
                 {"early", stats.early},
                 {"on_time", stats.on_time},
                 {"late", stats.late},
                 {"missed", stats.missed},
                 {"latency_s", stats.latency_seconds},
                 {"overhead_share", stats.overhead_share},
                 {"order_mismatches", stats.order_mismatches},
                 {"lost_events", stats.lost_events},
                 {"error", error}};
  if (agent) client["agent"] = AgentJson(*agent);
  if (!reports.empty() && reports.back().ran) client["ran"] = CountsJson(*reports.back().ran);
  const auto told = std::find_if(reports.rbegin(), reports.rend(), [](const IterationReport& each) {
    return each.conditions.has_value();
  });
  if (told != reports.rend()) client["conditions"] = ConditionsJson(*told->conditions);
  return FormatCompact({{"reports", std::move(list)}, {"clients", Json::array({client})}});
}

std::string ParseTrouble(std::string_view json, const std::string& client_id) {
  const std::string name = "the server's answer";
  const Result<TreeNode> tree = ParseJsonTree(json, name);
  if (!tree) return "";
  TreeReader reader(*tree, name);
  const auto troubles = reader.Root().Find("troubles");
  if (!troubles || !troubles->IsList()) return "";
  for (std::size_t i = 0; i < troubles->Size() && !reader.failed(); ++i) {
    const TreeCursor trouble = troubles->At(i);
    std::string sentence = trouble.Get("sentence").String();
    if (trouble.Get("client").String() == client_id && !reader.failed()) return sentence;
  }
  return "";
}

std::string FormatStraggler(const StragglerNotice& notice) {
  Json json = {{"rank", notice.rank}, {"factor", notice.degree}};
  if (notice.delay_seconds > 0) json["starts_s"] = notice.delay_seconds;
  return FormatCompact(json);
}

Result<std::vector<std::string>> ParseStragglerIds(std::string_view json, int rank) {
  const std::string name = "the server's stragglers";
  const Result<TreeNode> tree = ParseJsonTree(json, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  const TreeCursor list = root.IsList() ? root : root.Get("stragglers");
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < list.Size() && !reader.failed(); ++i) {
    const TreeCursor straggler = list.At(i);
    const auto of = straggler.Find("rank");
    if (of && of->IsNumber() && of->Number() == rank) {
      ids.push_back(IdText(straggler.Get("straggler_id")));
    }
  }
  if (reader.failed()) return tl::unexpected(*reader.error());
  return ids;
}

std::string ErrorSentence(int status, std::string_view body) {
  const std::string name = "error";
  if (const Result<TreeNode> tree = ParseJsonTree(body, name)) {
    TreeReader reader(*tree, name);
    const std::string message = reader.Root().Get("error").Get("message").String();
    if (!reader.failed()) return fmt::format("{} (status {})", message, status);
  }
  return fmt::format("status {}: {}", status, body.substr(0, kQuoted));
}

const char* StateName(int state) {
  constexpr std::array kNames = {"connecting", "profiling", "waiting",
                                 "following",  "released",  "closed"};
  return kNames.at(static_cast<std::size_t>(state));
}

const char* LevelName(int level) {
  constexpr std::array kNames = {"computation", "phase", "stage", "off"};
  return kNames.at(static_cast<std::size_t>(level));
}

}  // namespace perseus::client
