// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/rank_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "common/c_boundary.h"
#include "perseus/computation.h"

namespace perseus::client {

namespace {

// If fused, the forward is first.
bool IsForward(const PlanRow& row) { return row.id.type == ComputationType::kForward; }

// The begin of the steady phase (the first computation that is no forward) and its end (after the
// last forward): the warm-up is before, the cool-down after it.
std::pair<std::size_t, std::size_t> SteadyRows(const std::vector<PlanRow>& rows) {
  const auto first = std::find_if(rows.begin(), rows.end(),
                                  [](const PlanRow& row) { return !IsForward(row) || row.fused; });
  const auto last = std::find_if(rows.rbegin(), rows.rend(), IsForward);
  const auto begin = static_cast<std::size_t>(first - rows.begin());
  return {begin, std::max(begin, static_cast<std::size_t>(rows.rend() - last))};
}

}  // namespace

Result<RankPlan> ParseRankPlan(std::string_view json) {
  Result<wire::RankPlan> plan = wire::Parse(wire::kRankPlan, json, "the server's plan");
  if (!plan) return tl::unexpected(std::move(plan).error());
  return RankPlan{*std::move(plan)};
}

bool SameOrder(const RankPlan& left, const RankPlan& right) {
  return std::equal(
      left.rows.begin(), left.rows.end(), right.rows.begin(), right.rows.end(),
      [](const PlanRow& a, const PlanRow& b) { return a.id == b.id && a.fused == b.fused; });
}

std::vector<int> ClocksAtLevel(const RankPlan& plan, Level level) {
  std::vector<int> clocks;
  if (level == Level::kOff) return clocks;
  clocks.reserve(plan.rows.size());
  for (const PlanRow& row : plan.rows) clocks.push_back(row.mhz);
  const auto level_out = [&](std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    const auto first = clocks.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = clocks.begin() + static_cast<std::ptrdiff_t>(end);
    std::fill(first, last, *std::max_element(first, last));
  };
  if (level == Level::kPhase) {
    const auto [begin, end] = SteadyRows(plan.rows);
    level_out(0, begin);
    level_out(begin, end);
    level_out(end, clocks.size());
  } else if (level == Level::kStage) {
    level_out(0, clocks.size());
  }
  return clocks;
}

std::string DescribeComputation(const ComputationId& id) {
  std::string text(ComputationTypeName(id.type));
  if (id.stage >= 0) text += fmt::format(" of stage {}", id.stage);
  if (id.microbatch >= 0) text += fmt::format(", microbatch {}", id.microbatch);
  return text;
}

namespace {

constexpr double kLongestSeconds = 1e9;

Result<PlanRow> RowOf(const perseus_step_row& row) {
  const auto is_type = [](std::int32_t type) { return type >= 0 && type < kNumComputationTypes; };
  const auto is_time = [](double seconds) { return seconds >= 0 && seconds < kLongestSeconds; };
  if (!is_type(row.type) || row.stage < 0 || row.microbatch < 0) {
    return InvalidInput(fmt::format("type {}, stage {}, microbatch {} name no computation",
                                    row.type, row.stage, row.microbatch));
  }
  if (row.clock_mhz <= 0) return InvalidInput(fmt::format("{} MHz is no clock", row.clock_mhz));
  if (!is_time(row.start_seconds) || !is_time(row.duration_seconds)) {
    return InvalidInput(fmt::format("{} s from {} s on are no times of an iteration",
                                    row.duration_seconds, row.start_seconds));
  }
  if (row.reserved != 0) return InvalidInput("'reserved' is not 0");
  PlanRow known;
  known.id = {static_cast<ComputationType>(row.type), row.stage, row.microbatch};
  if (row.fused_type != -1) {
    if (!is_type(row.fused_type) || row.fused_stage < 0 || row.fused_microbatch < 0) {
      return InvalidInput(
          fmt::format("fused type {}, stage {}, microbatch {} name no computation; give type -1 "
                      "where none is fused",
                      row.fused_type, row.fused_stage, row.fused_microbatch));
    }
    known.fused = {static_cast<ComputationType>(row.fused_type), row.fused_stage,
                   row.fused_microbatch};
  }
  known.mhz = row.clock_mhz;
  known.start_seconds = row.start_seconds;
  known.duration_seconds = row.duration_seconds;
  return known;
}

tl::unexpected<Error> WrongRow(std::size_t i, Error error) {
  error.message = fmt::format("row {}: {}", i, error.message);
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace

Result<std::shared_ptr<const RankPlan>> StepPlanOf(std::int64_t iteration,
                                                   const perseus_step_row* rows,
                                                   std::size_t row_size, std::size_t count) {
  if (iteration < 0) {
    return InvalidInput(
        fmt::format("iteration {}: iterations with a plan count from 0", iteration));
  }
  if (rows == nullptr || count == 0 || count > kMostStepTimes) {
    return InvalidInput(
        fmt::format("{} rows; expected 1 to {}", rows == nullptr ? 0 : count, kMostStepTimes));
  }
  constexpr const char* kName = "perseus_step_row";
  const auto size = c_boundary::CheckSize(kName, row_size, alignof(perseus_step_row));
  if (!size) return tl::unexpected(size.error());
  auto plan = std::make_shared<RankPlan>();
  plan->version = -1;
  plan->iteration = iteration;
  std::set<ComputationId> seen;
  for (std::size_t i = 0; i < count; ++i) {
    const auto given = c_boundary::CopyElement(kName, rows, row_size, i);
    if (!given) return WrongRow(i, given.error());
    const Result<PlanRow> row = RowOf(*given);
    if (!row) return WrongRow(i, row.error());
    const bool is_new =
        seen.insert(row->id).second && (!row->fused || seen.insert(*row->fused).second);
    if (!is_new) {
      return WrongRow(
          i, {ErrorCode::kInvalidInput, "a computation of it is in a row before; give each once"});
    }
    plan->rows.push_back(*row);
  }
  plan->iteration_time_seconds =
      plan->rows.back().start_seconds + plan->rows.back().duration_seconds;
  return std::shared_ptr<const RankPlan>(std::move(plan));
}

}  // namespace perseus::client
