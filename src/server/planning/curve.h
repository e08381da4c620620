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

#include "perseus/frontier.h"
#include "perseus/job.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/result.h"
#include "server/store/facts.h"
#include "wire/rank_plan.h"

namespace perseus::server {

// A plan and, if its job has conditions, the expected figures under them.
struct RobustSummary {
  Plan plan;
  std::optional<ExpectedFigures> expected;
};

// A robust plan for the job's conditions. `seconds` is a time without conditions: under
// conditions, the plan may be slower than maximum clocks by the same factor. Errors: those of
// PlanUnder(). Precondition of both functions: HasConditions(job.settings).
Result<Plan> MakeRobustPlan(const Job& job, const Planner& planner, double seconds, double effort,
                            const ProgressFunction& callback);

// Such plans from the time at maximum clocks to T*, by ascending time. `quick` gives fewer plans.
// Times for which no plan is found are left out.
inline constexpr std::size_t kMostHeldLadderPlans = 11;
Result<std::vector<Plan>> LadderThatHolds(const Job& job, const Planner& planner, bool quick,
                                          double effort, const ProgressFunction& callback);

// Adds the expected figures of maximum clocks and of each plan under the job's conditions. Adds
// nothing for a job without conditions. `keep_going` is called with the share that is done.
struct HeldPlans {
  std::optional<ExpectedFigures> baseline;
  std::vector<RobustSummary> plans;
};
Result<HeldPlans> WithExpected(const Job& job, const Planner& planner, std::vector<Plan> plans,
                               const ProgressFunction& progress);

// Ensures that no plan costs more energy (without that of waiting) than a plan for less time:
// replaces it by the faster plan where it does.
void CarryForward(const Job& job, std::vector<RobustSummary>* plans);

// Expected figures of plans under the job's conditions. Empty for a job without conditions.
struct ExpectedOfAll {
  std::optional<ExpectedFigures> baseline;        // Of maximum clocks.
  std::map<std::int64_t, ExpectedFigures> plans;  // By id.
  std::set<std::int64_t> wait_cheaply;            // Ids of plans with Waiting::kCheapest.

  void Add(std::int64_t id, Waiting waiting, const std::optional<ExpectedFigures>& figures) {
    if (figures) plans[id] = *figures;
    if (waiting == Waiting::kCheapest) wait_cheaply.insert(id);
  }
};

// The text of CurveRecord::frontier_json. `target`: the target that one of the plans is for.
std::string FrontierText(const Frontier& frontier, const std::string& target,
                         const ExpectedOfAll& expected);
// Fails on text that FrontierText() would not write.
Result<Frontier> ParseFrontier(const std::string& text, std::string* target,
                               ExpectedOfAll* expected);

store::PlanRecord PlanRecordOf(const Plan& plan, std::int64_t id);

// The record of a frontier and of plans on it. The plans get ids from `first_id` on; one of them is
// for `target`.
store::CurveRecord MakeCurveRecord(const std::string& job, int revision, const std::string& target,
                                   const Frontier& frontier, const HeldPlans& plans,
                                   std::int64_t first_id);

// Number of plans from T_min to T* that are computed before any straggler appears.
inline constexpr int kLadderPlans = 64;
// Number of plans for earlier targets that a curve keeps besides.
inline constexpr std::size_t kMostTargetPlans = 16;

// One plan of a curve, with its achieved figures.
struct CurvePlan {
  std::int64_t id = 0;
  double requested_time_seconds = 0;
  double iteration_time_seconds = 0;
  double energy_joules = 0;
  double saving_percent = 0;
  // Only of the plan for the target, of a profile that says its errors, and without conditions.
  std::optional<wire::SavingInterval> saving_interval;
  // Only if the profile has the costs of all computations at default clocks; under the conditions,
  // if there are some.
  std::optional<DefaultClockFigures> default_clocks;
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

  // For each rank of a pipeline, the text of what it runs: see wire::RowsText().
  std::vector<std::string> RowsTexts(const CurvePlan& plan) const;

  // [computation], in MHz.
  std::vector<double> ClocksOf(const CurvePlan& plan) const;

  // Whether profile and job are believable enough to show savings.
  bool believable() const { return believable_; }

  PlanDocument Document(const CurvePlan& plan) const;

  // A record of these plans and, unless `more` is null, of the plan `more` for `target`, which gets
  // a new id. If there are then more than kMostTargetPlans for earlier targets, it omits the oldest
  // of these.
  store::CurveRecord Record(const std::string& job, const std::string& target,
                            const RobustSummary* more) const;
  // Greater than every id in use.
  std::int64_t NextId() const;

 private:
  Curve() = default;
  std::vector<CostOption> OptionsOf(const CurvePlan& plan) const;
  // The plan with these options, evaluated without conditions. If `requested_seconds` is not given,
  // the requested time is the iteration time.
  Plan Achieved(const std::vector<CostOption>& options,
                std::optional<double> requested_seconds) const;
  Result<void> AddPlan(const store::PlanRecord& record,
                       const std::optional<ExpectedFigures>& expected, Waiting waiting);
  void FindInterval();
  void CompareWithDefaultClocks();
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
