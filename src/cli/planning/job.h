// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_JOB_H_
#define PERSEUS_CLI_PLANNING_JOB_H_

#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/framework/terminal.h"
#include "perseus/job.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/result.h"

namespace perseus::cli {

// The flag of a job's field: "--blocking-power" of "blocking_power", or "--set gpu_noise". Empty
// where there is none.
std::string FlagOfField(std::string_view key);

// How a command line says that what is implausible is meant: "give --accept-implausible".
std::string AcceptingFlag();

// The job's fields that the flags set.
JobFile Overrides(const JobFlags& flags);

// The job file, where there is one, with the flags over it.
Result<JobFile> MergeSettings(const JobFlags& flags);

// The input files of the job.
std::vector<InputFile> InputsOf(const JobFlags& flags, const JobFile& settings);

// Reads and costs what the settings name; errors speak of flags. `command`
// ("plan", ...) is for examples in messages.
Result<Job> LoadJob(const JobFlags& flags, JobFile settings, std::string_view command);
// Refuses a job of which no figure could be believed, unless the user accepts that.
Result<Job> LoadBelievableJob(const JobFlags& flags, JobFile settings, std::string_view command);

// Refuses what would be taken no notice of: a spread without a latency, tokens without a
// table. `replays`: a plan, which may have conditions of its own. `has_lengths`: of microbatches,
// beside the work table.
Result<void> CheckPairs(const JobFile& settings, bool replays, bool has_lengths);

// The planner of the job. Says on standard error what is expected to take long:
// the frontier, and `plans` plans of effort 1.
Result<Planner> MakePlanner(const Job& job, double plans, ProgressLine* progress);

// How a field is named in a sentence: as the flag, or as the key where it is in the job file.
// At its start: with the place in the file, too.
std::string NameOf(const JobFile& settings, std::string_view key);
std::string NameAndPlaceOf(const JobFile& settings, std::string_view key);
// How a value is set, in the words of whoever set the field: --at min-energy, or at = "min-energy".
// `value` is as a flag takes it.
std::string SettingOf(const JobFile& settings, std::string_view key, std::string_view value);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_JOB_H_
