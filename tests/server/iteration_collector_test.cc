// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "server/detect/job_watch.h"

namespace perseus::server {
namespace {

struct Said {
  int rank = 0;
  std::int64_t iteration = 0;
};
using Collector = IterationCollector<Said>;

// The numbers of what is complete, and how many ranks each has.
std::vector<std::pair<std::int64_t, std::size_t>> TakeAll(Collector* collector, double now) {
  std::vector<std::pair<std::int64_t, std::size_t>> taken;
  Collector::Complete complete;
  while (collector->Take(now, &complete)) {
    taken.emplace_back(complete.first, complete.second.size());
  }
  return taken;
}

using Taken = std::vector<std::pair<std::int64_t, std::size_t>>;

TEST(IterationCollectorTest, BatchesOfRanksBecomeIterations) {
  Collector collector;
  collector.Expect(2);
  for (int i = 5; i < 8; ++i) collector.Add({0, i}, 0);
  EXPECT_EQ(TakeAll(&collector, 0), Taken{});
  for (int i = 5; i < 7; ++i) collector.Add({1, i}, 1);
  EXPECT_EQ(TakeAll(&collector, 1), (Taken{{5, 2}, {6, 2}}));
  collector.Add({1, 6}, 1);  // Sent again.
  collector.Add({1, 7}, 1);
  EXPECT_EQ(TakeAll(&collector, 1), (Taken{{7, 2}}));
}

TEST(IterationCollectorTest, ARankThatIsSilentIsWaitedForAndThenNot) {
  Collector collector;
  collector.Expect(2);
  collector.Add({0, 0}, 0);
  collector.Add({1, 0}, 0);
  EXPECT_EQ(TakeAll(&collector, 0), (Taken{{0, 2}}));
  collector.Add({0, 1}, 1);
  EXPECT_EQ(TakeAll(&collector, 1), Taken{});
  EXPECT_EQ(TakeAll(&collector, 17), (Taken{{1, 1}}));
  std::size_t taken = 0;
  for (int i = 2; i < 200; ++i) {
    collector.Add({0, i}, 20);
    taken += TakeAll(&collector, 20).size();
  }
  EXPECT_EQ(taken, 198U);  // After 64 iterations nobody waits for it.
}

TEST(IterationCollectorTest, TrainingThatGoesBackBeginsAnew) {
  Collector collector;
  collector.Expect(1);
  for (int i = 0; i < 300; ++i) collector.Add({0, i}, 0);
  EXPECT_EQ(TakeAll(&collector, 0).size(), 300U);
  EXPECT_TRUE(collector.Add({0, 100}, 1));
  EXPECT_EQ(TakeAll(&collector, 1), (Taken{{100, 1}}));
}

TEST(IterationCollectorTest, ManyAtOnceComeInOrder) {
  Collector collector;
  collector.Expect(2);
  for (int i = 0; i < 100'000; ++i) collector.Add({0, i}, 0);
  collector.Add({1, 99'999}, 0);
  const Taken taken = TakeAll(&collector, 0);
  EXPECT_EQ(taken.front(), (std::pair<std::int64_t, std::size_t>{0, 1}));
  EXPECT_EQ(taken.back(), (std::pair<std::int64_t, std::size_t>{99'999, 2}));
}

}  // namespace
}  // namespace perseus::server
