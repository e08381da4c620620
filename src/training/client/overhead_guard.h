// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_OVERHEAD_GUARD_H_
#define PERSEUS_CLIENT_OVERHEAD_GUARD_H_

#include <array>
#include <cstddef>

#include "perseus/computation.h"

namespace perseus::client {

// Decides whether clock calls cost too much training time. It divides the measured by the planned
// duration of each computation, and compares computations during which a call was under way with
// undisturbed ones of the same iterations. The difference is the cost of the calls, including that
// of late clocks. Effects of other ranks, of waiting, and of a GPU that is slower than its profile
// cancel out. A pure state machine; for one thread.
class OverheadGuard {
 public:
  explicit OverheadGuard(double max_share) : max_share_(max_share) {}

  // Adds a computation that has run, at its planned clock or another one.
  void AddComputation(ComputationType type, double planned_seconds, double measured_seconds,
                      bool during_call);

  // Returns true if calls cost more than the allowed share of the iteration time in all but one of
  // the last kWindow iterations. Then starts again from nothing.
  bool EndIteration(double iteration_seconds);

  // Drops what was added since the last EndIteration().
  void DropIteration();

  // To be called when the plan or the level changes.
  void Restart();

  double share() const { return share_; }  // Median over the newest iterations.

 private:
  static constexpr std::size_t kWindow = 5;
  static constexpr int kIgnored = 2;  // First iterations of a plan.

  struct Sums {
    double planned = 0;
    double measured = 0;
  };
  struct PerType {
    Sums quiet;
    Sums disturbed;
    double ratio = 0;  // Measured / planned time of undisturbed ones; 0: not known.
  };

  double max_share_;
  double share_ = 0;
  std::array<PerType, kNumComputationTypes> types_ = {};
  std::array<double, kWindow> shares_ = {};
  std::size_t count_ = 0;
  int ignored_ = 0;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_OVERHEAD_GUARD_H_
