// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_JOB_H_
#define PERSEUS_CLI_JOB_H_

#include <string>

#include "cli/command_line.h"
#include "perseus/job_file.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/profile.h"
#include "perseus/result.h"

namespace perseus::cli {

// A job as read: what `plan` and `frontier` start from.
struct Job {
  JobFile settings;  // File and flags together.
  Profile profile;
  FixedTimes fixed;
  CostSpec costs;
  CostedPipeline pipeline;
  int virtual_stages = 1;
};

// The job file, where there is one, with the flags over it.
Result<JobFile> MergeSettings(const JobFlags& flags);

// Reads and costs what the settings name. `command` ("plan", "frontier") is
// for examples in messages.
Result<Job> LoadJob(const JobFlags& flags, std::string_view command);

PlannerOptions SolverOptions(const JobFile& settings);

// "1.02x", "5.3", "economic", ...: the inverse of ParsePlanTarget.
std::string TargetText(const PlanTarget& target);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_JOB_H_
