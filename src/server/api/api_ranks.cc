// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Ranks: their reports (wire/reports.h), the server's replies, and their views.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/input_limits.h"
#include "server/api/api_handlers.h"
#include "server/api/messages.h"
#include "server/runtime/rank_trouble.h"
#include "wire/reports.h"

namespace perseus::server {
namespace {

// A grid of more would be neither sent quickly nor seen.
constexpr int kMostColumns = 128;
constexpr int kMostCells = 4096;

constexpr Field kJoinedFields[] = {Value<&Answer::plan_version>("plan_version"),
                                   Choice<&Answer::state>("state", store::kJobStateNames)};
constexpr Message<Answer> kJoined = {"Joined", kJoinedFields};

void TakeRank(const JobPointer& job, const CallPointer& call) {
  Outcome<wire::Rank> read = ReadBody(wire::kRank, call->request.body);
  if (!read) return Send(*call, FailureResponse(read.error()));
  store::RankRecord rank = {.rank = read->rank,
                            .dp_rank = read->dp_rank,
                            .pp_rank = read->pp_rank,
                            .tp_rank = read->tp_rank,
                            .node = std::move(read->node),
                            .clocks_mhz = std::move(read->clocks_mhz)};
  if (read->gpu) {
    rank.gpu_uuid = std::move(read->gpu->uuid);
    rank.gpu_name = std::move(read->gpu->name);
  }
  Change(job, call, RegisterRank{std::move(rank)},
         [](const Answer& met) { return JsonAnswer(200, kJoined, met); });
}

void TakeReports(const JobPointer& job, const CallPointer& call) {
  Outcome<wire::Reports> read = ReadBody(wire::kReports, call->request.body);
  if (!read) return Send(*call, FailureResponse(read.error()));
  if (const std::string* relay = http::FindHeader(call->request.headers, wire::kRelayHeader)) {
    for (ClientReport& client : read->clients) client.relay = relay->substr(0, kMostVersionBytes);
  }
  const auto reports = std::make_shared<const wire::Reports>(*std::move(read));
  job->Report(reports->reports, reports->clients,
              [call, job, reports](const Outcome<void>& reported) {
                if (!reported) return Send(*call, FailureOf(*job, reported.error()));
                wire::ReportsTaken taken = {.reports = reports->reports.size()};
                for (const ClientReport& client : reports->clients) {
                  std::string trouble = TroubleOf(call->service, *job, client);
                  if (!trouble.empty()) taken.troubles.push_back({client.client, trouble});
                }
                Send(*call, JsonAnswer(202, wire::kReportsTaken, taken));
              });
}

struct RowCount {
  std::size_t rows = 0;
};
constexpr Field kMeasuredFields[] = {Value<&RowCount::rows>("rows")};
constexpr Message<RowCount> kMeasured = {"Measured", kMeasuredFields};

void TakeRows(const JobPointer& job, const CallPointer& call) {
  Outcome<wire::Measurements> read = ReadBody(wire::kMeasurements, call->request.body);
  if (!read) return Send(*call, FailureResponse(read.error()));
  store::Measurements measured = {.rank = read->rank,
                                  .rows = std::move(read->rows),
                                  .blocking_power_watts = read->blocking_power_watts,
                                  .done = read->done,
                                  .blocking_power_std_watts = read->blocking_power_std_watts,
                                  .waiting = std::move(read->waiting),
                                  .counter_period_seconds = read->counter_period_seconds,
                                  .sweep = read->sweep,
                                  .notes = std::move(read->notes)};
  measured.rows.insert(measured.rows.end(), read->default_clocks.begin(),
                       read->default_clocks.end());
  const RowCount count{measured.rows.size()};
  Change(job, call, TakeMeasurements{std::move(measured)},
         [count](const Answer&) { return JsonAnswer(200, kMeasured, count); });
}

// A list of its own for rows at default clocks, as older clients expect clocks.
struct Reported {
  std::vector<ProfileKey> rows = {};
  bool done = false;
  std::vector<ProfileKey> default_clocks = {};
};
constexpr Field kDefaultClockCellFields[] = {
    Value<&ProfileKey::stage>("stage"),
    Choice<&ProfileKey::type>("instruction", kComputationTypeNames)};
constexpr Message<ProfileKey> kDefaultClockCell = {"DefaultClockCell", kDefaultClockCellFields};
constexpr Field kReportedFields[] = {
    Object<&Reported::rows>("rows", kProfileCell), Value<&Reported::done>("done"),
    Object<&Reported::default_clocks>("default_clocks", kDefaultClockCell)
        .Sometimes()
        .UnlessEmpty()
        .Says("Rows at default clocks.")};
constexpr Message<Reported> kReported = {"Reported", kReportedFields};

// Tells a rank that goes on with a sweep the rows that it may skip.
void ShowMeasurements(const JobPointer& job, const CallPointer& call) {
  const auto rank = PlaceOf(*job, *call, *QueryInteger(call->request, "rank"));
  if (!rank) return;
  const ManagedJob::ReportedRows known = job->RowsOf(rank->rank);
  Reported reported = {.done = known.done};
  for (const ProfileKey& key : known.rows) {
    (key.clock_mhz == store::kDefaultClockMhz ? reported.default_clocks : reported.rows)
        .push_back(key);
  }
  Send(*call, JsonAnswer(200, kReported, reported));
}

constexpr Field kGpuShownFields[] = {Value<&store::RankRecord::gpu_uuid>("uuid").Sometimes(),
                                     Value<&store::RankRecord::gpu_name>("name").Sometimes()};
constexpr Message<store::RankRecord> kGpuShown = {"Gpu", kGpuShownFields};
constexpr Field kClientShownFields[] = {
    Value<&ClientReport::error>("error").Sometimes().UnlessEmpty(),
    Value<&ClientReport::plan_version>("plan_version").Sometimes(),
    Value<&ClientReport::counts>("counts").Sometimes().Says(
        "Of clock calls and computations, since its client began.")};
constexpr Message<ClientReport> kClientShown = {"", kClientShownFields};
constexpr Field kRankShownFields[] = {
    Value<&RankNow::record, &store::RankRecord::rank>("rank"),
    Value<&RankNow::record, &store::RankRecord::dp_rank>("dp_rank"),
    Value<&RankNow::record, &store::RankRecord::pp_rank>("pp_rank"),
    Value<&RankNow::record, &store::RankRecord::tp_rank>("tp_rank"),
    Value<&RankNow::record, &store::RankRecord::node>("node"),
    Object<&RankNow::record>("gpu", kGpuShown),
    Value<&RankNow::lateness>("lateness")
        .Optional()
        .Says("How many times as long as usual the rank computed lately; null: its usual pace is "
              "not known."),
    Value("state",
          [](const RankNow& rank) {
            return rank.client ? std::optional(rank.client->state) : std::nullopt;
          })
        .Optional()
        .Says("As its client says; null: it did not report to this server."),
    Inline<&RankNow::client>(kClientShown)};
constexpr Message<RankNow> kRankShown = {"RankShown", kRankShownFields};
using RankList = std::vector<RankNow>;
constexpr const RankList& Whole(const RankList& ranks) { return ranks; }
constexpr Field kRankListFields[] = {Object<Whole>("ranks", kRankShown)};
constexpr Message<RankList> kRankList = {"RankList", kRankListFields};

http::Response ListRanks(ManagedJob& job, const Call& call) {
  const auto pipeline = QueryInteger(call.request, "pipeline");
  const auto stage = QueryInteger(call.request, "stage");
  RankList ranks = job.RanksNow();
  std::erase_if(ranks, [&](const RankNow& rank) {
    return (pipeline && rank.record.dp_rank != *pipeline) ||
           (stage && rank.record.pp_rank != *stage);
  });
  return JsonAnswer(200, kRankList, ranks);
}

struct GridCell {
  int ranks = 0;
  std::optional<double> lateness = {};
  std::optional<int> latest = {};
  std::int64_t refused = 0;
  int complaining = 0;

  void Add(const RankNow& rank) {
    ++ranks;
    if (!latest || (rank.lateness && rank.lateness > lateness)) latest = rank.record.rank;
    if (rank.lateness && (!lateness || *rank.lateness > *lateness)) lateness = rank.lateness;
    refused += RefusedCalls(rank.client ? &*rank.client : nullptr);
    complaining += rank.client && !rank.client->error.empty() ? 1 : 0;
  }
};
constexpr Field kGridCellFields[] = {
    Value<&GridCell::ranks>("ranks").Says("Registered ones."),
    Value<&GridCell::lateness>("lateness")
        .Nullable()
        .Says("Of the rank that is latest; null: no pace is known."),
    Value<&GridCell::latest>("latest").Nullable().Says("That rank, or the first one."),
    Value<&GridCell::refused>("refused").Says("Clock calls that GPUs refused."),
    Value<&GridCell::complaining>("complaining").Says("Ranks that report an error.")};
constexpr Message<GridCell> kGridCell = {"GridCell", kGridCellFields};
struct GridRow {
  std::vector<GridCell> cells = {};
};
constexpr Field kGridRowFields[] = {
    Object<&GridRow::cells>("cells", kGridCell).Says("Stage by stage.")};
constexpr Message<GridRow> kGridRow = {"GridRow", kGridRowFields};
struct RankGrid {
  Shape shape = {};
  int pipelines_each = 1;
  int stages_each = 1;
  std::vector<GridRow> rows = {};
};
constexpr Field kRankGridFields[] = {
    Value<&RankGrid::shape, &Shape::data_parallel>("pipelines"),
    Value<&RankGrid::shape, &Shape::pipeline_parallel>("stages"),
    Value<&RankGrid::shape, &Shape::tensor_parallel>("tensor_parallel"),
    Value<&RankGrid::pipelines_each>("pipelines_each")
        .Says("How many pipelines one row stands for."),
    Value<&RankGrid::stages_each>("stages_each")
        .Says("How many ranks of a pipeline one column stands for."),
    Object<&RankGrid::rows>("rows", kGridRow).Says("Pipeline by pipeline.")};
constexpr Message<RankGrid> kRankGrid = {"RankGrid", kRankGridFields};

int DividedUp(int number, int by) { return (number + by - 1) / by; }

http::Response ShowGrid(ManagedJob& job, const Call& /*call*/) {
  RankGrid grid = {.shape = job.shape()};
  grid.stages_each = DividedUp(grid.shape.pipeline_parallel, kMostColumns);
  const int columns = DividedUp(grid.shape.pipeline_parallel, grid.stages_each);
  grid.pipelines_each = DividedUp(grid.shape.data_parallel, std::max(1, kMostCells / columns));
  const int rows = DividedUp(grid.shape.data_parallel, grid.pipelines_each);
  const std::vector<GridCell> empty(static_cast<std::size_t>(columns));
  grid.rows.assign(static_cast<std::size_t>(rows), {empty});
  for (const RankNow& rank : job.RanksNow()) {
    const auto row = static_cast<std::size_t>(rank.record.dp_rank / grid.pipelines_each);
    const auto column = static_cast<std::size_t>(rank.record.pp_rank / grid.stages_each);
    if (row < grid.rows.size() && column < empty.size()) grid.rows[row].cells[column].Add(rank);
  }
  return JsonAnswer(200, kRankGrid, grid);
}

}  // namespace

Messages RankMessages() {
  static constexpr const AnyMessage* kAll[] = {
      &wire::kRank,         &kJoined,   &wire::kMeasurements,
      &kMeasured,           &kReported, &wire::kReports,
      &wire::kReportsTaken, &kRankList, &kRankGrid};
  return kAll;
}

void AddRankRoutes(RouteMaker* routes) {
  routes->OnJob(RowOf("registerRank"), TakeRank);
  routes->OnJob(RowOf("reportIterations"), TakeReports);
  routes->OnJob(RowOf("measure"), TakeRows);
  // For trainers, too: a client that may report may read its reports.
  routes->OnJob(RowOf("showMeasurements"), ShowMeasurements);
  routes->OnLook(RowOf("listRanks"), ListRanks);
  routes->OnLook(RowOf("showRankGrid"), ShowGrid);
}

}  // namespace perseus::server
