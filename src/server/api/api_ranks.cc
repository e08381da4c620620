// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What ranks say: who they are, how long iterations took.
// Members that are not known are ignored, so that newer clients may say more.

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/report_limits.h"
#include "perseus/computation.h"
#include "server/api/api_handlers.h"
#include "server/api/api_schemas.h"
#include "server/api/api_text.h"
#include "server/api/job_json.h"
#include "server/runtime/rank_trouble.h"

namespace perseus::server {
namespace {

constexpr int kMostClocks = 4096;
constexpr NumberRange kVariances = {.least = -1e6, .most = 1e6};
constexpr NumberRange kCorrelations = {.least = 0, .most = 1};

constexpr Field kGpuMembers[] = {Text("uuid").Sometimes(), Text("name").Sometimes()};
constexpr Field kRankMembers[] = {
    Integer("rank"),
    Integer("dp_rank"),
    Integer("pp_rank"),
    Integer("tp_rank").Sometimes(),
    Text("node").Most(256).Optional(),
    Object("gpu", "Gpu").Optional(),
    Integer("clocks_mhz").In({.least = 0}).List(kMostClocks).Optional()};
constexpr Field kBusyByTypeMembers[] = {Number("forward").In({.least = 0}).Optional(),
                                        Number("backward").In({.least = 0}).Optional(),
                                        Number("backward_input").In({.least = 0}).Optional(),
                                        Number("backward_weight").In({.least = 0}).Optional(),
                                        Number("recompute").In({.least = 0}).Optional()};
constexpr Field kKindMembers[] = {
    Integer("stage"),
    Text("instruction"),
    Integer("frequency"),
    Integer("count").In({.least = 0}),
    Number("time").In(kPositive),
    Boolean("steady").Optional().Says("Of computations whose clock is in effect all through in "
                                      "nearly every iteration. Only these correct the profile.")};
constexpr Field kTimelineMembers[] = {
    Number("begin_ns").In({.least = 0}).List(kMostTimelineRows).Says("[row of the plan]"),
    Number("end_ns").In({.least = 0}).List(kMostTimelineRows),
    Integer("changes")
        .In({.least = 0})
        .List(kMostTimelineRows)
        .Optional()
        .Says("Rows before which the plan changes the clock.")};
constexpr Field kIterationReportMembers[] = {
    Integer("rank"),
    Integer("iteration").Optional(),
    Integer("plan_version").Optional(),
    Number("time_s").In(kPositive),
    Number("energy_j").In({.least = 0}).Optional(),
    Number("tokens")
        .In({.least = 0})
        .Optional()
        .Says("Of the iteration on this rank: work that differs is no straggler"),
    Number("busy_s").In({.least = 0}).Optional().Says("In its own computations"),
    Object("busy_by_type_s", "BusyByType").Optional(),
    Text("clocks").Most(64).Optional().Says("plan: as planned; coarse: followed less finely; "
                                            "maximum: the driver's own; else not known"),
    Object("kinds", "KindReport")
        .List(kMostReportedKinds)
        .Optional()
        .Says("Means since the rank's last report, of computations whose clock was in effect all "
              "through."),
    Object("timeline", "RankTimeline")
        .Optional()
        .Says("When its computations ran, since its iteration began. Of every tenth iteration of "
              "the first pipeline: transfers between stages are found from it.")};
constexpr Field kRanMembers[] = {Integer("stage").Says("-1: not said."), Text("instruction"),
                                 Integer("count").In({.least = 0})};
constexpr Field kClockLatencyMembers[] = {
    Integer("clock_mhz"), Number("switch_latency_s").In({.least = 0}),
    Number("switch_latency_s_std").In({.least = 0}),
    Number("calls").In({.least = 0}).Says("That it comes from.")};
constexpr Field kRankConditionsMembers[] = {
    Number("noise_variance")
        .Optional()
        .Says("Relative to the time, of each computation; below 0 "
              "where there is too little noise to tell."),
    Number("noise_variance_std").In({.least = 0}).Optional().Says("Standard error; so the others."),
    Number("rank_noise_variance")
        .Optional()
        .Says("The same of all that the rank computes in an iteration."),
    Number("rank_noise_variance_std").In({.least = 0}).Optional(),
    Number("noise_correlation")
        .In(kCorrelations)
        .Optional()
        .Says("From one computation to the next."),
    Number("noise_correlation_std").In({.least = 0}).Optional(),
    Number("rare_noise_variance")
        .Optional()
        .Says("What computations add that stand out from the others."),
    Number("rare_noise_variance_std").In({.least = 0}).Optional(),
    Number("rare_noise_share")
        .In({.least = 0, .most = 1})
        .Optional()
        .Says("How many of all computations these are."),
    Number("rare_noise_share_std").In({.least = 0}).Optional(),
    Number("switch_latency_s")
        .In({.least = 0})
        .Optional()
        .Says("From the call until the clock is in effect."),
    Number("switch_latency_s_std").In({.least = 0}).Optional(),
    Number("switch_latency_spread_s").In({.least = 0}).Optional(),
    Number("switch_latency_spread_s_std").In({.least = 0}).Optional(),
    Object("switch_latency_at", "ClockLatency")
        .List(kMostClocks)
        .Optional()
        .Says("The same of single clocks."),
    Number("iterations").In({.least = 0}).Optional().Says("That the noise comes from."),
    Number("computations").In({.least = 0}).Optional(),
    Number("calls").In({.least = 0}).Optional().Says("That the latency comes from.")};
constexpr Field kAgentReportMembers[] = {
    Text("version").Most(kMostVersionBytes).Optional(),
    Text("fights")
        .Most(512)
        .List(kMostFights)
        .Optional()
        .Says("What acts against the clock of the rank's GPU, a sentence each.")};
constexpr Field kClientReportMembers[] = {
    Integer("rank"),
    Text("client").Most(64).Optional().Says("Of this client alone: two with one rank are told "
                                            "apart by it."),
    Text("process").Most(512).Optional().Says("Which process it is, for people."),
    Object("ran", "Ran")
        .List(kMostReportedKinds)
        .Optional()
        .Says("What its iterations run, where it has no "
              "plan and knows."),
    Text("state").Optional(),
    Text("error").Optional(),
    Integer("plan_version").Optional(),
    Number("calls").Optional(),
    Number("coalesced").Optional(),
    Number("refused").Optional(),
    Number("early").Optional(),
    Number("on_time").Optional(),
    Number("late").Optional(),
    Number("missed").Optional(),
    Number("order_mismatches").Optional(),
    Number("lost_events").Optional(),
    Boolean("shadow").Optional().Says("It sets no clock"),
    Text("version").Most(kMostVersionBytes).Optional().Says("Of the client."),
    Object("agent", "AgentReport").Optional().Says("None: no agent answers."),
    Object("conditions", "RankConditions").Optional().Says("Once in a while.")};
constexpr Field kReportsMembers[] = {Object("reports", "IterationReport").List().Optional(),
                                     Object("clients", "ClientReport").List().Optional()};
constexpr Field kTroubleMembers[] = {Text("client").Says("As it called itself."), Text("sentence")};
constexpr Field kReportsTakenMembers[] = {
    Integer("reports"),
    Object("troubles", "Trouble").List().Sometimes().Says("What is wrong with these clients.")};
constexpr Field kJoinedMembers[] = {Integer("plan_version"),
                                    Choice("state", store::kJobStateNames)};
constexpr AnyMessage kRankSchemas[] = {
    {"Gpu", kGpuMembers},
    {"Rank", kRankMembers},
    {"Joined", kJoinedMembers},
    {"BusyByType", kBusyByTypeMembers},
    {"KindReport", kKindMembers},
    {"RankTimeline", kTimelineMembers},
    {"Ran", kRanMembers},
    {"AgentReport", kAgentReportMembers, "What the node's agent says."},
    {"ClockLatency", kClockLatencyMembers, "How long calls for one clock took."},
    {"RankConditions", kRankConditionsMembers, "What the rank measured of its noise and latency."},
    {"Trouble", kTroubleMembers},
    {"IterationReport", kIterationReportMembers},
    {"ClientReport", kClientReportMembers,
     "Counts since the client began; the last word of each rank counts."},
    {"Reports", kReportsMembers},
    {"ReportsTaken", kReportsTakenMembers}};

std::vector<int> ReadClocks(const TreeCursor& list) {
  std::vector<int> clocks;
  const std::size_t count = list.Size();
  if (count > kMostClocks) list.FailExpected(fmt::format("at most {} clocks", kMostClocks));
  for (std::size_t i = 0; i < count && i < kMostClocks; ++i) {
    clocks.push_back(list.At(i).Integer(0, kMostNumber));
  }
  return clocks;
}

Outcome<store::RankRecord> ReadRank(const std::string& body) {
  store::RankRecord rank;
  const Outcome<void> read = ReadBody(body, [&](const TreeCursor& root) {
    rank.rank = RankNumber(root, "rank");
    rank.dp_rank = RankNumber(root, "dp_rank");
    rank.pp_rank = RankNumber(root, "pp_rank");
    rank.tp_rank = root.Find("tp_rank") ? RankNumber(root, "tp_rank") : 0;
    rank.node = FindText(root, "node", 256);
    if (const auto gpu = FindSet(root, "gpu")) {
      rank.gpu_uuid = FindText(*gpu, "uuid", 256);
      rank.gpu_name = FindText(*gpu, "name", 256);
    }
    if (const auto clocks = FindSet(root, "clocks_mhz")) rank.clocks_mhz = ReadClocks(*clocks);
  });
  if (!read) return tl::unexpected(read.error());
  return rank;
}

void TakeRank(const JobPointer& job, const CallPointer& call) {
  Outcome<store::RankRecord> rank = ReadRank(call->request.body);
  if (!rank) return Send(*call, FailureResponse(rank.error()));
  Change(job, call, RegisterRank{*std::move(rank)}, [](const Answer& met) {
    return JsonAnswer(
        200, {{"plan_version", met.plan_version}, {"state", store::JobStateName(met.state)}});
  });
}

struct Reports {
  std::vector<IterationReport> iterations;
  std::vector<ClientReport> clients;
};

void FailOnManyKinds(const TreeCursor& list) {
  list.FailExpected(fmt::format("at most {} kinds of computations", kMostReportedKinds));
}

// Those that a newer client names and nobody knows here are left out.
std::vector<KindReport> ReadKinds(const TreeCursor& list) {
  std::vector<KindReport> kinds;
  const std::size_t count = list.Size();
  if (count > kMostReportedKinds) FailOnManyKinds(list);
  for (std::size_t i = 0; i < count && i < kMostReportedKinds; ++i) {
    const TreeCursor kind = list.At(i);
    KindReport report;
    report.key.stage = RankNumber(kind, "stage");
    report.key.clock_mhz = RankNumber(kind, "frequency");
    report.count = Whole(kind.Get("count"));
    report.time_seconds = kind.Get("time").Number(kPositive);
    if (const auto steady = FindSet(kind, "steady")) report.is_steady = steady->Bool();
    if (report.count < 0) kind.Get("count").FailExpected("a number of computations");
    const auto type = ParseComputationType(kind.Get("instruction").String());
    if (!type) continue;
    report.key.type = *type;
    kinds.push_back(report);
  }
  return kinds;
}

std::vector<RowSpan> ReadTimeline(const TreeCursor& timeline) {
  constexpr NumberRange kNs = {.least = 0, .most = 1e15};
  constexpr double kSecondsPerNs = 1e-9;
  const TreeCursor begins = timeline.Get("begin_ns");
  const TreeCursor ends = timeline.Get("end_ns");
  std::vector<RowSpan> rows;
  if (begins.Size() > kMostTimelineRows) {
    begins.FailExpected(fmt::format("at most {} rows", kMostTimelineRows));
  }
  if (ends.Size() != begins.Size()) ends.FailExpected("as many as begins");
  const std::size_t count = std::min({begins.Size(), ends.Size(), kMostTimelineRows});
  rows.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    rows.push_back({.begin_seconds = kSecondsPerNs * begins.At(i).Number(kNs),
                    .end_seconds = kSecondsPerNs * ends.At(i).Number(kNs)});
  }
  if (const auto changes = FindSet(timeline, "changes")) {
    for (std::size_t i = 0; i < std::min(changes->Size(), count); ++i) {
      const auto row = static_cast<std::size_t>(changes->At(i).Integer(0, kMostNumber));
      if (row < rows.size()) rows[row].changes = true;
    }
  }
  return rows;
}

IterationReport ReadIteration(const TreeCursor& report) {
  IterationReport read;
  read.rank = RankNumber(report, "rank");
  read.iteration = FindInteger(report, "iteration").value_or(0);
  read.plan_version = FindInteger(report, "plan_version").value_or(0);
  read.time_seconds = report.Get("time_s").Number();
  read.energy_joules = FindNumber(report, "energy_j", kNotNegative);
  read.busy_seconds = FindNumber(report, "busy_s", kNotNegative).value_or(0);
  read.tokens = FindNumber(report, "tokens", kNotNegative).value_or(0);
  if (const auto busy = FindSet(report, "busy_by_type_s")) {
    for (int i = 0; i < kNumComputationTypes; ++i) {
      const auto name = ComputationTypeName(static_cast<ComputationType>(i));
      read.busy_by_type[static_cast<std::size_t>(i)] =
          FindNumber(*busy, name, kNotNegative).value_or(0);
    }
  }
  if (const auto kinds = FindSet(report, "kinds")) read.kinds = ReadKinds(*kinds);
  if (const auto timeline = FindSet(report, "timeline")) read.rows = ReadTimeline(*timeline);
  // A newer client may say more than is known here.
  const std::string clocks = FindText(report, "clocks", 64);
  if (clocks == "plan") read.clocks = ReportedClocks::kPlan;
  if (clocks == "coarse") read.clocks = ReportedClocks::kCoarse;
  if (clocks == "maximum") read.clocks = ReportedClocks::kMaximum;
  return read;
}

ComputationCounts ReadRan(const TreeCursor& list) {
  ComputationCounts counts;
  const std::size_t count = list.Size();
  if (count > kMostReportedKinds) FailOnManyKinds(list);
  for (std::size_t i = 0; i < count && i < kMostReportedKinds; ++i) {
    const TreeCursor kind = list.At(i);
    const int stage = kind.Get("stage").Integer(-1, kMostNumber);
    const std::int64_t runs = Whole(kind.Get("count"));
    if (runs < 0) kind.Get("count").FailExpected("a number of computations");
    const auto type = ParseComputationType(kind.Get("instruction").String());
    if (type) counts[{*type, stage}] = runs;
  }
  return counts;
}

// Wholly or not at all, each with its error.
std::optional<RankFigure> FindFigure(const TreeCursor& json, const std::string& name,
                                     const NumberRange& range) {
  const auto value = FindNumber(json, name.c_str(), range);
  const auto error = FindNumber(json, (name + "_std").c_str(), kNotNegative);
  if (!value || !error) return std::nullopt;
  return RankFigure{*value, *error};
}

std::vector<RankClockLatency> ReadLatencies(const TreeCursor& json) {
  std::vector<RankClockLatency> latencies;
  const auto list = FindSet(json, "switch_latency_at");
  for (std::size_t i = 0; list && i < list->Size() && i < kMostClocks; ++i) {
    const TreeCursor each = list->At(i);
    const auto seconds = FindFigure(each, "switch_latency_s", kNotNegative);
    const auto mhz = FindNumber(each, "clock_mhz", {.least = 1, .most = 1e9});
    const auto calls = FindNumber(each, "calls", {.least = 0, .most = 1e15});
    if (!seconds || !mhz) continue;
    latencies.push_back({.clock_mhz = static_cast<int>(*mhz),
                         .seconds = *seconds,
                         .calls = static_cast<std::int64_t>(calls.value_or(0))});
  }
  return latencies;
}

RankConditions ReadConditions(const TreeCursor& json) {
  const auto count = [&](const char* name) {
    return static_cast<std::int64_t>(
        FindNumber(json, name, {.least = 0, .most = 1e15}).value_or(0));
  };
  return {.noise_variance = FindFigure(json, "noise_variance", kVariances),
          .rank_noise_variance = FindFigure(json, "rank_noise_variance", kVariances),
          .noise_correlation = FindFigure(json, "noise_correlation", kCorrelations),
          .rare_noise_variance = FindFigure(json, "rare_noise_variance", kVariances),
          .rare_noise_share = FindFigure(json, "rare_noise_share", {.least = 0, .most = 1}),
          .latency_seconds = FindFigure(json, "switch_latency_s", kNotNegative),
          .latency_spread_seconds = FindFigure(json, "switch_latency_spread_s", kNotNegative),
          .latency_at = ReadLatencies(json),
          .iterations = count("iterations"),
          .computations = count("computations"),
          .calls = count("calls")};
}

AgentReport ReadAgent(const TreeCursor& json) {
  AgentReport agent = {.version = FindText(json, "version", kMostVersionBytes)};
  const auto fights = FindSet(json, "fights");
  for (std::size_t i = 0; fights && i < fights->Size() && i < kMostFights; ++i) {
    agent.fights.push_back(fights->At(i).String().substr(0, kMostFightBytes));
  }
  return agent;
}

ClientReport ReadClient(const TreeCursor& report) {
  constexpr std::array<const char*, 9> kCounts = {"calls",  "coalesced",        "refused",
                                                  "early",  "on_time",          "late",
                                                  "missed", "order_mismatches", "lost_events"};
  ClientReport read;
  read.rank = RankNumber(report, "rank");
  read.client = FindText(report, "client", 64);
  read.process = FindText(report, "process", 512);
  if (const auto ran = FindSet(report, "ran")) read.ran = ReadRan(*ran);
  if (const auto told = FindSet(report, "conditions")) read.conditions = ReadConditions(*told);
  read.version = FindText(report, "version", kMostVersionBytes);
  if (const auto agent = FindSet(report, "agent")) read.agent = ReadAgent(*agent);
  read.state = FindText(report, "state", 64);
  read.error = FindText(report, "error", 512);
  if (const auto shadow = FindSet(report, "shadow")) read.shadow = shadow->Bool();
  read.plan_version = FindInteger(report, "plan_version").value_or(0);
  for (const char* const name : kCounts) {
    if (const auto count = FindNumber(report, name, kNotNegative)) read.counts[name] = *count;
  }
  return read;
}

Outcome<Reports> ReadReports(const std::string& body) {
  Reports reports;
  const Outcome<void> read = ReadBody(body, [&](const TreeCursor& root) {
    if (const auto list = FindSet(root, "reports")) {
      const std::size_t count = list->Size();
      for (std::size_t i = 0; i < count; ++i) {
        reports.iterations.push_back(ReadIteration(list->At(i)));
      }
    }
    if (const auto list = FindSet(root, "clients")) {
      const std::size_t count = list->Size();
      for (std::size_t i = 0; i < count; ++i) reports.clients.push_back(ReadClient(list->At(i)));
    }
  });
  if (!read) return tl::unexpected(read.error());
  return reports;
}

void TakeReports(const JobPointer& job, const CallPointer& call) {
  Outcome<Reports> reports = ReadReports(call->request.body);
  if (!reports) return Send(*call, FailureResponse(reports.error()));
  if (const std::string* relay = http::FindHeader(call->request.headers, kRelayHeader)) {
    for (ClientReport& client : reports->clients) {
      client.relay = relay->substr(0, kMostVersionBytes);
    }
  }
  job->Report(reports->iterations, reports->clients,
              [call, job, reports = *reports](const Outcome<void>& reported) {
                if (!reported) {
                  call->responder.Send(FailureOf(*job, reported.error()));
                  return;
                }
                nlohmann::ordered_json answer = {{"reports", reports.iterations.size()}};
                for (const ClientReport& client : reports.clients) {
                  const std::string trouble = TroubleOf(call->service, *job, client);
                  if (trouble.empty()) continue;
                  answer["troubles"].push_back({{"client", client.client}, {"sentence", trouble}});
                }
                call->responder.Send(JsonAnswer(202, answer));
              });
}

}  // namespace

Schemas RankSchemas() { return kRankSchemas; }

void AddRankRoutes(RouteMaker* routes) {
  routes->OnJob(RowOf("registerRank"), TakeRank);
  routes->OnJob(RowOf("reportIterations"), TakeReports);
}

}  // namespace perseus::server
