// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_JOB_SPEC_H_
#define PERSEUS_SERVER_PLANNING_JOB_SPEC_H_

#include <memory>
#include <string>

#include "perseus/computation.h"
#include "perseus/job.h"
#include "perseus/result.h"
#include "perseus/schedule.h"
#include "server/base/failure.h"
#include "server/base/shape.h"
#include "store/facts.h"

namespace perseus::server {

// What a job may be at most.
inline constexpr std::int64_t kMostRanks = 131'072;
// Of one pipeline's iteration: the ladder of plans of more fits no 512 MiB.
inline constexpr std::int64_t kMostComputations = 200'000;
// The same of all pipelines together, where the job has conditions.
inline constexpr std::int64_t kMostHeldComputations = 400'000;
// That one rank reports: some thirty repetitions of every clock, type and stage it can have.
inline constexpr std::size_t kMostMeasuredRows = 100'000;

// A job that may be created: checked as far as is possible before it is
// measured.
struct JobSpec {
  std::string client_key;  // Empty: nobody will ask again.
  std::string name;
  std::string settings_json;  // As ParseJobFile() reads it.
  std::string profile_csv;    // Empty: the ranks measure.
  std::string library_json;   // See LibraryRequest.
  Shape shape;
};

// The settings (the object `job` of a request) with the keys of job files only, and what they ask
// of the profile library.
struct JobDescription {
  std::string settings_json;
  std::string library_json;
};
Outcome<JobDescription> DescriptionOf(const std::string& settings_json);

// From the settings (the object `job` of a request, with the keys of job
// files, `tensor_parallel` and `data_parallel` for `tp` and `dp`, and what the profile library
// asks: `model`, `microbatch_size`, `reuse_profile`) and a
// profile, which may be empty. Keys that name files are refused.
Outcome<JobSpec> MakeJobSpec(const std::string& settings_json, const std::string& profile_csv);

// What the ranks of a job without a profile can measure.
struct Measurable {
  int num_stages = 0;
  bool splits_backward = false;  // Whether input and weight gradients are apart.

  bool Has(ComputationType type) const {
    return splits_backward || type == ComputationType::kForward ||
           type == ComputationType::kBackward;
  }
};
Result<Measurable> MeasurableOf(const std::string& settings_json);

// Of settings that name it whole: `stages` too, which may else come from the profile.
Result<Schedule> ScheduleOfSettings(const std::string& settings_json);

// The costed job of a record that has its profile.
Result<std::shared_ptr<const Job>> BuildJob(const store::JobRecord& record);

// Where a job should be on its frontier: the record's own, or the settings'.
PlanTarget TargetOf(const store::JobRecord& record);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_JOB_SPEC_H_
