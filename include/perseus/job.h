// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_H_
#define PERSEUS_JOB_H_

// Link perseus::core (pkg-config: perseus-core).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/export.h"
#include "perseus/job_file.h"
#include "perseus/note.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/progress.h"
#include "perseus/result.h"
#include "perseus/robust_plan.h"
#include "perseus/schedule.h"
#include "perseus/stream.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// The plan that `perseus plan` makes of a job, with everything that it says of it. A plain value;
// the planner is a handle.
struct JobPlan {
  Planner planner;
  Plan plan = {};
  // If the job has conditions, `plan` holds under them. Then these say what else the search found,
  // and the figures of this plan and of the plan without conditions in an emulation.
  std::optional<RobustPlan> held = {};
  std::optional<ExpectedFigures> expected = {};
  std::optional<ExpectedFigures> expected_of_paper_plan = {};
  PlanDocument document = {};  // plan.json; for FormatPlanJson().
};

// A training job, read and costed: what to plan for. Two calls lead from a profile to a plan:
//
//   const auto job = Job::Load("profile.csv", {.schedule = "1f1b",
//                                              .microbatches = 96,
//                                              .blocking_power_watts = {83.64}});
//   if (!job) return Fail(job.error().message);
//   const auto made = job->Plan();
//   if (!made) return Fail(made.error().message);
//   std::cout << made->plan.energy_joules << " J\n";
//
// A plain value. Const members may be called from several threads at once.
// Errors name a field by its key in job files, in quotes ('blocking_power').
struct Job {
  JobFile settings = {};  // What was asked for, job file and overrides together.
  Profile profile = {};
  ScheduleSpec schedule = {};  // Its name is empty where the schedule is from a file.
  int virtual_stages = 1;
  FixedTimes fixed = {};
  CostSpec costs = {};
  CostedPipeline pipeline = {};
  // Findings of the checks of profile and job. None is "impossible": that is an error.
  std::vector<Note> notes = {};

  // Reads and costs the job that `path` describes: a job file, or else a
  // profile. Each field that is set in `overrides` wins over the file's.
  static Result<Job> Load(const std::string& path, const JobFile& overrides = {});
  // The job of these settings. `settings.profile` is read.
  static Result<Job> Load(JobFile settings);
  // The same with a profile in memory: `settings.profile` does not count.
  static Result<Job> Make(Profile profile, JobFile settings);
  // The same with a schedule in memory, too: `settings.schedule_file` is not read. If it is set,
  // messages name the schedule by it. Neither a name nor a text may be set.
  static Result<Job> Make(Profile profile, const Schedule& schedule, JobFile settings);

  // Constraints, target, effort and pipelines of the settings, or the default. `otherwise` is the
  // default of the effort.
  PlanConstraints Constraints() const;
  PlanTarget Target() const { return settings.at.value_or(PlanTarget{}); }
  double Effort(double otherwise = 1) const { return settings.effort.value_or(otherwise); }
  int DataParallel() const { return settings.data_parallel.value_or(1); }

  PlannerOptions SolverOptions() const;
  Result<Planner> MakePlanner(const ProgressFunction& progress = {}) const;

  // The plan that `perseus plan` makes: at the target, within the constraints and under the
  // conditions. The second function takes a planner that MakePlanner() of this job has made: that
  // takes longest. `progress` is told of plans as PlanSpec::progress is; false is kCancelled.
  Result<JobPlan> Plan() const;
  Result<JobPlan> Plan(const Planner& planner, const ProgressFunction& progress = {}) const;

  // The plan alone.
  Result<perseus::Plan> MakePlan(const Planner& planner) const;

  // Plans for iterations whose microbatches differ, each within the job's constraints and at its
  // target. An effort in the settings is that of each plan. Errors: a job with conditions, which
  // such plans do not know.
  Result<StreamPlanner> MakeStream() const;

  // The job's notes, and one more if this time is beyond T*.
  std::vector<Note> NotesAt(const Frontier& frontier, double seconds) const;

  // The content of plan.json for a plan that a planner of this job made. `constraints` are those of
  // the plan; without them, the job's. Errors: a planner of another job, another planner's plan.
  Result<PlanDocument> Document(const Planner& planner, const perseus::Plan& plan) const;
  Result<PlanDocument> Document(const Planner& planner, const perseus::Plan& plan,
                                const PlanConstraints& constraints) const;
  // For MakePlanDocument(), which also takes plans of a stream.
  PlanContext Context() const;
};

// Job::Plan() with other settings than the job's.
struct JobPlanSpec {
  JobFile settings = {};  // All of them: they replace the job's.
  // False leaves out RobustPlan::bound and the figures of the plan without conditions, which take
  // long.
  bool with_bound = true;
  ProgressFunction progress = {};
};
Result<JobPlan> MakeJobPlan(const Job& job, const Planner& planner, const JobPlanSpec& spec);

// The settings of `path`, which is a job file, a profile or empty. Each field that is set in
// `overrides` wins.
Result<JobFile> LoadSettings(const std::string& path, const JobFile& overrides);

// How these settings want their profile read.
ProfileOptions ProfileOptionsOf(const JobFile& settings);

// Constraints of these settings. Those that they leave out have their defaults.
PlanConstraints ConstraintsOf(const JobFile& settings);

// Whether these settings have any condition.
bool HasConditions(const JobFile& settings);
// Overwrites those conditions that these settings have.
void ApplyConditions(const JobFile& settings, Conditions* conditions);
// All conditions. What these settings leave out has its default.
Conditions ConditionsOf(const JobFile& settings);

// For StreamPlanner::Create(). Conditions do not count.
StreamOptions StreamOptionsOf(const JobFile& settings);

// For PlanUnder().
RobustPlanSpec RobustSpecOf(const JobFile& settings);

// The keys that every job needs and these settings lack, such as "microbatches". With the job's
// profile, not those that it makes needless.
std::vector<std::string_view> MissingFields(const JobFile& settings,
                                            const Profile* profile = nullptr);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_JOB_H_
