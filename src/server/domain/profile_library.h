// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_PROFILE_LIBRARY_H_
#define PERSEUS_SERVER_DOMAIN_PROFILE_LIBRARY_H_

#include <map>
#include <string>

#include "server/base/shape.h"
#include "server/domain/profile_table.h"
#include "server/planning/job_spec.h"
#include "server/store/facts.h"

// Profiles outlive the jobs that measured them. A job reuses a stored profile only if everything
// that decides its times and energies is the same: the GPUs, the layout, and the label of the
// model. The job's owner gives the label and must make sure that it is right.
namespace perseus::server {

// The layout as canonical text: a profile fits two jobs if their texts are equal. Empty if the job
// has no label, or if a rank does not report its GPU and its clocks.
std::string LayoutOf(const LibraryRequest& request, const std::string& settings_json,
                     const Shape& shape, const std::map<int, store::RankRecord>& ranks);

// The library's record of the profile in `table`. CSV and time are left empty.
store::ProfileRecord RecordOf(const store::JobRecord& job, int sweep_round,
                              const std::string& layout, const ProfileTable& table,
                              const std::map<int, store::RankRecord>& ranks);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_PROFILE_LIBRARY_H_
