// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROGRESS_H_
#define PERSEUS_PROGRESS_H_

// Link perseus::model (pkg-config: perseus-model).

#include <functional>

#include "perseus/export.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

struct FrontierEstimate;
struct Plan;

// The progress of a long computation while it runs.
struct Progress {
  double share = 0;  // Of the work, from 0 to 1.
  // The better plan that a search has just found. nullptr if there is none. Valid during the call
  // only.
  const Plan* better = nullptr;
  // The estimate of Planner::Create(), which tells it once, before it begins; else nullptr. Valid
  // during the call only.
  const FrontierEstimate* estimate = nullptr;
};

// Every callback of these headers has this type. It is called now and then, from the thread that
// called Perseus. True: go on. False: stop. A search for plans (PlanFor(), Ladder(), PlanUnder())
// then returns what it has found so far; everything else fails with kCancelled. An empty function
// never stops anything. Must not throw.
using ProgressFunction = std::function<bool(const Progress&)>;

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_PROGRESS_H_
