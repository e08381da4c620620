// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/rank_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <utility>
#include <vector>

namespace perseus::trace {
namespace {

// Before() by its definition.
int Scanned(const std::vector<Operation>& all, int operation) {
  const Operation& of = all[operation];
  int found = -1;
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    if (std::pair(all[i].start_seconds, i) >= std::pair(of.start_seconds, operation)) continue;
    if (all[i].end_seconds() > of.start_seconds + 1e-4) continue;
    if (found < 0 || all[i].end_seconds() > all[found].end_seconds()) found = i;
  }
  return found;
}

// Many begin or end together, some within the rounding of host and device.
RC_GTEST_PROP(RankOrderTest, FindsWhatAScanFinds, ()) {
  Recording recording;
  const int size = *rc::gen::inRange(1, 40);
  for (int i = 0; i < size; ++i) {
    Operation operation;
    operation.start_seconds = 0.5e-4 * *rc::gen::inRange(0, 12);
    operation.duration_seconds = 0.5e-4 * *rc::gen::inRange(0, 5);
    recording.operations.push_back(operation);
  }
  recording.first_of = {0, size};
  const RankOrder order(recording, 0);
  for (int i = 0; i < size; ++i) RC_ASSERT(order.Before(i) == Scanned(recording.operations, i));
}

TEST(RankOrderTest, FirstOfARankHasNothingBefore) {
  Recording recording;
  recording.operations.resize(2);
  recording.operations[1].start_seconds = 1;
  recording.first_of = {0, 2};
  EXPECT_EQ(RankOrder(recording, 0).Before(0), -1);
  EXPECT_EQ(RankOrder(recording, 0).Before(1), 0);
}

}  // namespace
}  // namespace perseus::trace
