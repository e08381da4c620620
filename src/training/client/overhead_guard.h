// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_OVERHEAD_GUARD_H_
#define PERSEUS_CLIENT_OVERHEAD_GUARD_H_

#include <array>
#include <cstddef>

#include "perseus/computation.h"

namespace perseus::client {

// Whether clock calls cost training time. Computations during which a call was
// under way are compared with those that ran undisturbed in the same
// iterations, each against its planned duration: what the former took longer is
// the cost of the calls (that of clocks that came late included). Other ranks,
// waiting and a GPU that is slower than its profile drop out of that ratio.
// A pure function of what it is given. One thread.
class OverheadGuard {
 public:
  explicit OverheadGuard(double max_share) : max_share_(max_share) {}

  // A computation that ran, at its planned clock or not.
  void AddComputation(ComputationType type, double planned_seconds, double measured_seconds,
                      bool during_call);

  // True where calls cost too much: more than the stated share of the iteration in
  // all but one of kWindow iterations. Begins anew then.
  bool EndIteration(double iteration_seconds);

  // What was added since the last EndIteration() does not count.
  void DropIteration();

  // After another plan, or another level.
  void Restart();

  double share() const { return share_; }  // Of the newest iterations, median.

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
    double ratio = 0;  // Measured over planned when undisturbed; 0: not known.
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
