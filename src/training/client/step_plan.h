// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_STEP_PLAN_H_
#define PERSEUS_CLIENT_STEP_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/rank_plan.h"
#include "perseus/client.h"

namespace perseus::client {

// Makes a plan for one iteration from the trainer's rows. Null: there are no rows or over 65,536,
// or some are invalid.
std::shared_ptr<const RankPlan> StepPlanOf(std::int64_t iteration, const perseus_step_row* rows,
                                           std::size_t count);

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_STEP_PLAN_H_
