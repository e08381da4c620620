// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_ROBUST_ROBUST_TESTING_H_
#define PERSEUS_TESTS_ROBUST_ROBUST_TESTING_H_

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "perseus/planner.h"
#include "plan/pipelines.h"

namespace perseus::robust_testing {

// A 1F1B pipeline of a random table, whose forwards take about a second.
// `waits`: what a GPU that waits draws depends on its clock.
inline Planner RandomPlanner(std::mt19937& random, int stages, int microbatches, int clocks,
                             bool waits = false) {
  plan_testing::ProfileShape shape;
  shape.stages = stages;
  shape.clocks = clocks;
  shape.noise = 0.05;
  auto planner = Planner::Create(
      plan_testing::Costed(plan_testing::RandomRows(random, shape) +
                               (waits ? ",blocking,1400,1,40,\n,blocking,500,1,10,\n" : ""),
                           plan_testing::DagOf("1f1b", stages, microbatches),
                           plan_testing::Blocking(20)),
      {});
  EXPECT_TRUE(planner) << planner.error().message;
  return *std::move(planner);
}

inline std::vector<int> RandomKnobs(std::mt19937& random, const CostedPipeline& pipeline) {
  std::vector<int> knobs;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    knobs.push_back(static_cast<int>(random() % pipeline.knobs.size()));
  }
  return knobs;
}

inline std::vector<CostOption> OptionsAt(const CostedPipeline& pipeline,
                                         const std::vector<int>& knobs) {
  std::vector<CostOption> options;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    for (const CostOption& option : pipeline.TableOf(i).all_options) {
      if (option.knob == knobs[i]) options.push_back(option);
    }
  }
  return options;
}

// What a search by prices minimises, without the change from a rank's last computation to its
// first.
inline double CostOf(const CostedPipeline& pipeline, const std::vector<int>& knobs,
                     const std::vector<double>& price, double change_joules) {
  const auto options = OptionsAt(pipeline, knobs);
  double sum = 0;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    sum += EffectiveEnergy(pipeline.TableOf(i), options[i]) + price[i] * options[i].time_seconds;
  }
  for (const auto& order : pipeline.dag.rank_order) {
    for (std::size_t k = 1; k < order.size(); ++k) {
      if (knobs[order[k]] != knobs[order[k - 1]]) sum += change_joules;
    }
  }
  return sum;
}

// The shortest that a computation can take.
inline double ShortestSeconds(const CostedPipeline& pipeline) {
  double shortest = 1e300;
  for (const CostTable& table : pipeline.tables) {
    for (const CostOption& option : table.all_options) {
      shortest = std::min(shortest, option.time_seconds);
    }
  }
  return shortest;
}

}  // namespace perseus::robust_testing

#endif  // PERSEUS_TESTS_ROBUST_ROBUST_TESTING_H_
