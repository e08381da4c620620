// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/server_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "common/report_limits.h"
#include "common/tree.h"
#include "common/tree_reader.h"
#include "perseus/version.h"
#include "wire/message.h"

namespace perseus::client {
namespace {

using wire::Field;
using wire::Message;
using wire::Object;
using wire::RawJson;
using wire::Value;

constexpr int kMostMhz = 100'000;
constexpr std::size_t kQuoted = 200;  // Bytes of an answer that a sentence shows.
constexpr std::size_t kMostSentenceBytes = 65'536;

// Messages to the server.

struct RankMessage {
  ClientSettings settings;
  device::GpuInfo gpu;
};
constexpr Field kSettingsFields[] = {
    Value<&ClientSettings::rank>("rank"), Value<&ClientSettings::dp_rank>("dp_rank"),
    Value<&ClientSettings::pp_rank>("pp_rank"), Value<&ClientSettings::tp_rank>("tp_rank"),
    Value<&ClientSettings::node>("node")};
constexpr Message<ClientSettings> kSettings = {"Rank", kSettingsFields};
constexpr Field kGpuFields[] = {Value<&device::GpuInfo::uuid>("uuid"),
                                Value<&device::GpuInfo::name>("name")};
constexpr Message<device::GpuInfo> kGpu = {"Gpu", kGpuFields};
constexpr Field kRankFields[] = {
    wire::Inline<&RankMessage::settings>(kSettings), Object<&RankMessage::gpu>("gpu", kGpu),
    Value<&RankMessage::gpu, &device::GpuInfo::clocks_mhz>("clocks_mhz")};
constexpr Message<RankMessage> kRankWithGpu = {"RankWithGpu", kRankFields};

using measure::Estimate;
constexpr Field kEstimateFields[] = {
    Value<&Estimate::kind, &measure::Kind::stage>("stage"),
    Value("instruction", [](const Estimate& row) { return ComputationTypeName(row.kind.type); }),
    Value<&Estimate::mhz>("frequency").UnlessEmpty().Sometimes(),
    Value<&Estimate::seconds>("time"),
    Value<&Estimate::joules>("energy"),
    Value<&Estimate::samples>("samples").UnlessEmpty().Sometimes(),
    Value("predicted", [](const Estimate& row) { return row.samples == 0; })
        .UnlessEmpty()
        .Sometimes(),
    Value<&Estimate::seconds_std>("time_std"),
    Value<&Estimate::joules_std>("energy_std"),
    Value<&Estimate::time_errors>("time_errors").UnlessEmpty().Sometimes(),
    Value<&Estimate::power_errors>("power_errors").UnlessEmpty().Sometimes(),
    Value<&Estimate::seconds_residual_std>("time_residual_std"),
    Value<&Estimate::joules_residual_std>("energy_residual_std"),
    Value<&Estimate::temperature_celsius>("temperature_c").Sometimes(),
    Value<&Estimate::throttled>("throttled"),
    Value<&Estimate::work>("work").UnlessEmpty().Sometimes(),
    Value<&Estimate::seconds_per_work>("time_per_work").Sometimes(),
    Value<&Estimate::joules_per_work>("energy_per_work").Sometimes()};
constexpr Message<Estimate> kEstimate = {"MeasuredRow", kEstimateFields};
constexpr Field kWaitingFields[] = {
    Value<&measure::WaitingRow::mhz>("frequency"),
    Value<&measure::WaitingRow::power, &measure::BlockingPower::watts>("power_w"),
    Value<&measure::WaitingRow::power, &measure::BlockingPower::watts_std>("power_std_w")};
constexpr Message<measure::WaitingRow> kWaiting = {"WaitingRow", kWaitingFields};
constexpr Field kSweepFields[] = {
    Value<&measure::SweepCost::iterations>("iterations"),
    Value<&measure::SweepCost::seconds>("seconds"), Value<&measure::SweepCost::joules>("joules"),
    Value<&measure::SweepCost::extra_seconds>("extra_seconds").Sometimes(),
    Value<&measure::SweepCost::extra_joules>("extra_joules").Sometimes()};
constexpr Message<measure::SweepCost> kSweep = {"Sweep", kSweepFields};

struct MeasurementsMessage {
  int rank = 0;
  ProfileReport report;  // Its rows are those of clocks.
  std::vector<Estimate> default_clocks;
};
using Measured = MeasurementsMessage;
constexpr Field kMeasurementsFields[] = {
    Value<&Measured::rank>("rank"),
    Object<&Measured::report, &ProfileReport::rows>("rows", kEstimate),
    Object<&Measured::default_clocks>("default_clocks", kEstimate).UnlessEmpty().Sometimes(),
    Value("blocking_power_w",
          [](const Measured& measured) -> std::optional<double> {
            if (!measured.report.blocking) return std::nullopt;
            return measured.report.blocking->watts;
          })
        .Nullable(),
    Value("blocking_power_std_w",
          [](const Measured& measured) -> std::optional<double> {
            if (!measured.report.blocking) return std::nullopt;
            return measured.report.blocking->watts_std;
          })
        .Sometimes(),
    Object<&Measured::report, &ProfileReport::waiting>("waiting", kWaiting)
        .UnlessEmpty()
        .Sometimes(),
    Value<&Measured::report, &ProfileReport::counter_period_seconds>("counter_period_s")
        .Sometimes(),
    Object<&Measured::report, &ProfileReport::cost>("sweep", kSweep),
    Value<&Measured::report, &ProfileReport::notes>("notes").UnlessEmpty().Sometimes(),
    Value<&Measured::report, &ProfileReport::done>("done")};
constexpr Message<Measured> kMeasurements = {"Measurements", kMeasurementsFields};

constexpr Field kKindFields[] = {
    Value<&KindTimes::stage>("stage"),
    Value("instruction", [](const KindTimes& kind) { return ComputationTypeName(kind.type); }),
    Value<&KindTimes::mhz>("frequency"),
    Value<&KindTimes::count>("count"),
    Value("time",
          [](const KindTimes& kind) { return kind.seconds / static_cast<double>(kind.count); }),
    Value<&KindTimes::is_steady>("steady")};
constexpr Message<KindTimes> kKind = {"KindTimes", kKindFields};

template <std::int64_t DeviceSpan::*kEnd>
std::vector<std::int64_t> TimesOf(const RankTimeline& timeline) {
  std::vector<std::int64_t> times;
  for (const DeviceSpan& row : timeline.rows) times.push_back(row.*kEnd);
  return times;
}
constexpr Field kTimelineFields[] = {
    Value("begin_ns",
          [](const RankTimeline& line) { return TimesOf<&DeviceSpan::begin_ns>(line); }),
    Value("end_ns", [](const RankTimeline& line) { return TimesOf<&DeviceSpan::end_ns>(line); }),
    Value<&RankTimeline::changes>("changes")};
constexpr Message<RankTimeline> kTimeline = {"Timeline", kTimelineFields};

template <ComputationType kType>
constexpr Field BusyWith(std::string_view name) {
  return Value(name,
               [](const IterationRecord& record) {
                 return record.busy_by_type[static_cast<std::size_t>(kType)];
               })
      .UnlessEmpty()
      .Sometimes();
}
constexpr Field kBusyFields[] = {BusyWith<ComputationType::kForward>("forward"),
                                 BusyWith<ComputationType::kBackward>("backward"),
                                 BusyWith<ComputationType::kBackwardInput>("backward_input"),
                                 BusyWith<ComputationType::kBackwardWeight>("backward_weight"),
                                 BusyWith<ComputationType::kRecompute>("recompute")};
constexpr Message<IterationRecord> kBusy = {"BusyByType", kBusyFields};

struct IterationMessage {
  int rank = 0;
  IterationReport report;
  std::optional<std::string_view> clocks;  // None: not known.
};
using Iterated = IterationMessage;
constexpr Field kIterationFields[] = {
    Value<&Iterated::rank>("rank"),
    Value<&Iterated::report, &IterationReport::record, &IterationRecord::iteration>("iteration"),
    Value("plan_version",
          [](const Iterated& each) -> std::optional<std::int64_t> {
            if (each.report.record.plan_version < 0) return std::nullopt;
            return each.report.record.plan_version;
          })
        .Nullable(),
    Value<&Iterated::report, &IterationReport::record, &IterationRecord::seconds>("time_s"),
    Value<&Iterated::report, &IterationReport::joules>("energy_j").Nullable(),
    Value("tokens",
          [](const Iterated& each) -> std::optional<std::int64_t> {
            if (each.report.record.tokens <= 0) return std::nullopt;
            return each.report.record.tokens;
          })
        .Nullable(),
    Value<&Iterated::report, &IterationReport::record, &IterationRecord::busy_seconds>("busy_s"),
    Object<&Iterated::report, &IterationReport::record>("busy_by_type_s", kBusy),
    Value<&Iterated::clocks>("clocks").Nullable(),
    Object<&Iterated::report, &IterationReport::kinds>("kinds", kKind).UnlessEmpty().Sometimes(),
    Object<&Iterated::report, &IterationReport::timeline>("timeline", kTimeline).Sometimes()};
constexpr Message<Iterated> kIteration = {"Iteration", kIterationFields};

constexpr Field kNoiseFields[] = {
    Value<&NoiseFigures::variance, &Estimated::value>("noise_variance"),
    Value<&NoiseFigures::variance, &Estimated::error>("noise_variance_std"),
    Value<&NoiseFigures::rank_variance, &Estimated::value>("rank_noise_variance"),
    Value<&NoiseFigures::rank_variance, &Estimated::error>("rank_noise_variance_std"),
    Value("noise_correlation",
          [](const NoiseFigures& noise) -> std::optional<double> {
            if (!noise.correlation) return std::nullopt;
            return noise.correlation->value;
          })
        .Sometimes(),
    Value("noise_correlation_std",
          [](const NoiseFigures& noise) -> std::optional<double> {
            if (!noise.correlation) return std::nullopt;
            return noise.correlation->error;
          })
        .Sometimes(),
    Value<&NoiseFigures::rare_variance, &Estimated::value>("rare_noise_variance"),
    Value<&NoiseFigures::rare_variance, &Estimated::error>("rare_noise_variance_std"),
    Value<&NoiseFigures::rare_share, &Estimated::value>("rare_noise_share"),
    Value<&NoiseFigures::rare_share, &Estimated::error>("rare_noise_share_std"),
    Value<&NoiseFigures::iterations>("iterations"),
    Value<&NoiseFigures::computations>("computations")};
constexpr Message<NoiseFigures> kNoise = {"Noise", kNoiseFields};
constexpr Field kClockLatencyFields[] = {
    Value<&ClockLatencyFigures::mhz>("clock_mhz"), Value<&ClockLatencyFigures::calls>("calls"),
    Value<&ClockLatencyFigures::seconds, &Estimated::value>("switch_latency_s"),
    Value<&ClockLatencyFigures::seconds, &Estimated::error>("switch_latency_s_std")};
constexpr Message<ClockLatencyFigures> kClockLatency = {"ClockLatency", kClockLatencyFields};
constexpr Field kLatencyFields[] = {
    Value<&LatencyFigures::seconds, &Estimated::value>("switch_latency_s"),
    Value<&LatencyFigures::seconds, &Estimated::error>("switch_latency_s_std"),
    Value<&LatencyFigures::spread_seconds, &Estimated::value>("switch_latency_spread_s"),
    Value<&LatencyFigures::spread_seconds, &Estimated::error>("switch_latency_spread_s_std"),
    Value<&LatencyFigures::calls>("calls"),
    Object<&LatencyFigures::of_clock>("switch_latency_at", kClockLatency)
        .UnlessEmpty()
        .Sometimes()};
constexpr Message<LatencyFigures> kLatency = {"Latency", kLatencyFields};
struct NoiseAndLatency {
  NoiseFigures noise;
  LatencyFigures latency;
};
constexpr Field kNoiseAndLatencyFields[] = {wire::Inline<&NoiseAndLatency::noise>(kNoise),
                                            wire::Inline<&NoiseAndLatency::latency>(kLatency)};
constexpr Message<NoiseAndLatency> kNoiseAndLatency = {"Conditions", kNoiseAndLatencyFields};

RawJson ConditionsJson(const RankConditions& conditions) {
  if (conditions.noise && conditions.latency) {
    return {Write(kNoiseAndLatency, {*conditions.noise, *conditions.latency})};
  }
  if (conditions.noise) return {Write(kNoise, *conditions.noise)};
  return {conditions.latency ? Write(kLatency, *conditions.latency) : "{}"};
}

constexpr Field kAgentFields[] = {
    Value("version",
          [](const AgentWord& agent) { return agent.version.substr(0, kMostVersionBytes); }),
    Value("clock_conflicts", [](const AgentWord& agent) {
      std::vector<std::string> conflicts;
      for (const std::string& conflict : agent.conflicts) {
        if (conflicts.size() < kMostConflicts)
          conflicts.push_back(conflict.substr(0, kMostConflictBytes));
      }
      return conflicts;
    })};
constexpr Message<AgentWord> kAgent = {"Agent", kAgentFields};

using Count = ComputationCounts::value_type;
constexpr Field kCountFields[] = {
    Value("stage", [](const Count& count) { return count.first.second; }),
    Value("instruction", [](const Count& count) { return ComputationTypeName(count.first.first); }),
    Value<&Count::second>("count")};
constexpr Message<Count> kCount = {"Ran", kCountFields};

RawJson CountsJson(const ComputationCounts& counts) {
  RawJson list = {"["};
  for (const Count& count : counts) {
    if (list.text.size() > 1) list.text += ',';
    Append(kCount, count, &list.text);
  }
  list.text += ']';
  return list;
}

struct ClientMessage {
  ClientSettings settings;
  perseus_client_stats stats = {};
  std::string error;
  std::optional<AgentWord> agent;
  RawJson ran;
  RawJson conditions;
};
using Client = ClientMessage;
using Stats = perseus_client_stats;
constexpr Field kClientFields[] = {
    Value<&Client::settings, &ClientSettings::rank>("rank"),
    Value<&Client::settings, &ClientSettings::client_id>("client"),
    Value<&Client::settings, &ClientSettings::process>("process"),
    Value("version", [](const Client&) { return std::string_view(PERSEUS_VERSION_STRING); }),
    Value("state",
          [](const Client& client) { return std::string_view(StateName(client.stats.state)); }),
    Value<&Client::settings, &ClientSettings::shadow>("shadow"),
    Value("level",
          [](const Client& client) { return std::string_view(LevelName(client.stats.level)); }),
    Value<&Client::stats, &Stats::plan_version>("plan_version"),
    Value<&Client::stats, &Stats::calls>("calls"),
    Value<&Client::stats, &Stats::coalesced>("coalesced"),
    Value<&Client::stats, &Stats::refused>("refused"),
    Value<&Client::stats, &Stats::early>("early"),
    Value<&Client::stats, &Stats::on_time>("on_time"),
    Value<&Client::stats, &Stats::late>("late"),
    Value<&Client::stats, &Stats::missed>("missed"),
    Value<&Client::stats, &Stats::latency_seconds>("latency_s"),
    Value<&Client::stats, &Stats::overhead_share>("overhead_share"),
    Value<&Client::stats, &Stats::order_mismatches>("order_mismatches"),
    Value<&Client::stats, &Stats::lost_events>("lost_events"),
    Value<&Client::error>("error"),
    Object<&Client::agent>("agent", kAgent).Sometimes(),
    Value<&Client::ran>("ran").UnlessEmpty().Sometimes(),
    Value<&Client::conditions>("conditions").UnlessEmpty().Sometimes()};
constexpr Message<Client> kClient = {"Client", kClientFields};

struct IterationsMessage {
  std::vector<Iterated> reports;
  std::vector<Client> clients;
};
constexpr Field kIterationsFields[] = {Object<&IterationsMessage::reports>("reports", kIteration),
                                       Object<&IterationsMessage::clients>("clients", kClient)};
constexpr Message<IterationsMessage> kIterations = {"Iterations", kIterationsFields};

constexpr Field kStragglerFields[] = {
    Value<&StragglerNotice::rank>("rank"), Value<&StragglerNotice::degree>("factor"),
    Value<&StragglerNotice::delay_seconds>("starts_s").UnlessEmpty().Sometimes()};
constexpr Message<StragglerNotice> kStraggler = {"Straggler", kStragglerFields};

// None: not known.
std::optional<std::string_view> ClocksName(Clocks clocks, const ClientSettings& settings) {
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
  return std::nullopt;
}

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
  return gpu ? Write(kRankWithGpu, {settings, *gpu}) : Write(kSettings, settings);
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

std::string FormatMeasurements(int rank, ProfileReport report) {
  Measured measured = {rank, std::move(report), {}};
  std::vector<Estimate>& rows = measured.report.rows;
  const auto is_of_clock = [](const Estimate& row) { return row.mhz != measure::kDefaultClockMhz; };
  const auto default_clocks = std::stable_partition(rows.begin(), rows.end(), is_of_clock);
  measured.default_clocks.assign(default_clocks, rows.end());
  rows.erase(default_clocks, rows.end());
  std::vector<std::string>& notes = measured.report.notes;
  if (notes.size() > kMostReportedNotes) notes.resize(kMostReportedNotes);
  for (std::string& note : notes) note.resize(std::min(note.size(), kMostReportedNoteBytes));
  return Write(kMeasurements, measured);
}

std::string FormatIterations(const ClientSettings& settings,
                             const std::vector<IterationReport>& reports,
                             const perseus_client_stats& stats, const std::string& error,
                             const std::optional<AgentWord>& agent) {
  IterationsMessage message;
  for (const IterationReport& report : reports) {
    message.reports.push_back({settings.rank, report, ClocksName(report.record.clocks, settings)});
  }
  Client& client = message.clients.emplace_back(Client{settings, stats, error, agent, {}, {}});
  if (!reports.empty() && reports.back().ran) client.ran = CountsJson(*reports.back().ran);
  const auto told = std::find_if(reports.rbegin(), reports.rend(), [](const IterationReport& each) {
    return each.conditions.has_value();
  });
  if (told != reports.rend()) client.conditions = ConditionsJson(*told->conditions);
  return Write(kIterations, message);
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

const char* LevelName(int level) {
  constexpr std::array kNames = {"computation", "phase", "stage", "off"};
  return kNames.at(static_cast<std::size_t>(level));
}

}  // namespace perseus::client
