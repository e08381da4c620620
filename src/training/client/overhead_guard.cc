// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/overhead_guard.h"

#include <algorithm>

namespace perseus::client {

void OverheadGuard::AddComputation(ComputationType type, double planned_seconds,
                                   double measured_seconds, bool during_call) {
  if (!(planned_seconds > 0)) return;
  PerType& of = types_[static_cast<std::size_t>(type)];
  Sums& sums = during_call ? of.disturbed : of.quiet;
  sums.planned += planned_seconds;
  sums.measured += measured_seconds;
}

bool OverheadGuard::EndIteration(double iteration_seconds) {
  // How much slower or faster than before undisturbed computations are now, of any type: heat
  // and power limits slow all of them. 1 where none ran.
  double expected = 0;
  double measured = 0;
  Sums quiet;
  for (const PerType& of : types_) {
    quiet.planned += of.quiet.planned;
    quiet.measured += of.quiet.measured;
    if (of.ratio <= 0) continue;
    expected += of.ratio * of.quiet.planned;
    measured += of.quiet.measured;
  }
  const double drift = expected > 0 && measured > 0 ? measured / expected : 1;
  // Stands for types that never ran undisturbed.
  const double overall = quiet.planned > 0 ? quiet.measured / quiet.planned : 0;
  double cost = 0;
  bool known = false;
  for (PerType& of : types_) {
    if (of.quiet.planned > 0) {
      of.ratio = of.quiet.measured / of.quiet.planned;
    } else {
      of.ratio = of.ratio > 0 ? of.ratio * drift : overall;
    }
    if (of.ratio > 0) {
      known = true;
      cost += of.disturbed.measured - of.ratio * of.disturbed.planned;
    }
    of.quiet = of.disturbed = {};
  }
  if (!known || !(iteration_seconds > 0)) return false;
  if (ignored_ < kIgnored) {
    ++ignored_;
    return false;
  }
  shares_[count_ % kWindow] = cost / iteration_seconds;
  ++count_;
  const std::size_t size = std::min(count_, kWindow);
  std::array<double, kWindow> sorted = shares_;
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(size));
  share_ = std::max(0.0, sorted[size / 2]);
  // All but one of the window: a change of pace in between is no cost of calls.
  if (count_ < kWindow || sorted[1] <= max_share_) return false;
  Restart();
  return true;
}

void OverheadGuard::DropIteration() {
  for (PerType& of : types_) of.quiet = of.disturbed = {};
}

void OverheadGuard::Restart() {
  DropIteration();
  count_ = 0;
  ignored_ = 0;
}

}  // namespace perseus::client
