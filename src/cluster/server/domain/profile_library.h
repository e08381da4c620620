// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_PROFILE_LIBRARY_H_
#define PERSEUS_SERVER_DOMAIN_PROFILE_LIBRARY_H_

#include <map>
#include <string>

#include "server/base/library_request.h"
#include "server/base/shape.h"
#include "server/domain/profile_table.h"
#include "server/planning/job_spec.h"
#include "store/facts.h"

// Profiles outlive the jobs that measured them. A job takes one of them over only
// where all that decides about times and energies is the same: the label of the model,
// which the job's owner gives and answers for, the layout, and the GPUs.
namespace perseus::server {

// What two jobs must have in common, as canonical text. Empty where the job has no label,
// or a rank does not say its GPU and its clocks.
std::string LayoutOf(const LibraryRequest& request, const std::string& settings_json,
                     const Shape& shape, const std::map<int, store::RankRecord>& ranks);

// The record of a profile that `table` is, but for its CSV and time.
store::ProfileRecord RecordOf(const store::JobRecord& job, int sweep_round,
                              const std::string& layout, const ProfileTable& table,
                              const std::map<int, store::RankRecord>& ranks);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_PROFILE_LIBRARY_H_
