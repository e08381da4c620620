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
#include "server/planning/curve.h"
#include "server/store/facts.h"

namespace perseus::server {

// Computes a job's frontier and plans on it. For one thread.
class Characterizer {
 public:
  // Called between plans with the share that is done. If it returns false, the computation ends
  // with kCancelled.
  using KeepGoing = std::function<bool(double share)>;

  Characterizer(std::string id, std::shared_ptr<const Job> job, KeepGoing keep_going)
      : id_(std::move(id)), job_(std::move(job)), keep_going_(std::move(keep_going)) {}

  // Computes the frontier, a ladder of plans (from T_min to T*) and the plan for `target`.
  // `revision` 1: a quick first curve; 2: with all the work that the job's settings allow. If no
  // plan meets the target, the fastest plan takes its place. kInfeasible: no plan meets the job's
  // constraints, or none holds under its conditions.
  Result<store::CurveRecord> Ladder(const PlanTarget& target, int revision, std::int64_t first_id);

  // Computes only the plan for `target`.
  Result<RobustSummary> For(const PlanTarget& target);

 private:
  Result<void> MakePlanner();
  // A callback that reports progress from share `from` to share `to` to keep_going_.
  ProgressFunction Told(double from, double to) const;
  // Adds expected figures to plans. Reports progress from kDoneWithSearch to 1.
  Result<HeldPlans> Expected(std::vector<Plan> plans);
  // The plan for this time; if the job has conditions, one that holds under them. Reports progress
  // up to `done_then`.
  Result<Plan> PlanAt(double seconds, double effort, double done_then);
  // The ladder's plans, by ascending time.
  Result<std::vector<Plan>> LadderOf(bool quick);

  std::string id_;
  std::shared_ptr<const Job> job_;
  KeepGoing keep_going_;
  std::optional<Planner> planner_;  // Made when first needed.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_CHARACTERIZE_H_
