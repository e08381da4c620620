// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_PUBLISHED_PLAN_H_
#define PERSEUS_SERVER_DOMAIN_PUBLISHED_PLAN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/comparison_blocks.h"
#include "server/base/shape.h"
#include "server/domain/job_life.h"
#include "server/planning/curve.h"
#include "server/store/facts.h"

namespace perseus::server {

// Stands in place of a plan's id: the pipeline runs at maximum clocks.
inline constexpr std::int64_t kMaximumClocks = 0;

// Which plan every pipeline runs.
struct Assignment {
  std::int64_t plan = 0;                   // The plan of all pipelines except these:
  std::map<int, std::int64_t> exceptions;  // pipeline -> plan, or kMaximumClocks
  bool for_straggler = false;              // Whether `plan` was chosen because of a straggler.
  double straggler_time_seconds = 0;       // T' (see Assign()). 0: there is no straggler.
  double straggler_baseline_seconds = 0;   // T' if the straggling pipelines ran at maximum clocks.

  friend bool operator==(const Assignment&, const Assignment&) = default;
};

bool IsActive(const store::StragglerRecord& straggler, double now_seconds);
bool IsExpired(const store::StragglerRecord& straggler, double now_seconds);

// How many pipelines these slow: several of them may be about ranks of one pipeline.
std::int64_t SlowPipelines(const Shape& shape,
                           const std::vector<store::StragglerRecord>& stragglers,
                           const std::map<int, store::RankRecord>& ranks);

// Chooses the plan of each pipeline. T' is the iteration time of the slowest pipeline that has a
// straggler.
// - A pipeline with a straggler runs the fastest plan. That plan slows computations that were not
//   critical without the straggler. If it therefore takes over 1 % longer than maximum clocks, the
//   pipeline runs at maximum clocks.
// - Every other pipeline runs the slowest available plan that ends by min(T*, T'), or by the
//   target if that is later.
// If one pipeline rank has several stragglers, only the worst counts: if their factors were
// multiplied, T' could come out too long and slow the whole job.
// `stragglers` are those in effect; `ranks` say where ranks and nodes are.
Assignment Assign(const Curve& curve, double target_seconds, const Shape& shape,
                  const std::vector<store::StragglerRecord>& stragglers,
                  const std::map<int, store::RankRecord>& ranks);

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
  ComparisonBlocks comparison;  // Iterations that run at default clocks to measure the saving.
  bool gone = false;            // The job was deleted.
  bool profile_wanted = false;  // Ranks must measure.

  // The plan of a pipeline. nullptr: it runs at maximum clocks.
  const CurvePlan* PlanOf(int pipeline) const;
};

// The publication of a job's present state for its ranks.
PublishedPlan PublicationOf(const JobLife& job);
// Whether ranks can be told anything: there is a version, and the curve that it refers to.
bool IsPublishable(const Phase& phase);

// The plan of each pipeline in `phase` with the stragglers that are in effect at `day_seconds`.
// `phase` must have a curve.
Assignment AssignmentAt(const JobLife& job, const Phase& phase, double day_seconds);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_PUBLISHED_PLAN_H_
