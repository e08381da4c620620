// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_H_
#define PERSEUS_JOB_H_

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
#include "perseus/result.h"
#include "perseus/robust_plan.h"
#include "perseus/schedule.h"
#include "perseus/stream.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {

// What a job comes to: the plan that `perseus plan` makes of it, with all that it says. A plain
// value; the planner is a handle.
struct JobPlan {
  Planner planner;
  Plan plan = {};
  // Where the job has conditions, `plan` is the one that holds under them; then what was found
  // beside it, and what both come to in an emulation that the search has not seen.
  std::optional<RobustPlan> held = {};
  std::optional<ExpectedFigures> expected = {};
  std::optional<ExpectedFigures> expected_of_paper_plan = {};
  PlanDocument document = {};  // plan.json; for FormatPlanJson().
};

// A training job, read and costed: what to plan for. From profile and schedule
// to a plan in two calls (no file but the profile is needed):
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
  JobFile settings;  // What was asked for, job file and overrides together.
  Profile profile;
  ScheduleSpec schedule;  // Its name is empty where the schedule is from a file.
  int virtual_stages = 1;
  FixedTimes fixed;
  CostSpec costs;
  CostedPipeline pipeline;
  // All that the checks of profile and job have found; none is impossible.
  std::vector<Note> notes;

  // Reads and costs the job that `path` describes: a job file, or else a
  // profile. Each field that is set in `overrides` wins over the file's.
  static Result<Job> Load(const std::string& path, const JobFile& overrides = {});
  // The job of these settings, which name the profile.
  static Result<Job> Load(JobFile settings);
  // The same with a profile in memory; settings.profile is not looked at.
  static Result<Job> Make(Profile profile, JobFile settings);
  // The same with a schedule in memory, too; settings.schedule_file, where it is set, is its name
  // in messages, and is not read.
  static Result<Job> Make(Profile profile, const Schedule& schedule, JobFile settings);

  // What every plan must keep to, where it should be, how much work to search
  // for it (`otherwise` where the settings do not say).
  PlanConstraints Constraints() const;
  PlanTarget Target() const { return settings.at.value_or(PlanTarget{}); }
  double Effort(double otherwise = 1) const { return settings.effort.value_or(otherwise); }
  int DataParallel() const { return settings.data_parallel.value_or(1); }

  PlannerOptions SolverOptions() const;
  Result<Planner> MakePlanner(const ProgressFunction& progress = {}) const;

  // The plan that `perseus plan` makes: at the target, within the constraints and under the
  // conditions. The second takes a planner of this job that is there already, as it takes longest
  // to make. The callback is told as in Planner::PlanFor; saying false is kCancelled.
  Result<JobPlan> Plan() const;
  Result<JobPlan> Plan(const Planner& planner, const PlanCallback& callback = {}) const;

  // The plan alone.
  Result<perseus::Plan> MakePlan(const Planner& planner) const;

  // Plans for iterations whose microbatches differ, each within the job's
  // constraints at its target. Where the settings name an effort it is that of each plan. Such
  // plans know no conditions: a job that has some is refused.
  Result<StreamPlanner> MakeStream() const;

  // The notes on a plan for this time: the job's, and one where it is beyond T*.
  std::vector<Note> NotesAt(const Frontier& frontier, double seconds) const;

  // What plan.json says of a plan of this job that was made by hand, within the job's constraints
  // or others. Errors: a planner of another job, another planner's plan.
  Result<PlanDocument> Document(const Planner& planner, const perseus::Plan& plan) const;
  Result<PlanDocument> Document(const Planner& planner, const perseus::Plan& plan,
                                const PlanConstraints& constraints) const;
  // For MakePlanDocument(), of plans of a stream too.
  PlanContext Context() const;
};

// How Job::Plan() is made, for who has settings that go over the job's.
struct JobPlanSpec {
  JobFile settings;  // All of them, the job's included.
  // Without it RobustPlan::bound and the figures of the paper's plan are left out.
  bool with_bound = true;
  PlanCallback callback = {};
};
Result<JobPlan> MakeJobPlan(const Job& job, const Planner& planner, const JobPlanSpec& spec);

// The settings that `path` means (a job file, or else a profile; empty: none),
// with those of `overrides` that are set over them.
Result<JobFile> LoadSettings(const std::string& path, const JobFile& overrides);

// How these settings want their profile read.
ProfileOptions ProfileOptionsOf(const JobFile& settings);

// The constraints of these settings.
PlanConstraints ConstraintsOf(const JobFile& settings);

// Whether these settings say anything of conditions.
bool HasConditions(const JobFile& settings);
// Sets what these settings say, and leaves the rest.
void ApplyConditions(const JobFile& settings, Conditions* conditions);
// The conditions of these settings; the usual where they do not say.
Conditions ConditionsOf(const JobFile& settings);

// The same of the plans of a stream, without conditions.
StreamOptions StreamOptionsOf(const JobFile& settings);

// What the search for the plan that holds is to know of these settings.
RobustPlanSpec RobustSpecOf(const JobFile& settings);

// Keys of what a job cannot do without and these settings lack ("microbatches").
std::vector<std::string_view> MissingFields(const JobFile& settings);

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_JOB_H_
