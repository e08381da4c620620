// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_CURVE_H_
#define PERSEUS_SERVER_PLANNING_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "perseus/frontier.h"
#include "perseus/job.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/result.h"
#include "server/planning/held_plan.h"
#include "store/facts.h"

namespace perseus::server {

// Plans from T_min to T* that are made ahead of any straggler.
inline constexpr int kLadderPlans = 64;
// Plans that a curve keeps besides: those for the last targets.
inline constexpr std::size_t kMostTargetPlans = 16;

// One plan of a curve, with what it realises.
struct CurvePlan {
  std::int64_t id = 0;
  double requested_time_seconds = 0;
  double iteration_time_seconds = 0;
  double energy_joules = 0;
  double saving_percent = 0;
  std::vector<std::uint16_t> knobs;  // [computation]
  // Of a job with conditions, which the figures above are then under.
  std::optional<ExpectedFigures> expected;
};

// A job's frontier and the plans on it that are at hand: everything that is
// needed to answer a straggler without solving anything. Rebuilt from its record,
// without a solver, after a restart. Immutable but for a cache; thread-safe.
class Curve {
 public:
  // Errors: a record that does not fit the job.
  static Result<std::shared_ptr<const Curve>> Make(std::shared_ptr<const Job> job,
                                                   const store::CurveRecord& record);
  Curve(const Curve&) = delete;
  Curve& operator=(const Curve&) = delete;

  const Job& job() const { return *job_; }
  const Frontier& frontier() const { return frontier_; }
  int revision() const { return revision_; }
  // The target that one of the plans was made for, as text.
  const std::string& target() const { return target_; }
  // Of all clocks at maximum, under the job's conditions where it has some.
  double baseline_time_seconds() const { return baseline_time_seconds_; }
  double baseline_energy_joules() const { return baseline_energy_joules_; }
  // The same without conditions: what targets and the frontier's times are against.
  double planned_baseline_seconds() const { return planned_baseline_.iteration_time_seconds; }
  // What takes `seconds` under the job's conditions, as a time of the frontier.
  double FrontierSeconds(double seconds) const {
    return seconds * (planned_baseline_.iteration_time_seconds / baseline_time_seconds_);
  }
  // By ascending requested time; never empty.
  const std::vector<CurvePlan>& plans() const { return plans_; }
  const CurvePlan& fastest() const { return plans_.front(); }

  // The plan of this id, or nullptr.
  const CurvePlan* Find(std::int64_t id) const;
  // The slowest plan that ends by `seconds`; the fastest where there is none.
  const CurvePlan& At(double seconds) const;
  // The slowest plan up to T* that ends by `seconds` under the job's conditions, when a straggler
  // does; at least that for `target_seconds`.
  const CurvePlan& ForStraggler(double seconds, double target_seconds) const;
  // The time that a target means. kInfeasible below the fastest plan's.
  Result<double> TargetSeconds(const PlanTarget& target) const;

  // Iteration time of a plan (nullptr: of maximum clocks) when each pipeline rank's
  // computations take `factors[rank]` times as long; under conditions so many times as long as
  // without.
  double SlowedSeconds(const CurvePlan* plan, const std::vector<double>& factors) const;

  // The computations of a pipeline rank as the API says them, in execution
  // order: [["F",stage,microbatch,mhz,start_s,duration_s],...], and the brace that
  // ends the plan they are the last member of. Made once, shared.
  std::shared_ptr<const std::string> ComputationsTail(const CurvePlan& plan, int pp_rank) const;

  PlanDocument Document(const CurvePlan& plan) const;

  // The record of the same plans and, where it is given, one more: the plan for
  // `target`, which gets a new id. Of those for earlier targets, the oldest go where
  // there are more than kMostTargetPlans.
  store::CurveRecord Record(const std::string& job, const std::string& target,
                            const HeldPlan* more) const;
  // Above every id in use.
  std::int64_t NextId() const;

 private:
  Curve() = default;
  std::vector<CostOption> OptionsOf(const CurvePlan& plan) const;
  // What these options come to without conditions; asked for: `requested_seconds`, or what it
  // takes.
  Plan Realised(const std::vector<CostOption>& options,
                std::optional<double> requested_seconds) const;
  Result<void> AddPlan(const store::PlanRecord& record,
                       const std::optional<ExpectedFigures>& expected);
  std::set<std::int64_t> StalePlans() const;

  std::shared_ptr<const Job> job_;
  Frontier frontier_;
  int revision_ = 0;
  std::string target_;
  std::vector<CostOption> baseline_;
  double baseline_time_seconds_ = 0;
  double baseline_energy_joules_ = 0;
  Plan planned_baseline_;  // Without conditions.
  std::optional<ExpectedFigures> expected_baseline_;
  std::vector<CurvePlan> plans_;

  mutable Mutex mutex_;
  mutable std::map<std::pair<std::int64_t, int>, std::shared_ptr<const std::string>> texts_
      PERSEUS_GUARDED_BY(mutex_);
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_CURVE_H_
