// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_JOB_H_
#define PERSEUS_CLI_JOB_H_

#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "perseus/costed_pipeline.h"
#include "perseus/job_file.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/result.h"
#include "perseus/schedule.h"

namespace perseus::cli {

// A job as read: what `plan`, `frontier` and `emulate` start from.
struct Job {
  JobFile settings;  // File and flags together.
  Profile profile;
  FixedTimes fixed;
  CostSpec costs;
  CostedPipeline pipeline;
  int virtual_stages = 1;
  ScheduleSpec schedule;  // Its name is empty where the schedule is from a file.
};

// The job file, where there is one, with the flags over it.
Result<JobFile> MergeSettings(const JobFlags& flags);

// Reads and costs what the settings name. `command` ("plan", ...) is
// for examples in messages.
Result<Job> LoadJob(const JobFlags& flags, std::string_view command);

// What the plans must keep to.
PlanConstraints Constraints(const JobFile& settings);

PlannerOptions SolverOptions(const JobFile& settings);

// Planner::TargetSeconds; where seconds were probably meant as a factor, the
// error says so, or a note where there is no error.
Result<double> TargetSeconds(const Planner& planner, const PlanTarget& target);
void NoteTarget(const Planner& planner, const PlanTarget& target, std::vector<std::string>* notes);

// "1.02x", "5.3", "economic", ...: the inverse of ParsePlanTarget.
std::string TargetText(const PlanTarget& target);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_JOB_H_
