// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_FILE_H_
#define PERSEUS_JOB_FILE_H_

// Link perseus::core (pkg-config: perseus-core).

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/export.h"
#include "perseus/plan.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// How much longer than measured a computation may take; see PlanConstraints.
struct TimeMargin {
  double sigmas = 0;
  double fraction = 0;

  friend bool operator==(const TimeMargin&, const TimeMargin&) = default;
};

// How microbatches differ: a work table in a file, or a factor for each microbatch (see
// perseus/work.h). Exactly one of the two is given.
struct WorkSetting {
  std::string file = {};
  std::vector<double> factors = {};

  friend bool operator==(const WorkSetting&, const WorkSetting&) = default;
};

// A place in a job file; line and column count from 1.
struct JobPlace {
  std::string file = {};
  int line = 0;
  int column = 0;

  friend bool operator==(const JobPlace&, const JobPlace&) = default;
};

// The settings of a job: what a job file or the flags of `perseus plan` say. What they do not say
// has no value. ReadJobFile() resolves paths against the folder of the file. A plain value.
struct JobFile {
  std::optional<std::string> profile = {};   // Path.
  std::optional<std::string> baseline = {};  // See ProfileOptions.
  std::optional<bool> strict = {};           // See ProfileOptions.
  // Implausible values are meant: they count as odd.
  std::optional<bool> accept_implausible = {};
  // Only one of the next three.
  std::optional<std::string> schedule = {};       // Canonical name.
  std::optional<std::string> schedule_file = {};  // Path.
  std::optional<std::string> schedule_csv = {};   // Text.
  std::optional<int> stages = {};                 // Of the model.
  std::optional<int> microbatches = {};
  std::optional<int> virtual_stages = {};
  std::optional<int> microbatch_group_size = {};
  std::vector<double> blocking_power_watts = {};  // Empty, one, or one per rank.
  bool waiting_is_constant = false;               // No key: CostSpec::waiting_is_constant.
  bool blocking_power_is_assumed = false;         // No key: nobody knows it, so it is no oddity.
  // There is a table [conditions], which gives neither noise nor latency: a server takes those that
  // the job measures while it trains. Without training there are none.
  bool measures_conditions = false;
  std::optional<int> tensor_parallel = {};
  std::optional<int> data_parallel = {};
  std::optional<double> split_ratio = {};
  std::optional<WorkSetting> work = {};
  std::optional<std::string> work_fit = {};     // Path; for a work table in tokens.
  std::optional<double> work_tokens = {};       // Of a microbatch when the profile was measured.
  std::vector<double> comm_delay_seconds = {};  // Empty, one, or one per boundary.
  std::optional<double> data_loading_seconds = {};
  std::optional<double> iteration_overhead_seconds = {};
  std::optional<PlanTarget> at = {};
  std::optional<Granularity> granularity = {};
  std::optional<bool> exponential_fit = {};
  std::optional<TimeMargin> time_margin = {};
  std::optional<double> coarse_watts = {};  // 0: exact. Empty: the planner decides.
  std::optional<double> effort = {};
  std::optional<std::string> output = {};  // Directory.

  // The table [conditions]: what real GPUs do to a plan. See Conditions.
  std::optional<ValueRange> noise = {};  // Of a computation.
  std::optional<double> stage_noise = {};
  std::optional<double> gpu_noise = {};
  std::optional<ValueRange> rank_noise = {};
  std::optional<double> noise_correlation = {};
  std::optional<double> rare_noise = {};
  std::optional<double> rare_noise_share = {};
  std::optional<ValueRange> switch_latency_seconds = {};
  std::vector<ClockLatency> switch_latency_at = {};  // Empty: all clocks take switch_latency.
  std::optional<double> switch_latency_spread_seconds = {};
  std::optional<double> switch_stall_seconds = {};
  std::optional<double> max_early_loss = {};
  std::optional<double> min_call_interval_seconds = {};
  std::optional<double> change_price_joules = {};
  std::optional<double> max_slowdown = {};
  std::optional<double> confidence = {};
  std::optional<int> max_changes = {};
  std::optional<CallAhead> call_ahead = {};
  std::optional<bool> profile_errors = {};

  // Places of the keys' values in the file, for errors that are found later. Empty without a file.
  std::map<std::string, JobPlace, std::less<>> places = {};
};

// Reads a job file, ".toml" or ".json". Errors name file:line:column and the key. An unknown key is
// an error that names the nearest known one. A file over 1 MiB is refused.
Result<JobFile> ReadJobFile(const std::string& path);

enum class JobFileFormat { kToml, kJson };

// The same on text in memory. `name` stands for the path: in messages, and where relative paths
// begin.
Result<JobFile> ParseJobFile(std::string_view text, const std::string& name, JobFileFormat format);

// Whether `perseus plan` should read a path as a job file (by its extension).
bool IsJobFileName(std::string_view path);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_JOB_FILE_H_
