// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CONSUMER_SMALL_JOB_H_
#define PERSEUS_CONSUMER_SMALL_JOB_H_

#include <utility>

#include "check.h"
#include "perseus/pipeline.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"

// Two stages, the second twice as slow.
inline perseus::Profile SmallProfile() {
  return ValueOf(perseus::ParseProfile("stage,instruction,frequency,time,energy\n"
                                       "0,forward,1000,0.1,30\n0,forward,800,0.12,24\n"
                                       "0,backward,1000,0.2,60\n0,backward,800,0.24,48\n"
                                       "1,forward,1000,0.2,60\n1,forward,800,0.24,48\n"
                                       "1,backward,1000,0.4,120\n1,backward,800,0.48,96\n",
                                       "small.csv"),
                 "ParseProfile");
}

// Four microbatches of them.
inline perseus::PipelineDag SmallDag() {
  const auto schedule =
      ValueOf(perseus::BuildSchedule({.name = "1f1b", .num_stages = 2, .num_microbatches = 4}),
              "BuildSchedule");
  return ValueOf(perseus::BuildDag(schedule, {}), "BuildDag");
}

inline perseus::CostSpec SmallCosts() {
  perseus::CostSpec costs;
  costs.blocking_power_watts = {50};
  return costs;
}

// Their planner.
inline perseus::Planner SmallJob() {
  auto pipeline =
      ValueOf(perseus::CostPipeline(SmallProfile(), SmallDag(), SmallCosts()), "CostPipeline");
  return ValueOf(perseus::Planner::Create(std::move(pipeline), {}), "Planner::Create");
}

#endif  // PERSEUS_CONSUMER_SMALL_JOB_H_
