// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_JOB_SCHEDULE_H_
#define PERSEUS_JOB_JOB_SCHEDULE_H_

#include "perseus/job_file.h"
#include "perseus/result.h"
#include "perseus/schedule.h"

namespace perseus::job {

// Whether the settings give a schedule in one way only.
Result<void> CheckOneSchedule(const JobFile& settings);

// Whether they say the same as a schedule that is not from them.
Result<void> CheckShape(const JobFile& settings, const Schedule& schedule);

// What to build of a schedule that the settings name.
ScheduleSpec ScheduleSpecOf(const JobFile& settings, int num_stages);

// The schedule of the settings, which give one: by name, of `num_stages`, as a file or as a text.
Result<Schedule> ScheduleOf(const JobFile& settings, int num_stages);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_JOB_SCHEDULE_H_
