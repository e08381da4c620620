// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_WIRE_RANK_PLAN_H_
#define PERSEUS_WIRE_RANK_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/comparison_blocks.h"
#include "perseus/computation.h"
#include "wire/message.h"

// What the server tells a rank to run. The relay passes it on as it is.
namespace perseus::wire {

// One computation of a rank, or two that its schedule runs as one.
struct PlanRow {
  ComputationId id = {};
  std::optional<ComputationId> fused = {};
  int mhz = 0;
  double start_seconds = 0;  // Planned start, since the begin of the iteration.
  double duration_seconds = 0;
};

// Between these lies the saving of a plan with a probability of 95 %.
struct SavingInterval {
  double least_percent = 0;
  double most_percent = 0;
};

// The plan of one rank for its iterations, or of several ranks that run the same.
struct RankPlan {
  std::string job = {};
  std::int64_t version = 0;
  int rank = 0;
  std::vector<int> ranks = {};  // In place of `rank`, of a NodePlan.
  int pipeline = 0;
  int pp_rank = 0;
  bool profile_wanted = false;  // The server wants the clocks swept (again).
  std::string reason = {};      // "target", "straggler", "no_plan"
  std::string sentence = {};    // Why there is no plan.
  double iteration_time_seconds = 0;
  double requested_time_seconds = 0;
  double baseline_time_seconds = 0;
  std::optional<double> saving_percent = {};  // None: not known, or nothing to believe.
  std::optional<SavingInterval> saving_interval = {};
  // Iterations that run at default clocks to measure the saving.
  std::optional<ComparisonBlocks> comparison = {};
  std::vector<PlanRow> rows = {};  // In order of execution; empty: maximum clocks.
  int waiting_mhz = 0;  // The clock at which the rank waits within an iteration; 0: none is set.
};

extern const Message<SavingInterval> kSavingInterval;
extern const Message<ComparisonBlocks> kComparison;
extern const Message<RankPlan> kRankPlan;
extern const AnyMessage kNodePlans;  // The plans of several ranks. In the schema only.

// The text of a plan in two parts: all ranks with the same `rows` share that of the second, which
// is most of it.
std::string HeadText(const RankPlan& plan);
std::string RowsText(const RankPlan& plan);

}  // namespace perseus::wire

#endif  // PERSEUS_WIRE_RANK_PLAN_H_
