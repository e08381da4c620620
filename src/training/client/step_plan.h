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

// A plan of one iteration as the trainer's process gave it. Errors: a row that makes no sense, or
// names what another one does, none, or more than 65,536, a negative iteration.
Result<std::shared_ptr<const RankPlan>> StepPlanOf(std::int64_t iteration,
                                                   const perseus_step_row* rows,
                                                   std::size_t row_size, std::size_t count);

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_STEP_PLAN_H_
