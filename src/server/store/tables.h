// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_TABLES_H_
#define PERSEUS_SERVER_STORE_TABLES_H_

#include <soci/soci.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/clocks.h"
#include "perseus/result.h"
#include "server/store/backend.h"
#include "server/store/facts.h"

// Writes facts to the tables and reads them, within a transaction that the caller began. All
// functions throw as SOCI does.
namespace perseus::store {

// Facts about one job that are written together or not at all.
struct Request {
  std::vector<Fact> facts;
  std::optional<std::int64_t> expected_revision = {};
  std::optional<BootClock::time_point> deadline = {};
  std::function<bool()> is_wanted = {};  // See Store::Add(); empty: always.

  // Whether it may still be written.
  bool IsInTime() const {
    return (!deadline || BootClock::now() < *deadline) && (!is_wanted || is_wanted());
  }
};

const std::string& JobOf(const Fact& fact);
// IsRow(): JobMarks::rows counts this fact. IsUnmarked(): no mark counts it.
bool IsRow(const Fact& fact);
bool IsUnmarked(const Fact& fact);

// Checks whether a request can be written at all. kInvalidInput: it has no facts, is about several
// jobs, expects a revision of a job that it creates, or has text that the database cannot store.
Result<void> CheckRequest(const Backend& backend, const Request& request);

// Writes requests about one job and returns its new marks. Several requests at once are allowed
// only if all of them contain only ranks and measurements and expect no revision. kConflict: the
// job does not exist or does not have the expected revision; nothing was written. Requests that are
// no longer in time once the job's row is locked are not written but added to `late`.
Result<JobMarks> WriteRequests(soci::session& sql, const Backend& backend,
                               std::string_view server_id, std::span<const Request* const> requests,
                               std::set<const Request*>* late);

// Reads one job; nullopt: it does not exist. kDamaged: its cells are invalid.
Result<std::optional<StoredJob>> ReadJob(soci::session& sql, const std::string& name,
                                         const std::string& server_id, const std::string& id,
                                         Parts parts);
// Reads the heads of all jobs in one query. Damaged jobs are left out; `damaged` has an error
// (kDamaged) for each.
std::vector<JobHead> ReadHeads(soci::session& sql, const std::string& name,
                               std::vector<Error>* damaged);
// Reads the marks of all jobs or, if `ids` is not empty, of these. Jobs that do not exist are left
// out.
std::vector<JobMarks> ReadMarks(soci::session& sql, const std::vector<std::string>& ids = {});
// If `id` or `layout` is set, ReadProfiles() returns at most one profile, with its CSV. Else it
// returns all profiles, the newest first, without CSV.
struct ProfileQuery {
  std::string id = {};
  std::string layout = {};
};
std::vector<ProfileRecord> ReadProfiles(soci::session& sql, const ProfileQuery& wanted);
// By job and start, summed over servers.
std::vector<NamedHistoryRow> ReadHistory(soci::session& sql, const HistoryQuery& wanted);
// Deletes rows of this resolution that began before `start`, the oldest first, at most so many.
// Returns how many that were.
std::int64_t DeleteHistory(soci::session& sql, Resolution resolution, std::int64_t start,
                           std::int64_t most);
std::optional<std::string> ReadIdOfKey(soci::session& sql, const std::string& client_key);

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_TABLES_H_
