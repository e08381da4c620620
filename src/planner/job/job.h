// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_JOB_H_
#define PERSEUS_JOB_JOB_H_

#include <optional>
#include <string_view>
#include <vector>

#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/note.h"
#include "perseus/result.h"
#include "perseus/schedule.h"

namespace perseus::job {

// A note on a field, with its place where it comes from a job file.
Note NoteOn(const JobFile& settings, std::string_view key, Severity severity, std::string text);

// A note on watts that no GPU draws while it waits: of one GPU of each rank, or of all.
std::optional<Note> CheckWaitingPower(const JobFile& settings, const std::vector<double>& watts);

// Impossible, implausible or odd facts of a costed job, against profile/profile_checks.h; its
// profile's notes are not among them. The worst first.
std::vector<Note> CheckJob(const Job& job);

// The same order for notes from several checks.
void SortNotes(std::vector<Note>* notes);

// Whether the settings give a schedule in one way only.
Result<void> CheckOneSchedule(const JobFile& settings);

// Whether they say the same as a schedule that is not from them.
Result<void> CheckShape(const JobFile& settings, const Schedule& schedule);

// The parameters of a schedule that the settings name.
ScheduleSpec ScheduleSpecOf(const JobFile& settings, int num_stages);

// The schedule of the settings, which give one: by name, of `num_stages`, as a file or as a text.
Result<Schedule> ScheduleOf(const JobFile& settings, int num_stages);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_JOB_H_
