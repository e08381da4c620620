// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_JOB_SPEC_H_
#define PERSEUS_SERVER_PLANNING_JOB_SPEC_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perseus/computation.h"
#include "perseus/job.h"
#include "perseus/result.h"
#include "perseus/schedule.h"
#include "server/base/failure.h"
#include "server/base/shape.h"
#include "server/store/facts.h"
#include "wire/reports.h"

namespace perseus::server {

// A job's request to the library of profiles. Stored in the column jobs.library.
struct LibraryRequest {
  std::string model;           // The owner's label of the model. Empty: do not use the library.
  double microbatch_size = 0;  // 0: not given.
  bool may_reuse = true;
};
std::string FormatLibraryRequest(const LibraryRequest& request);
// Returns an empty request if `json` cannot be read.
LibraryRequest ParseLibraryRequest(const std::string& json);

// Upper limits of a job.
inline constexpr std::int64_t kMostRanks = 131'072;
// In an iteration of one pipeline. A ladder of plans with more would not fit into 512 MiB.
inline constexpr std::int64_t kMostComputations = 200'000;
// In an iteration of all pipelines together, for a job with conditions.
inline constexpr std::int64_t kMostHeldComputations = 400'000;
// Of a schedule's text. More than all cells of kMostComputations, with communication between them.
inline constexpr std::size_t kMostScheduleBytes = std::size_t{4} << 20;
// Per rank: about thirty repetitions of each clock, type and stage that a rank can have.
inline constexpr std::size_t kMostMeasuredRows = 100'000;

// A new job, checked as far as is possible before its measurements.
struct JobSpec {
  std::string client_key;  // Empty: the client has no key to find the job again.
  JobLabels labels;
  std::string name;
  std::string settings_json;    // In the form that ParseJobFile() reads.
  std::string profile_csv;      // Empty: the ranks measure.
  std::string library_json;     // See LibraryRequest.
  std::string conditions_json;  // See ConditionsState; empty: the job does not measure any.
  Shape shape;
  // The reason why no new job is made: it is not believable. One that is there is found.
  std::string doubt;
};

// The settings (the object `job` of a request) with the keys of job files only, and their request
// to the profile library.
struct JobDescription {
  std::string settings_json;
  std::string library_json;
};
Outcome<JobDescription> DescriptionOf(const std::string& settings_json);

// Makes a job from its settings and a profile, which may be empty. The settings are the object
// `job` of a request. Its keys are those of job files, but `tensor_parallel` and `data_parallel`
// replace `tp` and `dp`, and `model`, `microbatch_size` and `reuse_profile` are for the library of
// profiles. Keys that name files are refused.
Outcome<JobSpec> MakeJobSpec(const std::string& settings_json, const std::string& profile_csv);

// The computations that the ranks of a job without a profile can measure.
struct Measurable {
  int num_stages = 0;
  bool splits_backward = false;  // Input and weight gradients are separate computations.
  bool recomputes = false;       // Forwards run again, as computations of their own.

  bool Has(ComputationType type) const {
    if (type == ComputationType::kRecompute) return recomputes;
    return splits_backward || type == ComputationType::kForward ||
           type == ComputationType::kBackward;
  }
};
Result<Measurable> MeasurableOf(const std::string& settings_json);

// The schedule of settings. They must include `stages`, as there is no profile to take it from.
Result<Schedule> ScheduleOfSettings(const std::string& settings_json);

using wire::ComputationCounts;
// Those of each rank of a pipeline, by the schedule of the settings; as ScheduleOfSettings().
Result<std::vector<ComputationCounts>> CountsOfSettings(const std::string& settings_json);

// Builds the job of a record, which must hold its profile.
Result<std::shared_ptr<const Job>> BuildJob(const store::JobRecord& record);

// The job's target: that of the record or, if it has none, that of the settings.
PlanTarget TargetOf(const store::JobRecord& record);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_JOB_SPEC_H_
