// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What clients say of themselves that cannot be right.

#include "server/detect/rank_watch.h"

#include <gtest/gtest.h>

#include <string>

namespace perseus::server {
namespace {

using enum ComputationType;

ClientReport From(const std::string& client, const std::string& state = "waiting", int rank = 0) {
  return {.rank = rank, .client = client, .process = "process " + client, .state = state};
}

TEST(RankWatch, SeesTwoProcessesThatSpeakInTurnForOneRank) {
  RankWatch watch;
  double now = 100;
  const auto hear = [&](const std::string& client) { watch.Hear(From(client), 1, now += 5); };
  hear("a");
  hear("b");
  EXPECT_EQ(watch.OtherOf(From("b"), now), "");  // A restart looks the same.
  hear("a");
  EXPECT_EQ(watch.OtherOf(From("a"), now), "");  // What was on its way when it ended.
  hear("b");
  EXPECT_EQ(watch.OtherOf(From("a"), now), "process b");
  EXPECT_EQ(watch.OtherOf(From("b"), now), "process a");
  EXPECT_EQ(watch.OtherOf(From("a", "waiting", 1), now), "");  // Another rank.
  // One of them ends, or is silent for long.
  RankWatch ends = watch;
  ends.Hear(From("a", kClosedState), 0, now);
  EXPECT_EQ(ends.OtherOf(From("b"), now), "");
  now += RankWatch::kSilentSeconds - 10;
  hear("b");
  EXPECT_EQ(watch.OtherOf(From("b"), now), "process a");
  now += 10;
  EXPECT_EQ(watch.OtherOf(From("b"), now), "");
}

TEST(RankWatch, RestartsAreNotTwoProcesses) {
  RankWatch watch;
  for (int restart = 0; restart < 50; ++restart) {
    const std::string client = "client " + std::to_string(restart);
    for (int i = 0; i < 3; ++i) {
      watch.Hear(From(client), 1, restart + i);
      EXPECT_EQ(watch.OtherOf(From(client), restart + i), "");
    }
  }
}

TEST(RankWatch, KnowsWhoHasTrained) {
  RankWatch watch;
  watch.Hear(From("a"), RankWatch::kEnoughIterations - 1, 0);
  EXPECT_FALSE(watch.HasTrained(From("a")));
  watch.Hear(From("a"), 1, 1);
  EXPECT_TRUE(watch.HasTrained(From("a")));
  EXPECT_FALSE(watch.HasTrained(From("b")));
  EXPECT_FALSE(watch.HasTrained(From("")));
}

TEST(RankWatch, WhatARankRanIsOverWithItsPlanOrARestart) {
  RankWatch watch;
  ClientReport client = From("a", "profiling");
  client.ran = ComputationCounts{{{kForward, 0}, 3}};
  watch.Hear(client, 1, 0);
  EXPECT_EQ(watch.RanBy(0), client.ran);
  watch.Hear(From("a"), 0, 1);  // It says nothing new of iterations.
  EXPECT_EQ(watch.RanBy(0), client.ran);
  watch.Register(0);
  EXPECT_FALSE(watch.RanBy(0));
  watch.Hear(client, 1, 2);
  watch.Hear(From("a", "following"), 1, 3);
  EXPECT_FALSE(watch.RanBy(0));
}

TEST(RankWatch, SaysHowIterationsDifferFromTheSchedule) {
  const ComputationCounts planned = {{{kForward, 1}, 4}, {{kBackward, 1}, 4}};
  const auto text = [&](const ComputationCounts& ran) {
    return DifferenceText(5, 1, ran, planned);
  };
  const auto has = [](const std::string& sentence, const std::string& words) {
    return sentence.find(words) != std::string::npos;
  };
  EXPECT_EQ(text(planned), "");
  EXPECT_EQ(text({{{kForward, -1}, 4}, {{kBackward, -1}, 4}}), "");
  EXPECT_PRED2(
      has, text({{{kForward, 1}, 3}, {{kBackward, 1}, 3}}),
      "rank 5 runs 3 computations of type forward of stage 1, and the job's schedule has 4");
  EXPECT_PRED2(has, text({{{kForward, 1}, 4}}), "0 computations of type backward");
  EXPECT_PRED2(has, text({{{kForward, -1}, 4}, {{kBackward, -1}, 5}}),
               "5 computations of type backward, and");
  EXPECT_PRED2(has, text({{{kForward, 1}, 4}, {{kBackward, 1}, 4}, {{kRecompute, 1}, 4}}),
               "4 computations of type recompute");
  EXPECT_PRED2(
      has, text({{{kForward, 0}, 4}, {{kBackward, 0}, 4}}),
      "rank 5 runs computations of stage 0, and the job's schedule gives pp_rank 1 stage 1");
  EXPECT_PRED2(has, text({}), "no computation");
}

}  // namespace
}  // namespace perseus::server
