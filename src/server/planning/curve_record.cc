// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/curve_record.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/json_text.h"
#include "common/tree.h"
#include "common/tree_reader.h"

namespace perseus::server {
namespace {

constexpr std::int64_t kMostSeeds = 1000;
constexpr std::int64_t kMostIterationsOfASeed = 1'000'000;
// Of a row that was written when conditions could be no ranges.
constexpr std::size_t kSizeBeforeRanges = 12;

using Json = nlohmann::ordered_json;
Json ExpectedJson(std::int64_t id, const ExpectedFigures& figures) {
  return {id,
          figures.iteration_time_seconds,
          figures.iteration_time_spread_seconds,
          figures.energy_joules,
          figures.energy_spread_joules,
          figures.slowdown_percent,
          figures.slowdown_spread_percent,
          figures.saving_percent,
          figures.saving_spread_percent,
          figures.clock_calls,
          figures.seeds,
          figures.iterations,
          figures.most_slowdown_percent,
          figures.least_saving_percent};
}

ExpectedFigures ReadExpected(const TreeCursor& row) {
  ExpectedFigures figures;
  figures.iteration_time_seconds = row.At(1).Number();
  figures.iteration_time_spread_seconds = row.At(2).Number();
  figures.energy_joules = row.At(3).Number();
  figures.energy_spread_joules = row.At(4).Number();
  figures.slowdown_percent = row.At(5).Number();
  figures.slowdown_spread_percent = row.At(6).Number();
  figures.saving_percent = row.At(7).Number();
  figures.saving_spread_percent = row.At(8).Number();
  figures.clock_calls = row.At(9).Number();
  figures.seeds = static_cast<int>(row.At(10).Integer(1, kMostSeeds));
  figures.iterations = static_cast<int>(row.At(11).Integer(1, kMostIterationsOfASeed));
  const bool has_corners = row.Size() > kSizeBeforeRanges;
  figures.most_slowdown_percent = has_corners ? row.At(12).Number() : figures.slowdown_percent;
  figures.least_saving_percent = has_corners ? row.At(13).Number() : figures.saving_percent;
  return figures;
}

}  // namespace

std::string FrontierText(const Frontier& frontier, const std::string& target,
                         const ExpectedOfAll& expected) {
  Json points = Json::array();
  for (const FrontierPoint& point : frontier.points) {
    points.push_back({point.iteration_time_seconds, point.energy_joules, point.slope_watts});
  }
  Json json = {{"target", target},
               {"fastest_s", frontier.fastest_seconds},
               {"economic_s", frontier.economic_seconds},
               {"tstar_s", frontier.tstar_seconds},
               {"certified_error", frontier.certified_error},
               {"fitted", frontier.fitted},
               {"slope_quantum_w", frontier.slope_quantum_watts},
               {"blocking_power_w", frontier.total_blocking_power_watts},
               {"points", std::move(points)}};
  if (expected.baseline) {
    Json rows = Json::array({ExpectedJson(0, *expected.baseline)});
    for (const auto& [id, figures] : expected.plans) rows.push_back(ExpectedJson(id, figures));
    json["expected"] = std::move(rows);
    if (!expected.wait_cheaply.empty()) json["wait_cheaply"] = expected.wait_cheaply;
  }
  return FormatCompact(json);
}

Result<Frontier> ParseFrontier(const std::string& text, std::string* target,
                               ExpectedOfAll* expected) {
  const std::string name = "frontier";
  const Result<TreeNode> tree = ParseJsonTree(text, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  *target = root.Get("target").String();
  Frontier frontier;
  frontier.fastest_seconds = root.Get("fastest_s").Number();
  frontier.economic_seconds = root.Get("economic_s").Number();
  frontier.tstar_seconds = root.Get("tstar_s").Number();
  frontier.certified_error = root.Get("certified_error").Number();
  frontier.fitted = root.Get("fitted").Bool();
  frontier.slope_quantum_watts = root.Get("slope_quantum_w").Number();
  frontier.total_blocking_power_watts = root.Get("blocking_power_w").Number();
  const TreeCursor points = root.Get("points");
  const std::size_t count = points.Size();
  for (std::size_t i = 0; i < count && !reader.failed(); ++i) {
    const TreeCursor point = points.At(i);
    frontier.points.push_back({point.At(0).Number(), point.At(1).Number(), point.At(2).Number()});
  }
  if (const auto rows = root.Find("expected")) {
    const std::size_t rows_count = rows->Size();
    for (std::size_t i = 0; i < rows_count && !reader.failed(); ++i) {
      const TreeCursor row = rows->At(i);
      const std::int64_t id = row.At(0).Integer(0);
      if (id == 0) {
        expected->baseline = ReadExpected(row);
      } else {
        expected->plans[id] = ReadExpected(row);
      }
    }
  }
  if (const auto ids = root.Find("wait_cheaply")) {
    const std::size_t ids_count = ids->Size();
    for (std::size_t i = 0; i < ids_count && !reader.failed(); ++i) {
      expected->wait_cheaply.insert(ids->At(i).Integer(1));
    }
  }
  if (reader.failed()) return tl::unexpected(*reader.error());
  return frontier;
}

store::PlanRecord PlanRecordOf(const Plan& plan, std::int64_t id) {
  store::PlanRecord record;
  record.id = id;
  record.requested_time_seconds = plan.requested_time_seconds;
  record.knobs.reserve(plan.options.size());
  for (const CostOption& option : plan.options) record.knobs.push_back(option.knob);
  return record;
}

store::CurveRecord MakeCurveRecord(const std::string& job, int revision, const std::string& target,
                                   const Frontier& frontier, const HeldPlans& plans,
                                   std::int64_t first_id) {
  store::CurveRecord record;
  record.job = job;
  record.revision = revision;
  ExpectedOfAll expected;
  expected.baseline = plans.baseline;
  for (const HeldPlan& held : plans.plans) {
    expected.Add(first_id, held.plan.waiting, held.expected);
    record.plans.push_back(PlanRecordOf(held.plan, first_id++));
  }
  record.frontier_json = FrontierText(frontier, target, expected);
  return record;
}

}  // namespace perseus::server
