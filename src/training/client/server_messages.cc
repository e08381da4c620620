// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/server_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "common/input_limits.h"
#include "common/tree.h"
#include "perseus/version.h"
#include "wire/message.h"
#include "wire/reports.h"

namespace perseus::client {
namespace {

using wire::Field;
using wire::Message;
using wire::Object;
using wire::Value;

constexpr int kMostMhz = 100'000;
constexpr std::size_t kQuoted = 200;  // Bytes of an answer that a sentence shows.
constexpr std::size_t kMostSentenceBytes = 65'536;

// Messages to the server, in the words of its tables.

wire::MeasuredRow RowOf(const measure::Estimate& row) {
  return {.stage = row.kind.stage,
          .type = row.kind.type,
          .clock_mhz = row.mhz,
          .time_seconds = row.seconds,
          .energy_joules = row.joules,
          .samples = static_cast<int>(std::clamp<std::int64_t>(row.samples, 1, wire::kMostNumber)),
          .time_std_seconds = row.seconds_std,
          .energy_std_joules = row.joules_std,
          .time_sources = row.time_errors,
          .power_sources = row.power_errors,
          .throttled = row.throttled,
          .temperature_celsius = row.temperature_celsius,
          .work = row.work,
          .seconds_per_work = row.seconds_per_work,
          .joules_per_work = row.joules_per_work,
          .time_residual_std_seconds = row.seconds_residual_std,
          .energy_residual_std_joules = row.joules_residual_std};
}

wire::KindReport KindOf(const KindTimes& kind) {
  return {.key = {kind.stage, kind.type, kind.mhz},
          .count = kind.count,
          .time_seconds = kind.seconds / static_cast<double>(kind.count),
          .is_steady = kind.is_steady};
}

wire::RankTimeline TimelineOf(const RankTimeline& timeline) {
  wire::RankTimeline told = {.changes = timeline.changes};
  for (const DeviceSpan& row : timeline.rows) {
    told.begin_ns.push_back(static_cast<double>(row.begin_ns));
    told.end_ns.push_back(static_cast<double>(row.end_ns));
  }
  return told;
}

wire::ReportedClocks ClocksOf(Clocks clocks, const ClientSettings& settings) {
  if (settings.shadow) return wire::ReportedClocks::kMaximum;
  switch (clocks) {
    case Clocks::kUnknown:
      break;
    case Clocks::kPlanned:
      return wire::ReportedClocks::kPlan;
    case Clocks::kCoarse:
      return wire::ReportedClocks::kCoarse;
    case Clocks::kDrivers:
      return wire::ReportedClocks::kMaximum;
  }
  return wire::ReportedClocks::kUnknown;
}

wire::IterationReport ReportOf(const IterationReport& report, const ClientSettings& settings) {
  const IterationRecord& record = report.record;
  wire::IterationReport told = {
      .rank = settings.rank,
      .iteration = record.iteration,
      .plan_version = std::max<std::int64_t>(record.plan_version, 0),  // 0: none.
      .time_seconds = record.seconds,
      .energy_joules = report.joules,
      .clocks = ClocksOf(record.clocks, settings),
      .busy_seconds = record.busy_seconds,
      .busy_by_type = record.busy_by_type,
      .tokens = static_cast<double>(std::max<std::int64_t>(record.tokens, 0))};
  for (const KindTimes& kind : report.kinds) told.kinds.push_back(KindOf(kind));
  if (report.timeline) told.timeline = TimelineOf(*report.timeline);
  return told;
}

wire::RankConditions ConditionsOf(const RankConditions& conditions) {
  wire::RankConditions told;
  if (const auto& noise = conditions.noise) {
    told.noise_variance = noise->variance;
    told.rank_noise_variance = noise->rank_variance;
    told.noise_correlation = noise->correlation;
    told.rare_noise_variance = noise->rare_variance;
    told.rare_noise_share = noise->rare_share;
    told.iterations = noise->iterations;
    told.computations = noise->computations;
  }
  if (const auto& latency = conditions.latency) {
    told.latency_seconds = latency->seconds;
    told.latency_spread_seconds = latency->spread_seconds;
    told.calls = latency->calls;
    for (const ClockLatencyFigures& each : latency->of_clock) {
      told.latency_at.push_back({each.mhz, each.seconds, each.calls});
    }
  }
  return told;
}

wire::AgentReport AgentOf(const AgentWord& agent) {
  wire::AgentReport told = {.version = agent.version.substr(0, kMostVersionBytes)};
  for (const std::string& conflict : agent.conflicts) {
    if (told.clock_conflicts.size() == kMostConflicts) break;
    told.clock_conflicts.push_back(conflict.substr(0, kMostConflictBytes));
  }
  return told;
}

wire::ClientReport ClientOf(const ClientSettings& settings, const perseus_client_stats& stats) {
  return {.rank = settings.rank,
          .client = settings.client_id,
          .process = settings.process,
          .state = StateName(stats.state),
          .plan_version = stats.plan_version,
          .shadow = settings.shadow,
          .counts = {{"calls", stats.calls},
                     {"coalesced", stats.coalesced},
                     {"refused", stats.refused},
                     {"early", stats.early},
                     {"on_time", stats.on_time},
                     {"late", stats.late},
                     {"missed", stats.missed},
                     {"order_mismatches", stats.order_mismatches},
                     {"lost_events", stats.lost_events}},
          .version = PERSEUS_VERSION_STRING};
}

constexpr Field kStragglerFields[] = {
    Value<&StragglerNotice::rank>("rank"), Value<&StragglerNotice::degree>("factor"),
    Value<&StragglerNotice::delay_seconds>("starts_s").UnlessEmpty().Sometimes()};
constexpr Message<StragglerNotice> kStraggler = {"Straggler", kStragglerFields};

// Answers of the server.

// A string, or a whole number in digits.
std::string IdText(const TreeCursor& value) {
  if (value.IsString()) return value.String();
  const double number = value.Number(kNotNegative);
  return fmt::format("{}", static_cast<std::int64_t>(number));
}

constexpr Field kJobFields[] = {
    Value<&JobAnswer::id>("id").ReadBy([](const Field&, const TreeCursor& at, void* id) {
      *static_cast<std::string*>(id) = IdText(at);
    }),
    Value<&JobAnswer::state>("state").Optional().ReadBy(
        [](const Field&, const TreeCursor& at, void* state) {
          if (at.IsString()) *static_cast<std::string*>(state) = at.String();
        })};
constexpr Message<JobAnswer> kJob = {"Job", kJobFields};

using ReportedRow = ReportedRows::Row;
constexpr Field kReportedRowFields[] = {
    Value<&ReportedRow::instruction>("instruction"),
    Value<&ReportedRow::stage>("stage").In({.least = -1}),
    Value<&ReportedRow::mhz>("frequency").In({.least = 1, .most = kMostMhz})};
constexpr Message<ReportedRow> kReportedRow = {"ReportedRow", kReportedRowFields};
constexpr Field kDefaultClockRowFields[] = {Value<&ReportedRow::instruction>("instruction"),
                                            Value<&ReportedRow::stage>("stage").In({.least = -1})};
constexpr Message<ReportedRow> kDefaultClockRow = {"DefaultClockRow", kDefaultClockRowFields};
constexpr Field kReportedFields[] = {
    Value<&ReportedRows::done>("done").Optional(),
    Object<&ReportedRows::rows>("rows", kReportedRow),
    Object<&ReportedRows::rows>("default_clocks", kDefaultClockRow).Optional()};
constexpr Message<ReportedRows> kReported = {"ReportedRows", kReportedFields};

struct Trouble {
  std::string client;
  std::string sentence;
};
struct Troubles {
  std::vector<Trouble> troubles;
};
constexpr Field kTroubleFields[] = {Value<&Trouble::client>("client"),
                                    Value<&Trouble::sentence>("sentence").Most(kMostSentenceBytes)};
constexpr Message<Trouble> kTrouble = {"Trouble", kTroubleFields};
constexpr Field kTroublesFields[] = {Object<&Troubles::troubles>("troubles", kTrouble).Optional()};
constexpr Message<Troubles> kTroubles = {"Troubles", kTroublesFields};

}  // namespace

std::string FormatRank(const ClientSettings& settings, const std::optional<device::GpuInfo>& gpu) {
  wire::Rank rank = {.rank = settings.rank,
                     .dp_rank = settings.dp_rank,
                     .pp_rank = settings.pp_rank,
                     .tp_rank = settings.tp_rank,
                     .node = settings.node};
  if (gpu) {
    rank.gpu = wire::Gpu{gpu->uuid, gpu->name};
    rank.clocks_mhz = gpu->clocks_mhz;
  }
  return Write(wire::kRank, rank);
}

Result<JobAnswer> ParseJob(std::string_view json) {
  return Parse(kJob, json, "the server's answer");
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
  return Parse(kReported, json, "the server's measurements");
}

std::string FormatMeasurements(int rank, const ProfileReport& report) {
  const measure::SweepCost& cost = report.cost;
  wire::Measurements told = {
      .rank = rank,
      .counter_period_seconds = report.counter_period_seconds.value_or(0),
      .sweep = wire::SweepCost{cost.iterations, cost.seconds, cost.joules,
                               cost.extra_seconds.value_or(0), cost.extra_joules.value_or(0)},
      .done = report.done};
  for (const measure::Estimate& row : report.rows) {
    (row.mhz == measure::kDefaultClockMhz ? told.default_clocks : told.rows).push_back(RowOf(row));
  }
  if (report.blocking) {
    told.blocking_power_watts = report.blocking->watts;
    told.blocking_power_std_watts = report.blocking->watts_std;
  }
  for (const auto& [mhz, power] : report.waiting) {
    told.waiting.push_back({mhz, power.watts, power.watts_std});
  }
  for (const std::string& note : report.notes) {
    if (told.notes.size() == kMostReportedNotes) break;
    told.notes.push_back(note.substr(0, kMostReportedNoteBytes));
  }
  return Write(wire::kMeasurements, told);
}

std::string FormatIterations(const ClientSettings& settings,
                             const std::vector<IterationReport>& reports,
                             const perseus_client_stats& stats, const std::string& error,
                             const std::optional<AgentWord>& agent) {
  wire::Reports told;
  for (const IterationReport& report : reports) told.reports.push_back(ReportOf(report, settings));
  wire::ClientReport& client = told.clients.emplace_back(ClientOf(settings, stats));
  client.error = error;
  if (agent) client.agent = AgentOf(*agent);
  if (!reports.empty()) client.ran = reports.back().ran;
  const auto last = std::find_if(reports.rbegin(), reports.rend(), [](const IterationReport& each) {
    return each.conditions.has_value();
  });
  if (last != reports.rend()) client.conditions = ConditionsOf(*last->conditions);
  return Write(wire::kReports, told);
}

std::string ParseTrouble(std::string_view json, const std::string& client_id) {
  const Result<Troubles> answer = Parse(kTroubles, json, "the server's answer");
  if (!answer) return "";
  for (const Trouble& trouble : answer->troubles) {
    if (trouble.client == client_id) return trouble.sentence;
  }
  return "";
}

std::string FormatStraggler(const StragglerNotice& notice) { return Write(kStraggler, notice); }

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

}  // namespace perseus::client
