// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "perseus/profile.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using enum ComputationType;
using ::testing::StartsWith;
using Kinds = std::vector<std::pair<int, ComputationType>>;

const Kinds kKinds = {{0, kForward}, {0, kBackward}};

Profile SmallProfile() {
  auto profile = ParseProfile(
      "stage,instruction,frequency,time,energy\n"
      "0,forward,1400,2,100\n0,forward,1200,3,70\n0,backward,1400,4,200\n",
      "p.csv");
  EXPECT_TRUE(profile);
  return *std::move(profile);
}

Result<Work> Made(const std::string& text, const TokenRule& rule = {},
                  const Kinds& kinds = kKinds) {
  const auto table = ParseWork(text, "w.csv");
  if (!table) return tl::unexpected(table.error());
  return MakeWork(*table, rule, SmallProfile(), 3, kinds);
}

std::string WorkErrorOf(const std::string& text) {
  const auto work = Made(text);
  return work ? "no error" : work.error().message;
}

TEST(WorkTest, OneFactorForAMicrobatchHoldsForAllOfIt) {
  const auto work = Made("# lengths\nfactor, microbatch\n1.5,0\n0.25,2\n");
  ASSERT_TRUE(work) << work.error().message;
  EXPECT_EQ(work->FactorOf({kForward, 0, 0}), 1.5);
  EXPECT_EQ(work->FactorOf({kBackward, 7, 0}), 1.5);
  EXPECT_EQ(work->FactorOf({kForward, 0, 1}), 1);
  EXPECT_EQ(work->FactorOf({kForward, 0, 2}), 0.25);
  EXPECT_EQ(work->num_microbatches(), 3);
}

TEST(WorkTest, RowsOfAKindHoldForThatKind) {
  const auto work = Made("microbatch,stage,type,factor\n1,0,forward,2\n0,0,backward,3\n");
  ASSERT_TRUE(work) << work.error().message;
  EXPECT_EQ(work->FactorOf({kForward, 0, 1}), 2);
  EXPECT_EQ(work->FactorOf({kBackward, 0, 1}), 1);
  EXPECT_EQ(work->FactorOf({kBackward, 0, 0}), 3);
}

TEST(WorkTest, TheWholeBackwardIsForHalvesWithoutRowsOfTheirOwn) {
  const Kinds halves = {{0, kForward}, {0, kBackwardInput}, {0, kBackwardWeight}};
  const auto work =
      Made("microbatch,stage,type,factor\n0,0,backward_weight,5\n0,0,backward,2\n", {}, halves);
  ASSERT_TRUE(work) << work.error().message;
  EXPECT_EQ(work->FactorOf({kBackwardInput, 0, 0}), 2);
  EXPECT_EQ(work->FactorOf({kBackwardWeight, 0, 0}), 5);
}

TEST(WorkTest, AForwardIsForARecomputeWithoutRowsOfItsOwn) {
  const Kinds kinds = {{0, kForward}, {0, kBackward}, {0, kRecompute}};
  const auto work = Made(
      "microbatch,stage,type,factor\n0,0,recompute,5\n0,0,forward,2\n1,0,forward,3\n", {}, kinds);
  ASSERT_TRUE(work) << work.error().message;
  EXPECT_EQ(work->FactorOf({kRecompute, 0, 0}), 5);
  EXPECT_EQ(work->FactorOf({kForward, 0, 0}), 2);
  EXPECT_EQ(work->FactorOf({kRecompute, 0, 1}), 3);
  EXPECT_EQ(work->FactorOf({kBackward, 0, 1}), 1);
  EXPECT_FALSE(Made("microbatch,stage,type,factor\n0,0,recompute,5\n", {}));
}

TEST(WorkTest, TokensAreInProportionToTheirMeanOrToWhatWasProfiled) {
  const std::string text = "microbatch,tokens\n0,100\n1,200\n2,300\n";
  const auto mean = Made(text);
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->FactorOf({kForward, 0, 0}), 0.5);
  const auto profiled = Made(text, {.fit = {}, .profiled_tokens = 100});
  ASSERT_TRUE(profiled);
  EXPECT_EQ(profiled->FactorOf({kForward, 0, 2}), 3);
}

TEST(WorkTest, AFitIsTimeAtTheHighestClock) {
  const auto fit = ParseWorkFit(
      "stage,type,time,time_per_token\n0,forward,1,0.01\n0,backward,0,0.04\n", "f.csv");
  ASSERT_TRUE(fit) << fit.error().message;
  const auto work = Made("microbatch,tokens\n0,100\n1,200\n2,300\n", {.fit = *fit});
  ASSERT_TRUE(work) << work.error().message;
  // Profiled: 2 s and 4 s.
  EXPECT_EQ(work->FactorOf({kForward, 0, 0}), 1);
  EXPECT_EQ(work->FactorOf({kForward, 0, 2}), 2);
  EXPECT_EQ(work->FactorOf({kBackward, 0, 1}), 2);
  const auto lacking = ParseWorkFit("stage,type,time,time_per_token\n0,forward,1,0.01\n", "f.csv");
  const auto none = Made("microbatch,tokens\n0,100\n1,200\n2,300\n", {.fit = *lacking});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, Mentions("stage", "0"));
}

TEST(WorkTest, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(WorkErrorOf(""), Mentions("w.csv:1:1:"));
  EXPECT_THAT(WorkErrorOf("microbatch,factor\n"), Mentions("row", "header"));
  EXPECT_THAT(WorkErrorOf("microbatch,facter\n0,1\n"),
              Mentions("w.csv:1:12:", "'facter'", "'factor'"));
  EXPECT_THAT(WorkErrorOf("microbatch,factor,tokens\n0,1,2\n"), Mentions("together;"));
  EXPECT_THAT(WorkErrorOf("microbatch,stage,factor\n0,1,2\n"), Mentions("together;"));
  EXPECT_THAT(WorkErrorOf("factor\n1\n"), Mentions("together;"));
  EXPECT_THAT(WorkErrorOf("microbatch,factor\n0,1,2\n"), Mentions("w.csv:2:1:", "3", "2"));
  EXPECT_THAT(WorkErrorOf("microbatch,factor\n0,1\n\n0,2\n"), Mentions("w.csv:4:1:", "0"));
  EXPECT_THAT(WorkErrorOf("microbatch,factor\n0,0\n"), StartsWith("w.csv:2:3: factor is '0'"));
  EXPECT_THAT(WorkErrorOf("microbatch,factor\n0,nan\n"), StartsWith("w.csv:2:3: factor is 'nan'"));
  EXPECT_THAT(WorkErrorOf("microbatch,factor\n-1,1\n"), StartsWith("w.csv:2:1: microbatch '-1'"));
  EXPECT_THAT(WorkErrorOf("microbatch,factor\n0,1\r\n3,1\n"),
              StartsWith("w.csv:3:3: microbatch 3 is not there: the pipeline has 3"));
  EXPECT_THAT(WorkErrorOf("microbatch,stage,type,factor\n0,0,sideways,1\n"),
              Mentions("w.csv:2:5:", "'sideways'"));
  EXPECT_THAT(WorkErrorOf("microbatch,stage,type,factor\n0,0,backward_input,1\n"),
              Mentions("w.csv:2:20:", "backward_input", "0"));
  EXPECT_THAT(WorkErrorOf("microbatch,stage,type,factor\n0,4,forward,1\n"), Mentions("stage", "4"));
  EXPECT_THAT(WorkErrorOf("microbatch,tokens\n0,100\n2,100\n"), Mentions("microbatch", "1"));
  EXPECT_THAT(WorkErrorOf(std::string("microbatch,factor\n0,1\0", 22)), Mentions("binary"));
}

TEST(WorkTest, FactorsMayComeInAnyOrder) {
  Work work;
  work.Set({kForward, 1, 5}, 2);
  work.Set({kBackward, 9, 0}, 3);
  work.Set({kBackwardWeight, 0, 7}, 4);
  EXPECT_EQ(work.FactorOf({kForward, 1, 5}), 2);
  EXPECT_EQ(work.FactorOf({kBackward, 9, 0}), 3);
  EXPECT_EQ(work.FactorOf({kBackwardWeight, 0, 7}), 4);
  EXPECT_EQ(work.FactorOf({kForward, 0, 0}), 1);
  EXPECT_EQ(work.num_microbatches(), 8);
}

}  // namespace
}  // namespace perseus
