// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/step_plan.h"

#include <optional>

#include "client/step_times.h"
#include "perseus/computation.h"

namespace perseus::client {
namespace {

constexpr double kLongestSeconds = 1e9;

// None: it makes no sense.
std::optional<PlanRow> RowOf(const perseus_step_row& row) {
  const auto is_type = [](std::int32_t type) { return type >= 0 && type < kNumComputationTypes; };
  if (!is_type(row.type) || row.stage < 0 || row.microbatch < 0 || row.clock_mhz <= 0 ||
      !(row.start_seconds >= 0 && row.start_seconds < kLongestSeconds) ||
      !(row.duration_seconds >= 0 && row.duration_seconds < kLongestSeconds)) {
    return std::nullopt;
  }
  PlanRow known;
  known.action = {static_cast<ComputationType>(row.type), row.stage, row.microbatch};
  if (row.fused_type >= 0) {
    if (!is_type(row.fused_type) || row.fused_stage < 0 || row.fused_microbatch < 0) {
      return std::nullopt;
    }
    known.fused = {static_cast<ComputationType>(row.fused_type), row.fused_stage,
                   row.fused_microbatch};
  }
  known.mhz = row.clock_mhz;
  known.start_seconds = row.start_seconds;
  known.duration_seconds = row.duration_seconds;
  return known;
}

}  // namespace

std::shared_ptr<const RankPlan> StepPlanOf(std::int64_t iteration, const perseus_step_row* rows,
                                           std::size_t count) {
  if (rows == nullptr || count == 0 || count > kMostStepTimes) return nullptr;
  auto plan = std::make_shared<RankPlan>();
  plan->version = -1;
  plan->iteration = iteration;
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<PlanRow> row = RowOf(rows[i]);
    if (!row) return nullptr;
    plan->rows.push_back(*row);
  }
  plan->iteration_time_seconds =
      plan->rows.back().start_seconds + plan->rows.back().duration_seconds;
  return plan;
}

}  // namespace perseus::client
