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
  double cost = 0;
  bool known = false;
  for (PerType& of : types_) {
    if (of.quiet.planned > 0) {
      const double ratio = of.quiet.measured / of.quiet.planned;
      of.ratio = of.ratio > 0 ? (of.ratio + ratio) / 2 : ratio;
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
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(size / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(size));
  share_ = std::max(0.0, *middle);
  if (count_ < kWindow || share_ <= max_share_) return false;
  Restart();
  return true;
}

void OverheadGuard::Restart() {
  for (PerType& of : types_) of.quiet = of.disturbed = {};
  count_ = 0;
  ignored_ = 0;
}

}  // namespace perseus::client
