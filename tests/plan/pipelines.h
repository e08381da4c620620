// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_PLAN_PIPELINES_H_
#define PERSEUS_TESTS_PLAN_PIPELINES_H_

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/planner.h"
#include "plan/plan_search.h"

namespace perseus::plan_testing {

// Rows "stage,instruction,frequency,time,energy", without the header, or with
// one of their own.
Profile ProfileOf(const std::string& rows);

PipelineDag DagOf(const std::string& schedule, int stages, int microbatches,
                  const FixedTimes& fixed = {}, int virtual_stages = 1);

// Blocking power in watts, the same for all ranks.
CostSpec Blocking(double watts);

// ProfileOf, DagOf and CostPipeline together; everything must be valid.
CostedPipeline Costed(const std::string& rows, const PipelineDag& dag, const CostSpec& spec);

struct ProfileShape {
  int stages = 2;
  int clocks = 3;
  double noise = 0;     // Share by which times and energies scatter.
  double spread = 0;    // time_std as a share of the time.
  bool labels = false;  // Knobs that are no numbers.
};

// A table with falling times and a valley of energies over the clocks.
std::string RandomRows(std::mt19937& random, const ProfileShape& shape);

// Sum of energy - blocking power x time: what a plan for a deadline minimises.
double EffectiveEnergy(const CostedPipeline& pipeline, const std::vector<CostOption>& options);

// Iteration time with the durations that `guard` makes of the options.
double IterationSeconds(const CostedPipeline& pipeline, const std::vector<CostOption>& options,
                        const plan::Guard& guard = {});

// The least effective energy of any choice of options that ends by `seconds`, by
// trying all; computations of one group share a knob. Infinite where none does.
double LeastEffectiveEnergy(const CostedPipeline& pipeline,
                            const std::vector<std::vector<int>>& groups, double seconds,
                            const plan::Guard& guard = {});

// Every computation its own group.
std::vector<std::vector<int>> Singles(const CostedPipeline& pipeline);

}  // namespace perseus::plan_testing

#endif  // PERSEUS_TESTS_PLAN_PIPELINES_H_
