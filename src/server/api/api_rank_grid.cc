// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Ranks by pipeline and stage: as a grid of bounded size, and those of one place.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/api/api_handlers.h"
#include "server/api/api_schemas.h"
#include "server/api/job_json.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

// More would be neither sent quickly nor seen.
constexpr int kMostColumns = 128;
constexpr int kMostCells = 4096;

constexpr Field kRankShownMembers[] = {
    Number("lateness")
        .Optional()
        .Says("How many times as long as usual the rank computed lately; null: its usual pace is "
              "not known."),
    Text("state").Optional().Says("As its client says; null: it did not report to this server."),
    Text("error").Sometimes(), Integer("plan_version").Sometimes(),
    Object("counts").Sometimes().Says("Of clock calls and computations, since its client began.")};
constexpr Field kRankListMembers[] = {Object("ranks", "RankShown").List()};
constexpr Field kGridCellMembers[] = {
    Integer("ranks").Says("Registered ones."),
    Number("lateness").Nullable().Says("Of the rank that is latest; null: no pace is known."),
    Integer("latest").Nullable().Says("That rank, or the first one."),
    Integer("refused").Says("Clock calls that GPUs refused."),
    Integer("complaining").Says("Ranks that report an error.")};
constexpr Field kGridRowMembers[] = {Object("cells", "GridCell").List().Says("Stage by stage.")};
constexpr Field kRankGridMembers[] = {
    Integer("pipelines"),
    Integer("stages"),
    Integer("tensor_parallel"),
    Integer("pipelines_each").Says("How many pipelines one row stands for."),
    Integer("stages_each").Says("How many ranks of a pipeline one column stands for."),
    Object("rows", "GridRow").List().Says("Pipeline by pipeline.")};
constexpr AnyMessage kRankGridSchemas[] = {
    {.name = "RankShown", .fields = kRankShownMembers, .base = "Rank"},
    {"RankList", kRankListMembers},
    {"GridCell", kGridCellMembers},
    {"GridRow", kGridRowMembers},
    {"RankGrid", kRankGridMembers}};

Json ShownJson(const RankNow& rank) {
  Json json = RankJson(rank.record);
  json["lateness"] = rank.lateness ? Json(*rank.lateness) : Json(nullptr);
  json["state"] = rank.client ? Json(rank.client->state) : Json(nullptr);
  if (!rank.client) return json;
  if (!rank.client->error.empty()) json["error"] = rank.client->error;
  json["plan_version"] = rank.client->plan_version;
  json["counts"] = rank.client->counts;
  return json;
}

http::Response ListRanks(ManagedJob& job, const Call& call) {
  const auto pipeline = QueryInteger(call.request, "pipeline");
  const auto stage = QueryInteger(call.request, "stage");
  Json ranks = Json::array();
  for (const RankNow& rank : job.RanksNow()) {
    if (pipeline && rank.record.dp_rank != *pipeline) continue;
    if (stage && rank.record.pp_rank != *stage) continue;
    ranks.push_back(ShownJson(rank));
  }
  return JsonAnswer(200, {{"ranks", std::move(ranks)}});
}

struct Cell {
  int ranks = 0;
  std::optional<double> lateness;
  std::optional<int> latest;
  std::int64_t refused = 0;
  int complaining = 0;

  void Add(const RankNow& rank) {
    ++ranks;
    if (!latest || (rank.lateness && rank.lateness > lateness)) latest = rank.record.rank;
    if (rank.lateness && (!lateness || *rank.lateness > *lateness)) lateness = rank.lateness;
    if (!rank.client) return;
    const auto found = rank.client->counts.find("refused");
    if (found != rank.client->counts.end()) refused += static_cast<std::int64_t>(found->second);
    complaining += rank.client->error.empty() ? 0 : 1;
  }

  Json ToJson() const {
    return {{"ranks", ranks},
            {"lateness", lateness ? Json(*lateness) : Json(nullptr)},
            {"latest", latest ? Json(*latest) : Json(nullptr)},
            {"refused", refused},
            {"complaining", complaining}};
  }
};

int DividedUp(int number, int by) { return (number + by - 1) / by; }

http::Response ShowGrid(ManagedJob& job, const Call& /*call*/) {
  const Shape& shape = job.shape();
  const int stages_each = DividedUp(shape.pipeline_parallel, kMostColumns);
  const int columns = DividedUp(shape.pipeline_parallel, stages_each);
  const int pipelines_each = DividedUp(shape.data_parallel, std::max(1, kMostCells / columns));
  const int rows = DividedUp(shape.data_parallel, pipelines_each);
  std::vector<std::vector<Cell>> cells(static_cast<std::size_t>(rows),
                                       std::vector<Cell>(static_cast<std::size_t>(columns)));
  for (const RankNow& rank : job.RanksNow()) {
    const auto row = static_cast<std::size_t>(rank.record.dp_rank / pipelines_each);
    const auto column = static_cast<std::size_t>(rank.record.pp_rank / stages_each);
    if (row < cells.size() && column < cells[row].size()) cells[row][column].Add(rank);
  }
  Json lists = Json::array();
  for (const std::vector<Cell>& row : cells) {
    Json list = Json::array();
    for (const Cell& cell : row) list.push_back(cell.ToJson());
    lists.push_back({{"cells", std::move(list)}});
  }
  return JsonAnswer(200, {{"pipelines", shape.data_parallel},
                          {"stages", shape.pipeline_parallel},
                          {"tensor_parallel", shape.tensor_parallel},
                          {"pipelines_each", pipelines_each},
                          {"stages_each", stages_each},
                          {"rows", std::move(lists)}});
}

}  // namespace

Schemas RankGridSchemas() { return kRankGridSchemas; }

void AddRankGridRoutes(RouteMaker* routes) {
  routes->OnLook(RowOf("listRanks"), ListRanks);
  routes->OnLook(RowOf("showRankGrid"), ShowGrid);
}

}  // namespace perseus::server
