// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What a client without a plan counts.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "client/shared_state.h"

namespace perseus::client {
namespace {

using enum ComputationType;

void Iterate(Tally* tally, const std::vector<ComputationId>& computations, std::uint64_t lost = 0,
             EventKind end = EventKind::kStepEnd) {
  tally->Handle({.kind = EventKind::kStepBegin}, 0);
  for (const ComputationId& id : computations) {
    tally->Handle({.kind = EventKind::kBegin, .type = id.type, .stage = id.stage}, 0);
    tally->Handle({.kind = EventKind::kEnd, .type = id.type, .stage = id.stage}, 0);
  }
  tally->Handle({.kind = end}, lost);
}

const std::vector<ComputationId> kTwoAndOne = {
    {kForward, 3, 0}, {kForward, 3, 1}, {kBackward, 3, 0}};

TEST(Tally, KnowsWhatTwoIterationsInARowRun) {
  Tally tally;
  Iterate(&tally, kTwoAndOne);
  EXPECT_FALSE(tally.counts());
  Iterate(&tally, kTwoAndOne);
  EXPECT_EQ(tally.counts(), (ComputationCounts{{{kForward, 3}, 2}, {{kBackward, 3}, 1}}));
  // An odd one says nothing new; two do.
  Iterate(&tally, {});
  EXPECT_EQ(tally.counts()->size(), 2U);
  Iterate(&tally, {});
  EXPECT_EQ(tally.counts(), ComputationCounts{});
}

TEST(Tally, LeavesOutWhatIsNotWhole) {
  Tally tally;
  for (int i = 0; i < 3; ++i) {
    Iterate(&tally, kTwoAndOne, /*lost=*/1);
    Iterate(&tally, kTwoAndOne, 0, EventKind::kStepAbandon);
    tally.Handle({.kind = EventKind::kStepBegin, .stage = kUnheard}, 0);
    tally.Handle({.kind = EventKind::kStepEnd}, 0);
    tally.Handle({.kind = EventKind::kStepBegin}, 0);
    tally.Skip();
    tally.Handle({.kind = EventKind::kStepEnd}, 0);
  }
  EXPECT_FALSE(tally.counts());
}

}  // namespace
}  // namespace perseus::client
