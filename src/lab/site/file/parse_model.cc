// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/csv_records.h"
#include "common/located_error.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "site/site.h"

// Jobs of which there are only files that Perseus has written.
namespace perseus::site {
namespace {

constexpr std::array<std::string_view, 2> kFrontierColumns = {"iteration_time_s", "energy_j"};

Parsed<std::vector<IterationPoint>> ReadPoints(std::string_view text) {
  CsvRecords records(text);
  CsvRecord record;
  auto more = records.Next(&record);
  if (!more) return tl::unexpected(more.error());
  for (std::size_t k = 0; k < kFrontierColumns.size(); ++k) {
    if (!*more || record.cells.size() <= k || record.cells[k].text != kFrontierColumns[k]) {
      return ProblemAt(0,
                       "expected the columns iteration_time_s,energy_j,slope_w of a frontier "
                       "that 'perseus plan' or 'perseus frontier' has written");
    }
  }
  std::vector<IterationPoint> points;
  while (true) {
    more = records.Next(&record);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    std::array<double, 2> values = {};
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (record.cells.size() <= k) {
        return ProblemAt(record.offset, "expected a time and an energy in each row");
      }
      const Number number = ParseNumber(record.cells[k].text);
      if (number.kind != NumberKind::kFinite || number.value < 0) {
        return ProblemAt(
            record.cells[k].offset,
            fmt::format("expected a number of at least 0, found {}", Shown(record.cells[k].text)));
      }
      values[k] = number.value;
    }
    if (values[0] <= (points.empty() ? 0 : points.back().time_seconds)) {
      return ProblemAt(record.cells[0].offset, "expected times above 0 that grow from row to row");
    }
    points.push_back({values[0], values[1]});
  }
  if (points.empty()) return ProblemAt(text.size(), "the frontier has no row");
  return points;
}

}  // namespace

Result<SharedModel> ParseModel(std::string_view plan_json, const std::string& plan_name,
                               std::string_view frontier_csv, const std::string& frontier_name) {
  const Result<PlanDocument> plan = ParsePlanJson(plan_json, plan_name);
  if (!plan) return tl::unexpected(plan.error());
  if (plan->exponential_fit) {
    return InvalidInput(
        fmt::format("{}: it was made with the cost curve 'exponential', whose frontier bounds "
                    "nothing; plan the job again without it",
                    plan_name));
  }
  auto points = ReadPoints(frontier_csv);
  if (!points) {
    const TextPosition at = PositionOf(frontier_csv, points.error().offset);
    return InvalidAt(frontier_name, static_cast<int>(at.line), static_cast<int>(at.column),
                     points.error().message);
  }
  JobModel model;
  model.frontier = *std::move(points);
  model.full_speed = {plan->baseline.iteration_time_seconds, plan->baseline.energy_joules};
  for (const PlannedRank& rank : plan->ranks) {
    model.waiting_watts += rank.blocking_power_watts * plan->tensor_parallel;
  }
  model.gpus = static_cast<int>(plan->ranks.size()) * plan->tensor_parallel;
  model.pipelines = plan->data_parallel;
  return SharedModel(std::make_shared<const JobModel>(std::move(model)));
}

}  // namespace perseus::site
