// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/server_messages.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "common/json_text.h"
#include "common/tree.h"
#include "common/tree_reader.h"

namespace perseus::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kQuoted = 200;  // Bytes of an answer that a sentence shows.

Json Optional(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json BusyByType(const IterationRecord& record) {
  Json busy = Json::object();
  for (int i = 0; i < kNumComputationTypes; ++i) {
    const double seconds = record.busy_by_type[static_cast<std::size_t>(i)];
    if (seconds > 0) busy[ComputationTypeName(static_cast<ComputationType>(i))] = seconds;
  }
  return busy;
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

std::string FormatMeasurements(int rank, const ProfileReport& report) {
  Json rows = Json::array();
  for (const Measurement& row : report.rows) {
    rows.push_back({{"stage", row.stage},
                    {"instruction", ComputationTypeName(row.type)},
                    {"frequency", row.mhz},
                    {"time", row.seconds},
                    {"energy", row.joules},
                    {"samples", row.samples}});
  }
  return FormatCompact({{"rank", rank},
                        {"rows", std::move(rows)},
                        {"blocking_power_w", Optional(report.blocking_watts)},
                        {"done", report.done}});
}

std::string FormatIterations(const ClientSettings& settings,
                             const std::vector<IterationReport>& reports,
                             const perseus_client_stats& stats, const std::string& error) {
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
  }
  const Json client = {{"rank", rank},
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
  return FormatCompact({{"reports", std::move(list)}, {"clients", Json::array({client})}});
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
