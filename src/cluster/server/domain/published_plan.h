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
#include "store/facts.h"

namespace perseus::server {

// A version of a job's plan that is durable and may be followed. Immutable: readers share it.
struct PublishedPlan {
  store::PlanVersion version;
  std::shared_ptr<const Curve> curve;  // Null where there is no plan.
  double requested_time_seconds = 0;   // Of the pipelines without exception.
  // What an iteration of the slowest straggling pipeline takes now, and would take at maximum
  // clocks. 0: none straggles.
  double straggler_seconds = 0;
  double straggler_baseline_seconds = 0;
  std::string sentence;         // Why there is no plan.
  ComparisonBlocks comparison;  // Iterations that run at maximum clocks all the same.
  bool gone = false;            // The job was deleted.
  bool profile_wanted = false;  // Ranks are to measure.

  // The plan of a pipeline, or nullptr: maximum clocks.
  const CurvePlan* PlanOf(int pipeline) const;
};

// What ranks are told of a job as it is.
PublishedPlan PublicationOf(const JobLife& job);
// Whether there is anything to tell: a version, and the curve that it is about.
bool IsPublishable(const Phase& phase);

// The plans that pipelines run in `phase`, which has a curve, with the job's stragglers of then.
Assignment AssignmentAt(const JobLife& job, const Phase& phase, double day_seconds);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_PUBLISHED_PLAN_H_
