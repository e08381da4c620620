// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_CHARACTERIZE_H_
#define PERSEUS_SERVER_PLANNING_CHARACTERIZE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perseus/job.h"
#include "perseus/planner.h"
#include "perseus/result.h"
#include "server/planning/held_plan.h"
#include "store/facts.h"

namespace perseus::server {

// Computes a job's frontier and plans on it. One thread.
class Characterizer {
 public:
  // Told the share that is done, between plans; false ends it with kCancelled.
  using KeepGoing = std::function<bool(double share)>;

  Characterizer(std::string id, std::shared_ptr<const Job> job, KeepGoing keep_going)
      : id_(std::move(id)), job_(std::move(job)), keep_going_(std::move(keep_going)) {}

  // The frontier, a ladder of plans and the plan for `target`: quickly made
  // (revision 1), or with all the work that the job allows (revision 2).
  // The fastest plan stands for a target that nothing meets; kInfeasible where no
  // plan meets the constraints, or none at all holds under the conditions.
  Result<store::CurveRecord> Ladder(const PlanTarget& target, int revision, std::int64_t first_id);

  // The plan for `target` alone.
  Result<HeldPlan> For(const PlanTarget& target);

 private:
  Result<void> MakePlanner();
  // Asks and tells keep_going_, progress going from one share to another.
  PlanCallback Told(double from, double to) const;
  // What plans are expected to come to, progress going from kDoneWithSearch to 1.
  Result<HeldPlans> Expected(std::vector<Plan> plans);
  // The plan for this time, under the job's conditions where it has some.
  // Progress goes to `done_then`.
  Result<Plan> PlanAt(double seconds, double effort, double done_then);
  // By ascending time.
  Result<std::vector<Plan>> LadderOf(bool quick);

  std::string id_;
  std::shared_ptr<const Job> job_;
  KeepGoing keep_going_;
  std::optional<Planner> planner_;  // Made when it is needed first.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_CHARACTERIZE_H_
