// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_STEP_PLAN_H_
#define PERSEUS_CLIENT_STEP_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/rank_plan.h"
#include "perseus/client.h"
#include "perseus/result.h"

namespace perseus::client {

// Makes a plan for one iteration from the trainer's rows. Errors: there are no rows or over 65,536,
// a row is invalid or names the computation of another row, or the iteration is negative.
Result<std::shared_ptr<const RankPlan>> StepPlanOf(std::int64_t iteration,
                                                   const perseus_step_row* rows,
                                                   std::size_t row_size, std::size_t count);

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_STEP_PLAN_H_
