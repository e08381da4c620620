// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_TABLES_H_
#define PERSEUS_STORE_TABLES_H_

#include <soci/soci.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/boot_clock.h"
#include "perseus/result.h"
#include "store/backend.h"
#include "store/facts.h"

// Facts in and out of the tables, within a transaction that the caller began.
// All throw what SOCI throws.
namespace perseus::store {

// Facts about one job that are written together, or not at all.
struct Request {
  std::vector<Fact> facts;
  std::optional<std::int64_t> expected_revision = {};
  std::optional<BootClock::time_point> deadline = {};
};

// The job that a fact is about.
const std::string& JobOf(const Fact& fact);
// Whether it counts as a rank or measurements, or changes no mark at all.
bool IsRow(const Fact& fact);
bool IsUnmarked(const Fact& fact);

// Of requests about one job: the marks after them. More than one at once only
// where all have nothing but ranks and measurements and expect no revision.
// kConflict, and nothing is written: there is no such job, or its revision is not
// the one expected.
Result<JobMarks> WriteRequests(soci::session& sql, const Backend& backend,
                               std::string_view server_id,
                               std::span<const Request* const> requests);

void WriteFact(soci::session& sql, const Backend& backend, std::string_view server_id,
               const Fact& fact);
// As many in one statement as go. Of one rank the last record counts.
void WriteRanks(soci::session& sql, const std::vector<const RankRecord*>& ranks);

// All jobs by the time of their creation, or the one with this id. `damaged` has a
// sentence (kDamaged) for each that is left out.
struct ReadJobsResult {
  std::vector<StoredJob> jobs = {};
  std::vector<Error> damaged = {};
};
ReadJobsResult ReadJobs(soci::session& sql, const std::string& name, const std::string& server_id,
                        const std::string& id, Parts parts);
// The same of their heads, in one query.
std::vector<JobHead> ReadHeads(soci::session& sql, const std::string& name,
                               std::vector<Error>* damaged);
// Of all jobs, or of those of `ids`, where it has any; those that are not there are left out.
std::vector<JobMarks> ReadMarks(soci::session& sql, const std::vector<std::string>& ids = {});
// The newest first; at most one, with its CSV, where either is set.
struct ProfileQuery {
  std::string id = {};
  std::string layout = {};
};
std::vector<ProfileRecord> ReadProfiles(soci::session& sql, const ProfileQuery& wanted);
std::optional<std::string> ReadIdOfKey(soci::session& sql, const std::string& client_key);

}  // namespace perseus::store

#endif  // PERSEUS_STORE_TABLES_H_
