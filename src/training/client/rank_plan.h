// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_RANK_PLAN_H_
#define PERSEUS_CLIENT_RANK_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/client.h"
#include "perseus/computation.h"
#include "perseus/result.h"
#include "wire/rank_plan.h"

namespace perseus::client {

// Limit of plans for single iterations that wait for their iteration.
inline constexpr std::size_t kMostStepPlans = 4;

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

using wire::PlanRow;

// The plan of one rank for its iterations. Version -1: the trainer's process made it for
// `iteration` only.
struct RankPlan : wire::RankPlan {
  std::int64_t iteration = 0;

  // Whether the plan is for the sequence lengths of one step, so that its durations are not those
  // of the profile.
  bool IsOfOneStep() const { return version < 0; }
};

// Whether both plans have the same computations in the same order.
bool SameOrder(const RankPlan& left, const RankPlan& right);

// Reads the server's answer (docs/explanation/server.md). Errors name the field.
Result<RankPlan> ParseRankPlan(std::string_view json);

// How finely clocks follow a plan: perseus_level of perseus/client.h.
enum class Level : std::uint8_t { kComputation, kPhase, kStage, kOff };

// The clock of each row; empty at kOff. A coarser level uses the highest clock of each group, so
// that no computation is slower than planned.
std::vector<int> ClocksAtLevel(const RankPlan& plan, Level level);

// "backward of stage 2, microbatch 5". Members that are -1 are left out.
std::string DescribeComputation(const ComputationId& id);

inline constexpr std::size_t kMostStepTimes = 65'536;

// When the device ran one computation, in nanoseconds since the begin of its step.
struct DeviceSpan {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// When the rows of a plan ran in an iteration, since it began.
struct RankTimeline {
  std::vector<DeviceSpan> rows;
  std::vector<int> changes;  // Rows before which the plan changes the clock.
};

// The device times of one iteration, from perseus_step_times(), in the order of its begin events.
struct StepTimes {
  std::int64_t iteration = 0;
  std::vector<DeviceSpan> computations;

  // Whether begins are ascending and no computation ends before it begins.
  bool InOrder() const {
    for (std::size_t i = 0; i < computations.size(); ++i) {
      if (computations[i].end_ns < computations[i].begin_ns) return false;
      if (i > 0 && computations[i].begin_ns < computations[i - 1].begin_ns) return false;
    }
    return true;
  }
};

// Makes a plan for one iteration from the trainer's rows. Errors: there are no rows or over 65,536,
// a row is invalid or names the computation of another row, or the iteration is negative.
Result<std::shared_ptr<const RankPlan>> StepPlanOf(std::int64_t iteration,
                                                   const perseus_step_row* rows,
                                                   std::size_t row_size, std::size_t count);

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_RANK_PLAN_H_
