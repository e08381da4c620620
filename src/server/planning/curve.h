// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_CURVE_H_
#define PERSEUS_SERVER_PLANNING_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "perseus/frontier.h"
#include "perseus/job.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/result.h"
#include "server/planning/held_plan.h"
#include "server/store/facts.h"

namespace perseus::server {

// Number of plans from T_min to T* that are computed before any straggler appears.
inline constexpr int kLadderPlans = 64;
// Number of plans for earlier targets that a curve keeps besides.
inline constexpr std::size_t kMostTargetPlans = 16;

// One plan of a curve, with its realised figures.
struct CurvePlan {
  std::int64_t id = 0;
  double requested_time_seconds = 0;
  double iteration_time_seconds = 0;
  double energy_joules = 0;
  double saving_percent = 0;
  // Only of the plan for the target, of a profile that says its errors, and without conditions.
  std::optional<SavingInterval> saving_interval;
  // Where the profile says what all computations cost with no clock set; under the conditions, if
  // there are some.
  std::optional<UnlockedFigures> unlocked;
  std::vector<std::uint16_t> knobs;  // [computation]
  Waiting waiting = Waiting::kSetClock;
  // Only for a job with conditions. The figures above then hold under these conditions.
  std::optional<ExpectedFigures> expected;
};

// A job's frontier and ready plans on it: enough to react to a straggler without solving anything.
// After a restart it is rebuilt from its record without a solver. Immutable.
class Curve {
 public:
  // Fails if the record does not fit the job.
  static Result<std::shared_ptr<const Curve>> Make(std::shared_ptr<const Job> job,
                                                   const store::CurveRecord& record);
  Curve(const Curve&) = delete;
  Curve& operator=(const Curve&) = delete;

  const Job& job() const { return *job_; }
  const Frontier& frontier() const { return frontier_; }
  int revision() const { return revision_; }
  // The target, as text, that one of the plans was made for.
  const std::string& target() const { return target_; }
  // Figures at maximum clocks; under the job's conditions if it has some.
  double baseline_time_seconds() const { return baseline_time_seconds_; }
  double baseline_energy_joules() const { return baseline_energy_joules_; }
  // The same without conditions. Targets and times of the frontier refer to this one.
  double planned_baseline_seconds() const { return planned_baseline_.iteration_time_seconds; }
  // Converts a time under the job's conditions to a time of the frontier.
  double FrontierSeconds(double seconds) const {
    return seconds * (planned_baseline_.iteration_time_seconds / baseline_time_seconds_);
  }
  // Sorted by requested time; never empty.
  const std::vector<CurvePlan>& plans() const { return plans_; }
  const CurvePlan& fastest() const { return plans_.front(); }

  // The plan of this id, or nullptr.
  const CurvePlan* Find(std::int64_t id) const;
  // The slowest plan that ends by `seconds`, or the fastest plan if none does.
  const CurvePlan& At(double seconds) const;
  // The plan of the other pipelines while a straggling pipeline takes `seconds`: the slowest plan
  // up to T* that ends by `seconds` under the job's conditions, or the plan for `target_seconds` if
  // that is slower.
  const CurvePlan& ForStraggler(double seconds, double target_seconds) const;
  // The iteration time that a target means. kInfeasible: it is below that of the fastest plan.
  Result<double> TargetSeconds(const PlanTarget& target) const;

  // Iteration time of a plan (nullptr: of maximum clocks) if the computations of each pipeline rank
  // take factors[rank] times as long. If the job has conditions, the ratio of slowed to normal time
  // is computed without them and applied to the time under them.
  double SlowedSeconds(const CurvePlan* plan, const std::vector<double>& factors) const;

  // For each rank of a pipeline, the end of its plan as JSON text: its computations in execution
  // order, [["F",stage,microbatch,mhz,start_s,duration_s],...], its clock for waiting where it has
  // one, and the closing brace of the plan.
  std::vector<std::string> ComputationsTails(const CurvePlan& plan) const;

  // [computation], in MHz.
  std::vector<double> ClocksOf(const CurvePlan& plan) const;

  // Whether what was found in profile and job lets savings be shown.
  bool believable() const { return believable_; }

  PlanDocument Document(const CurvePlan& plan) const;

  // A record of these plans and, unless `more` is null, of the plan `more` for `target`, which gets
  // a new id. If there are then more than kMostTargetPlans for earlier targets, it omits the oldest
  // of these.
  store::CurveRecord Record(const std::string& job, const std::string& target,
                            const HeldPlan* more) const;
  // Greater than every id in use.
  std::int64_t NextId() const;

 private:
  Curve() = default;
  std::vector<CostOption> OptionsOf(const CurvePlan& plan) const;
  // The plan with these options, evaluated without conditions. If `requested_seconds` is not given,
  // the requested time is the iteration time.
  Plan Realised(const std::vector<CostOption>& options,
                std::optional<double> requested_seconds) const;
  Result<void> AddPlan(const store::PlanRecord& record,
                       const std::optional<ExpectedFigures>& expected, Waiting waiting);
  void FindInterval();
  void CompareWithUnlocked();
  std::set<std::int64_t> StalePlans() const;

  std::shared_ptr<const Job> job_;
  Frontier frontier_;
  int revision_ = 0;
  std::string target_;
  std::vector<CostOption> baseline_;
  double baseline_time_seconds_ = 0;
  double baseline_energy_joules_ = 0;
  bool believable_ = true;
  Plan planned_baseline_;  // Without conditions.
  std::optional<ExpectedFigures> expected_baseline_;
  std::vector<CurvePlan> plans_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_CURVE_H_
