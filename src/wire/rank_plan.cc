// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/rank_plan.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <string_view>

namespace perseus::wire {
namespace {

constexpr int kMostMhz = 100'000;
constexpr NumberRange kSeconds = {.least = 0, .most = 1e6};

// A row is ["F", stage, microbatch, mhz, start, duration], fused: and "B", stage, microbatch.
constexpr std::size_t kRowValues = 6;
constexpr std::size_t kFusedRowValues = 9;

void AppendComputation(const ComputationId& id, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "\"{}\",{},{}", ComputationTypeLetter(id.type), id.stage,
                 id.microbatch);
}

void AppendRows(const Field& /*field*/, const void* member, std::string* out) {
  *out += '[';
  for (const PlanRow& row : *static_cast<const std::vector<PlanRow>*>(member)) {
    *out += out->back() == '[' ? "[" : ",[";
    AppendComputation(row.id, out);
    fmt::format_to(std::back_inserter(*out), ",{},{:.9g},{:.9g}", row.mhz, row.start_seconds,
                   row.duration_seconds);
    if (row.fused) {
      *out += ',';
      AppendComputation(*row.fused, out);
    }
    *out += ']';
  }
  *out += ']';
}

ComputationId ReadComputation(const TreeCursor& row, std::size_t at) {
  ComputationId id = {.stage = row.At(at + 1).Integer(0), .microbatch = row.At(at + 2).Integer(0)};
  const std::string letter = row.At(at).String();
  for (int i = 0; i < kNumComputationTypes; ++i) {
    id.type = static_cast<ComputationType>(i);
    if (letter.size() == 1 && letter.front() == ComputationTypeLetter(id.type)) return id;
  }
  row.At(at).FailExpected("F, B, I, W or R");
  return {};
}

void ReadRows(const Field& /*field*/, const TreeCursor& at, void* member) {
  auto& rows = *static_cast<std::vector<PlanRow>*>(member);
  const std::size_t count = at.Size();
  rows.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const TreeCursor row = at.At(i);
    const std::size_t size = row.Size();
    if (size != kRowValues && size != kFusedRowValues) {
      return row.FailExpected("6 values, or 9 of two computations that run as one");
    }
    PlanRow& to = rows.emplace_back();
    to.id = ReadComputation(row, 0);
    to.mhz = row.At(3).Integer(1, kMostMhz);
    to.start_seconds = row.At(4).Number(kSeconds);
    to.duration_seconds = row.At(5).Number(kSeconds);
    if (size == kFusedRowValues) to.fused = ReadComputation(row, kRowValues);
  }
}

constexpr Field kSavingIntervalFields[] = {
    Value<&SavingInterval::least_percent>("least_percent").Says("As in plan.json."),
    Value<&SavingInterval::most_percent>("most_percent")};
constexpr Field kComparisonFields[] = {Value<&ComparisonBlocks::every>("every"),
                                       Value<&ComparisonBlocks::iterations>("iterations")};

// Clients need only what they read: a version and rows.
constexpr std::string_view kReasons[] = {"target", "straggler", "no_plan"};
constexpr Field kOfJobFields[] = {Value("job", [](const RankPlan& plan) { return plan.job; }),
                                  Value<&RankPlan::version>("version").In(kNotNegative)};
constexpr Message<RankPlan> kOfJob = {"", kOfJobFields};
constexpr Field kRowFields[] = {
    Value<&RankPlan::rows>("computations")
        .As(Kind::kArray)
        .WrittenBy(AppendRows)
        .ReadBy(ReadRows)
        .Says("In execution order: [type, stage, microbatch, MHz, start_s, duration_s], and of "
              "fused ones the type, stage and microbatch of the other."),
    Value<&RankPlan::waiting_mhz>("waiting_mhz")
        .As(Kind::kNumber)
        .Sometimes()
        .UnlessEmpty()
        .Says("The rank waits at this clock in gaps that are surely long enough for both calls.")};
constexpr Message<RankPlan> kRows = {"", kRowFields};
constexpr Field kSharedFields[] = {
    Value("pipeline", [](const RankPlan& plan) { return plan.pipeline; }),
    Value("pp_rank", [](const RankPlan& plan) { return plan.pp_rank; }),
    Value<&RankPlan::profile_wanted>("profile_wanted")
        .Sometimes()
        .Says("The ranks are to measure (PERSEUS_PROFILE), while they follow this plan."),
    Choice("reason", kReasons, [](const RankPlan& plan) { return plan.reason; }),
    Value<&RankPlan::sentence>("sentence").Sometimes().UnlessEmpty(),
    Value<&RankPlan::iteration_time_seconds>("iteration_time_s").Sometimes().UnlessEmpty(),
    Value<&RankPlan::requested_time_seconds>("requested_time_s").Sometimes().UnlessEmpty(),
    Value<&RankPlan::baseline_time_seconds>("baseline_iteration_time_s").Sometimes().UnlessEmpty(),
    Value<&RankPlan::saving_percent>("saving_percent").Sometimes(),
    Object<&RankPlan::saving_interval>("saving_interval", kSavingInterval).Sometimes(),
    Object<&RankPlan::comparison>("comparison", kComparison).Sometimes(),
    Base(kRows)};
constexpr Message<RankPlan> kShared = {"", kSharedFields};
constexpr Field kRankPlanFields[] = {
    Base(kOfJob), Value("rank", [](const RankPlan& plan) { return plan.rank; }), Base(kShared)};
constexpr Field kNodePlanFields[] = {Base(kOfJob), Value<&RankPlan::ranks>("ranks"), Base(kShared)};
constexpr Message<RankPlan> kNodePlan = {"NodePlan", kNodePlanFields};
constexpr Field kNodePlansFields[] = {Text("job"), Integer("version"),
                                      Object("plans", kNodePlan).List()};

void CheckPlan(const TreeCursor& at, RankPlan* plan) {
  if (plan->comparison && !plan->comparison->is_valid()) plan->comparison.reset();
  for (const std::string_view time : {"iteration_time_s", "baseline_iteration_time_s"}) {
    if (const auto found = FindSet(at, time)) found->Number(kSeconds);
  }
  if (const auto waiting = FindSet(at, "waiting_mhz")) waiting->Integer(0, kMostMhz);
}

}  // namespace

constexpr Message<SavingInterval> kSavingInterval = {"SavingInterval", kSavingIntervalFields};
constexpr Message<ComparisonBlocks> kComparison = {
    "Comparison", kComparisonFields,
    "Of every so many iterations, so many in one stretch run at default clocks; "
    "docs/how-to/savings.md says which."};
constexpr Message<RankPlan> kRankPlan =
    Message<RankPlan>("RankPlan", kRankPlanFields).Checked<CheckPlan>();
constexpr AnyMessage kNodePlans = {"NodePlans", kNodePlansFields};

std::string HeadText(const RankPlan& plan) {
  std::string text = plan.ranks.empty() ? Write(kRankPlan, plan) : Write(kNodePlan, plan);
  text.resize(text.size() - std::string_view("[]}").size());  // There are no rows.
  return text;
}

std::string RowsText(const RankPlan& plan) {
  return Write(kRows, plan).substr(std::string_view("{\"computations\":").size());
}

}  // namespace perseus::wire
