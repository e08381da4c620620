// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_PUBLISHED_PLAN_H_
#define PERSEUS_SERVER_DOMAIN_PUBLISHED_PLAN_H_

#include <memory>
#include <string>

#include "common/comparison_blocks.h"
#include "server/domain/job_life.h"
#include "server/domain/stragglers.h"
#include "server/planning/curve.h"
#include "server/store/facts.h"

namespace perseus::server {

// A durable version of a job's plan, which ranks may follow. Immutable: readers share it.
struct PublishedPlan {
  store::PlanVersion version;
  std::shared_ptr<const Curve> curve;  // Null: there is no plan.
  double requested_time_seconds = 0;   // Target of all pipelines but Assignment::exceptions.
  // Iteration time of the slowest pipeline with a straggler: under its plan, and at maximum
  // clocks. 0: there is no straggler.
  double straggler_seconds = 0;
  double straggler_baseline_seconds = 0;
  std::string sentence;         // Why there is no plan.
  ComparisonBlocks comparison;  // Iterations that run with no clock set to measure the saving.
  bool gone = false;            // The job was deleted.
  bool profile_wanted = false;  // Ranks must measure.

  // The plan of a pipeline. nullptr: it runs at maximum clocks.
  const CurvePlan* PlanOf(int pipeline) const;
};

// What ranks are told about a job in its present state.
PublishedPlan PublicationOf(const JobLife& job);
// Whether ranks can be told anything: there is a version, and the curve that it refers to.
bool IsPublishable(const Phase& phase);

// The plan of each pipeline in `phase` with the stragglers that are in effect at `day_seconds`.
// `phase` must have a curve.
Assignment AssignmentAt(const JobLife& job, const Phase& phase, double day_seconds);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_PUBLISHED_PLAN_H_
