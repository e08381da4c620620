// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "analyse/layer_costs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus::analyse {
namespace {

using plan_testing::ProfileOf;
using plan_testing::RandomRows;
using testing::ElementsAre;
using testing::HasSubstr;

LayerCosts Inferred(const Profile& profile, const std::vector<int>& layers) {
  auto costs = InferLayerCosts(profile, layers);
  EXPECT_TRUE(costs) << costs.error().message;
  return *std::move(costs);
}

Profile Partitioned(const Profile& profile, const LayerCosts& costs,
                    const std::vector<int>& layers) {
  auto partitioned = PartitionedProfile(profile, costs, layers);
  EXPECT_TRUE(partitioned) << partitioned.error().message;
  return *std::move(partitioned);
}

// Forward and backward of each stage in seconds at 1400 MHz, twice at 700;
// 100 J a second.
Profile StageTimes(const std::vector<double>& forwards, const std::vector<double>& backwards) {
  std::string rows;
  for (std::size_t stage = 0; stage < forwards.size(); ++stage) {
    for (const auto& [clock, factor] : {std::pair{1400, 1.0}, {700, 2.0}}) {
      rows += fmt::format("{0},forward,{1},{2},{3}\n{0},backward,{1},{4},{5}\n", stage, clock,
                          factor * forwards[stage], 100 * forwards[stage],
                          factor * backwards[stage], 100 * backwards[stage]);
    }
  }
  return ProfileOf(rows);
}

double Slowest(const Profile& profile) {
  double slowest = 0;
  for (int stage = 0; stage < profile.num_stages; ++stage) {
    slowest = std::max(slowest, PartSeconds(profile, {.stage = stage}));
  }
  return slowest;
}

TEST(LayerCostsTest, TellsTheHeadFromLayers) {
  // A layer takes 1 + 2 s; the head, as long as two layers.
  const Profile profile = StageTimes({4, 4, 4, 6}, {8, 8, 8, 12});
  const LayerCosts costs = Inferred(profile, {4, 4, 4, 4});
  EXPECT_DOUBLE_EQ(costs.first_extra.Of(ComputationType::kForward).time, 0);
  EXPECT_DOUBLE_EQ(costs.last_extra.Of(ComputationType::kForward).time, 1.0 / 3);
  EXPECT_DOUBLE_EQ(costs.last_extra.Of(ComputationType::kBackward).energy, 1.0 / 3);
  const std::vector<int> best = BestPartition(profile, costs);
  EXPECT_THAT(best, ElementsAre(4, 4, 5, 3));
  const Profile partitioned = Partitioned(profile, costs, best);
  EXPECT_NEAR(PartSeconds(partitioned, {.stage = 2}), 15, 1e-12);
  EXPECT_NEAR(PartSeconds(partitioned, {.stage = 3}), 15, 1e-12);
  const OptionTable* forward = partitioned.Find(3, ComputationType::kForward);
  ASSERT_NE(forward, nullptr);
  EXPECT_NEAR(forward->options[1].time_seconds, 10, 1e-12);
  EXPECT_NEAR(forward->options[1].energy_joules, 500, 1e-9);
}

TEST(LayerCostsTest, AnOuterStageMayHaveCheaperLayersAndNoExtra) {
  const Profile profile = StageTimes({0.5, 4, 4, 4}, {1, 8, 8, 8});
  const LayerCosts costs = Inferred(profile, {4, 4, 4, 4});
  EXPECT_EQ(costs.first_extra.Of(ComputationType::kForward).time, 0);
  EXPECT_EQ(costs.layer[0].Of(ComputationType::kForward).time, 0.25);
  EXPECT_THAT(BestPartition(profile, costs), ElementsAre(7, 3, 3, 3));
}

TEST(LayerCostsTest, MovesNoLayerForNothing) {
  const Profile profile = StageTimes({4, 4, 4, 4.5}, {8, 8, 8, 9});
  const LayerCosts costs = Inferred(profile, {4, 4, 4, 4});
  EXPECT_THAT(BestPartition(profile, costs), ElementsAre(4, 4, 4, 4));
  // Of 15 layers one stage has three, whichever it is.
  const Profile uneven = StageTimes({4, 3, 4, 4}, {8, 6, 8, 8});
  EXPECT_THAT(BestPartition(uneven, Inferred(uneven, {4, 3, 4, 4})), ElementsAre(4, 3, 4, 4));
}

TEST(LayerCostsTest, TheMeasuredPartitionCostsWhatWasMeasured) {
  std::mt19937 random(41);
  for (int round = 0; round < 20; ++round) {
    const Profile profile = ProfileOf(RandomRows(random, {.stages = 5, .clocks = 4, .noise = 0.3}));
    std::vector<int> layers;
    for (int stage = 0; stage < 5; ++stage) layers.push_back(1 + static_cast<int>(random() % 9));
    const Profile same = Partitioned(profile, Inferred(profile, layers), layers);
    ASSERT_EQ(same.tables.size(), profile.tables.size());
    for (std::size_t k = 0; k < profile.tables.size(); ++k) {
      ASSERT_EQ(same.tables[k].options.size(), profile.tables[k].options.size());
      EXPECT_EQ(same.tables[k].baseline, profile.tables[k].baseline);
      for (std::size_t i = 0; i < profile.tables[k].options.size(); ++i) {
        const Option& expected = profile.tables[k].options[i];
        EXPECT_NEAR(same.tables[k].options[i].time_seconds, expected.time_seconds, 1e-12);
        EXPECT_NEAR(same.tables[k].options[i].energy_joules, expected.energy_joules, 1e-9);
      }
    }
  }
}

// All ways to give `left` layers to the stages from `stage` on.
void Enumerate(int left, int stage, std::vector<int>* layers,
               std::vector<std::vector<int>>* found) {
  const int stages = static_cast<int>(layers->size());
  if (stage + 1 == stages) {
    (*layers)[stage] = left;
    found->push_back(*layers);
    return;
  }
  for (int here = 1; here <= left - (stages - 1 - stage); ++here) {
    (*layers)[stage] = here;
    Enumerate(left - here, stage + 1, layers, found);
  }
}

TEST(LayerCostsTest, FindsTheBestOfAllPartitions) {
  std::mt19937 random(42);
  int moved = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<double> forwards;
    std::vector<double> backwards;
    std::vector<int> layers;
    int all_layers = 0;
    for (int stage = 0; stage < 4; ++stage) {
      layers.push_back(1 + static_cast<int>(random() % 4));
      all_layers += layers.back();
      forwards.push_back(layers.back() * (1 + static_cast<double>(random() % 8) / 4));
      backwards.push_back(2 * forwards.back());
    }
    forwards.back() += static_cast<double>(random() % 3);
    const Profile profile = StageTimes(forwards, backwards);
    const LayerCosts costs = Inferred(profile, layers);
    std::vector<std::vector<int>> partitions;
    std::vector<int> scratch(4);
    Enumerate(all_layers, 0, &scratch, &partitions);
    double least = std::numeric_limits<double>::infinity();
    for (const auto& partition : partitions) {
      least = std::min(least, Slowest(Partitioned(profile, costs, partition)));
    }
    const auto distance = [&](const std::vector<int>& partition) {
      int sum = 0;
      for (int stage = 0; stage < 4; ++stage) sum += std::abs(partition[stage] - layers[stage]);
      return sum;
    };
    int nearest = std::numeric_limits<int>::max();
    for (const auto& partition : partitions) {
      if (Slowest(Partitioned(profile, costs, partition)) > least * (1 + 1e-9)) continue;
      nearest = std::min(nearest, distance(partition));
    }
    const std::vector<int> best = BestPartition(profile, costs);
    EXPECT_NEAR(Slowest(Partitioned(profile, costs, best)), least, 1e-9);
    EXPECT_EQ(distance(best), nearest);
    if (nearest > 0) ++moved;
  }
  EXPECT_GT(moved, 10);
}

TEST(LayerCostsTest, SaysWhatLayersCannotBe) {
  const Profile profile = StageTimes({1, 1, 1}, {1, 1, 1});
  const auto message = [](const Profile& p, const std::vector<int>& layers) {
    const auto costs = InferLayerCosts(p, layers);
    EXPECT_FALSE(costs);
    return costs ? "" : costs.error().message;
  };
  EXPECT_THAT(message(profile, {4, 4}), Mentions("2", "p.csv", "3"));
  EXPECT_THAT(message(profile, {4, 0, 4}), Mentions("0", "layers"));
  EXPECT_THAT(message(profile, {4, 2000000000, 2000000000}), Mentions("4000000004"));
  EXPECT_THAT(message(StageTimes({1, 1}, {1, 1}), {4, 4}), Mentions("inner"));
}

}  // namespace
}  // namespace perseus::analyse
