// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLANNER_C_PLANNER_INPUT_H_
#define PERSEUS_PLANNER_C_PLANNER_INPUT_H_

#include <string_view>

#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/planner_c.h"
#include "perseus/result.h"

namespace perseus::planner_c {

// The settings of a JSON object; "" is none. They come from no file: errors name the key and no
// place.
Result<JobFile> ReadSettings(std::string_view json);

// The settings that only say which plan of a job is wanted; those of `job` where they do not.
// Conditions are refused in both.
Result<JobFile> ReadPlanSettings(std::string_view json, const JobFile& job);

Result<Job> ReadJob(const perseus_planner_input& input);

}  // namespace perseus::planner_c

#endif  // PERSEUS_PLANNER_C_PLANNER_INPUT_H_
