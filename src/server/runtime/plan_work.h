// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_PLAN_WORK_H_
#define PERSEUS_SERVER_RUNTIME_PLAN_WORK_H_

#include <functional>

#include "server/runtime/managed_job.h"
#include "server/store/store.h"

namespace perseus::server {

// Computes one planning step of the job: a first curve, a better one, or the plan for its target.
// Waits for the store, so only planning threads may call it. Stops when `keep_going` returns false:
// the result is not wanted any more, or another server computes it. Returns whether the step is
// settled; false: try again soon.
bool WorkOnPlans(ManagedJob& job, store::Store& store, const std::function<bool()>& keep_going);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_PLAN_WORK_H_
