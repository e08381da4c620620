// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/frontier_effort.h"

#include <fmt/format.h>

#include "plan/limits.h"

namespace perseus::plan {

double CoarsenUntilQuick(double quantum, const EstimateOf& estimate_of) {
  constexpr double kQuickSeconds = 120;
  // Steps of 1/11 of the mean power at the highest clock: coarser ones bound
  // nothing worth knowing.
  constexpr int kMostDoublings = 4;
  for (int doubling = 0; doubling < kMostDoublings; ++doubling) {
    if (estimate_of(quantum).seconds <= kQuickSeconds) break;
    quantum *= 2;
  }
  return quantum;
}

Result<void> CheckFrontierEffort(int computations, const FrontierEstimate& estimate) {
  constexpr double kSecondsPerHour = 3600;
  const bool fits = estimate.seconds <= kMostFrontierSeconds;
  if (fits && estimate.bytes <= kMostFrontierBytes) return {};
  return MakeError(
      ErrorCode::kOverflow,
      fmt::format("the frontier of {} computations would take about {:.2g} h and {:.2g} GB, more "
                  "than the {:.0f} h and {:.0f} GB that are allowed; plan fewer microbatches, of "
                  "which the steady ones repeat, or let slopes be rounded to more watts",
                  computations, estimate.seconds / kSecondsPerHour, estimate.bytes / 1e9,
                  kMostFrontierSeconds / kSecondsPerHour, kMostFrontierBytes / 1e9));
}

}  // namespace perseus::plan
