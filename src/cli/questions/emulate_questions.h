// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_QUESTIONS_EMULATE_QUESTIONS_H_
#define PERSEUS_CLI_QUESTIONS_EMULATE_QUESTIONS_H_

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/framework/terminal.h"
#include "cli/planning/job.h"
#include "cli/questions/emulation_summary.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/result.h"

namespace perseus::cli {

// Whether the flags go together; before anything is read.
Result<void> CheckQuestions(const EmulateFlags& flags);

// Whether the job can answer --imbalance and --sweep, and --assignment, where it is asked; before
// anything is planned.
Result<void> CheckShapeQuestions(const EmulateFlags& flags, const JobFile& settings);
Result<void> CheckAssignment(const EmulateFlags& flags, const JobFile& settings);

// The lengths of all pipelines' microbatches for --assignment, relative to the profile's.
Result<std::vector<double>> ReadLengths(const std::string& path, const Job& job);

// --power-budget and --deadline. Quick, and may be infeasible: asked first.
Result<void> AnswerBudgets(const EmulateFlags& flags, const Job& job, const Planner& planner,
                           double effort, EmulationSummary* summary);

// --ramp-limit and --band-limit: the policy, slowed down until it keeps them.
Result<void> AnswerLimits(const EmulateFlags& flags, const Planner& planner, const Policy& policy,
                          ProgressLine* progress, EmulationSummary* summary);

// --gpu-hours, --assignment (of `lengths`), --imbalance and --sweep. Precondition: `summary` has
// both runs.
Result<void> AnswerQuestions(const EmulateFlags& flags, const Job& job,
                             const std::vector<double>& lengths, double effort,
                             ProgressLine* progress, EmulationSummary* summary);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_QUESTIONS_EMULATE_QUESTIONS_H_
