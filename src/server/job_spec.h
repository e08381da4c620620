// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_JOB_SPEC_H_
#define PERSEUS_SERVER_JOB_SPEC_H_

#include <memory>
#include <string>

#include "perseus/job.h"
#include "perseus/result.h"
#include "server/failure.h"
#include "server/shape.h"
#include "store/facts.h"

namespace perseus::server {

// What a job may be at most.
inline constexpr std::int64_t kMostRanks = 131'072;

// A job that may be created: checked as far as is possible before it is
// measured.
struct JobSpec {
  std::string client_key;  // Empty: nobody will ask again.
  std::string name;
  std::string settings_json;  // As ParseJobFile() reads it.
  std::string profile_csv;    // Empty: the ranks measure.
  Shape shape;
};

// From the settings (the object `job` of a request, with the keys of job
// files, and `tensor_parallel` and `data_parallel` for `tp` and `dp`) and a
// profile, which may be empty. Keys that name files are refused.
Outcome<JobSpec> MakeJobSpec(const std::string& settings_json, const std::string& profile_csv);

// The costed job of a record that has its profile.
Result<std::shared_ptr<const Job>> BuildJob(const store::JobRecord& record);

// Where a job should be on its frontier: the record's own, or the settings'.
PlanTarget TargetOf(const store::JobRecord& record);
std::string TargetText(const PlanTarget& target);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_JOB_SPEC_H_
