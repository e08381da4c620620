// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/rank_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>
#include <variant>

#include "common/c_boundary.h"
#include "common/tree.h"
#include "common/tree_reader.h"
#include "perseus/computation.h"

namespace perseus::client {

namespace {

constexpr int kMaxMhz = 100'000;
constexpr NumberRange kSeconds = {.least = 0, .most = 1e6};

std::optional<ComputationType> TypeOfLetter(std::string_view letter) {
  for (int i = 0; i < kNumComputationTypes; ++i) {
    const auto type = static_cast<ComputationType>(i);
    if (letter.size() == 1 && letter.front() == ComputationTypeLetter(type)) return type;
  }
  return std::nullopt;
}

ComputationId ReadComputation(const TreeCursor& row, std::size_t at) {
  ComputationId id;
  const std::optional<ComputationType> type = TypeOfLetter(row.At(at).String());
  if (!type) row.At(at).FailExpected("F, B, I, W or R");
  id.type = type.value_or(ComputationType::kForward);
  id.stage = row.At(at + 1).Integer(0);
  id.microbatch = row.At(at + 2).Integer(0);
  return id;
}

// ["F", stage, microbatch, mhz, start, duration], fused: and "B", stage, microbatch.
PlanRow ReadRow(const TreeCursor& cursor) {
  PlanRow row;
  const std::size_t size = cursor.Size();
  if (size != 6 && size != 9) {
    cursor.FailExpected("6 values, or 9 of two computations that run as one");
    return row;
  }
  row.id = ReadComputation(cursor, 0);
  row.mhz = cursor.At(3).Integer(1, kMaxMhz);
  row.start_seconds = cursor.At(4).Number(kSeconds);
  row.duration_seconds = cursor.At(5).Number(kSeconds);
  if (size == 9) row.fused = ReadComputation(cursor, 6);
  return row;
}

double NumberOr(const TreeCursor& object, std::string_view key, double otherwise,
                NumberRange range = kAnyNumber) {
  const std::optional<TreeCursor> found = object.Find(key);
  return found && found->IsNumber() ? found->Number(range) : otherwise;
}

std::string TextOr(const TreeCursor& object, std::string_view key) {
  const std::optional<TreeCursor> found = object.Find(key);
  return found && found->IsString() ? found->String() : std::string();
}

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
  const std::string name = "the server's plan";
  const Result<TreeNode> tree = ParseJsonTree(json, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  RankPlan plan;
  const double version = root.Get("version").Number({.least = 0, .most = 9e15});
  plan.version = static_cast<std::int64_t>(version);
  if (static_cast<double>(plan.version) != version) {
    root.Get("version").FailExpected("a whole number");
  }
  plan.reason = TextOr(root, "reason");
  plan.sentence = TextOr(root, "sentence");
  plan.iteration_time_seconds = NumberOr(root, "iteration_time_s", 0, kSeconds);
  plan.baseline_time_seconds = NumberOr(root, "baseline_iteration_time_s", 0, kSeconds);
  plan.saving_percent = NumberOr(root, "saving_percent", kUnknown);
  if (const auto interval = root.Find("saving_interval"); interval && !interval->IsList()) {
    plan.saving_least_percent = NumberOr(*interval, "least_percent", kUnknown);
    plan.saving_most_percent = NumberOr(*interval, "most_percent", kUnknown);
  }
  if (const auto wanted = root.Find("profile_wanted");
      wanted && std::holds_alternative<bool>(wanted->node().value)) {
    plan.profile_wanted = wanted->Bool();
  }
  if (const auto comparison = root.Find("comparison"); comparison && !comparison->IsList()) {
    plan.comparison.every = comparison->Get("every").Integer(0, ComparisonBlocks::kMostEvery);
    plan.comparison.iterations =
        comparison->Get("iterations").Integer(0, ComparisonBlocks::kMostEvery);
    if (!plan.comparison.is_valid()) plan.comparison = {};
  }
  if (const auto waiting = root.Find("waiting_mhz"); waiting && waiting->IsNumber()) {
    plan.waiting_mhz = waiting->Integer(0, kMaxMhz);
  }
  const TreeCursor rows = root.Get("computations");
  const std::size_t size = rows.Size();
  plan.rows.reserve(size);
  for (std::size_t i = 0; i < size && !reader.failed(); ++i) {
    plan.rows.push_back(ReadRow(rows.At(i)));
  }
  if (reader.failed()) return tl::unexpected(*reader.error());
  return plan;
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
