// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <functional>

#include "client/follower.h"

namespace perseus::client {
namespace {

// Iterations of ten computations, 10 ms each as planned, three of which have a
// call under way; true where the guard says that calls cost too much.
bool Trips(OverheadGuard* guard, int iterations,
           const std::function<double(int iteration, bool during_call)>& milliseconds) {
  for (int i = 0; i < iterations; ++i) {
    double whole = 0;
    for (int k = 0; k < 10; ++k) {
      const bool during_call = k % 3 == 2;
      const double lasts = milliseconds(i, during_call) * 1e-3;
      guard->AddComputation(k % 2 == 0 ? ComputationType::kForward : ComputationType::kBackward,
                            0.010, lasts, during_call);
      whole += lasts;
    }
    if (guard->EndIteration(whole)) return true;
  }
  return false;
}

TEST(OverheadGuard, TripsWhereCallsCostMoreThanTheShare) {
  OverheadGuard guard(0.01);
  EXPECT_TRUE(Trips(&guard, 10, [](int, bool during) { return during ? 10.5 : 10.0; }));
}

TEST(OverheadGuard, DoesNotTripBelowTheShare) {
  OverheadGuard guard(0.01);
  EXPECT_FALSE(Trips(&guard, 100, [](int, bool during) { return during ? 10.2 : 10.0; }));
  EXPECT_NEAR(guard.share(), 0.006, 1e-3);
}

TEST(OverheadGuard, ASlowerGpuIsNotTheCallsFault) {
  OverheadGuard guard(0.01);
  EXPECT_FALSE(Trips(&guard, 100, [](int, bool) { return 13.0; }));
}

TEST(OverheadGuard, HeatThatComesAndGoesIsNotTheCallsFault) {
  OverheadGuard guard(0.01);
  EXPECT_FALSE(Trips(&guard, 200, [](int i, bool) { return i / 7 % 2 == 0 ? 10.0 : 12.0; }));
}

TEST(OverheadGuard, HeatIsSeenInTheOtherTypesToo) {
  // Backwards always have a call under way, but for the first iteration.
  OverheadGuard guard(0.01);
  for (int i = 0; i < 50; ++i) {
    const double lasts = i < 10 ? 0.010 : 0.012;
    for (int k = 0; k < 4; ++k) {
      guard.AddComputation(ComputationType::kForward, 0.010, lasts, false);
      guard.AddComputation(ComputationType::kBackward, 0.010, lasts, i > 0);
    }
    EXPECT_FALSE(guard.EndIteration(8 * lasts)) << i;
  }
}

TEST(OverheadGuard, ATypeThatIsAlwaysDisturbedIsHeldAgainstTheOthers) {
  OverheadGuard guard(0.01);
  bool tripped = false;
  for (int i = 0; i < 10; ++i) {
    for (int k = 0; k < 4; ++k) {
      guard.AddComputation(ComputationType::kForward, 0.010, 0.010, false);
      guard.AddComputation(ComputationType::kBackward, 0.010, 0.012, true);
    }
    tripped = tripped || guard.EndIteration(0.088);
  }
  EXPECT_TRUE(tripped);
}

TEST(OverheadGuard, OneBadIterationDoesNotCount) {
  OverheadGuard guard(0.01);
  EXPECT_FALSE(
      Trips(&guard, 100, [](int i, bool during) { return during && i % 5 == 0 ? 30.0 : 10.0; }));
}

}  // namespace
}  // namespace perseus::client
