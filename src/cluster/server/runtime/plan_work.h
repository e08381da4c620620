// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_PLAN_WORK_H_
#define PERSEUS_SERVER_RUNTIME_PLAN_WORK_H_

#include <functional>

#include "server/runtime/managed_job.h"
#include "store/store.h"

namespace perseus::server {

// Computes one step of what the job lacks: a curve, a better one, the plan for its target. Waits
// for the store, so it is for threads that plan. `keep_going` false: nobody wants it any more, or
// somebody else does it. Returns whether that is settled; false: it should be tried again soon.
bool WorkOnPlans(ManagedJob& job, store::Store& store, const std::function<bool()>& keep_going);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_PLAN_WORK_H_
