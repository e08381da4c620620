// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_TABLES_H_
#define PERSEUS_SERVER_STORE_TABLES_H_

#include <soci/soci.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
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
  std::optional<BootClock::time_point> deadline = {};
  std::function<bool()> is_wanted = {};  // See Store::Add(); empty: always.

  // Whether it may still be written.
  bool IsInTime() const {
    return (!deadline || BootClock::now() < *deadline) && (!is_wanted || is_wanted());
  }
};

const std::string& JobOf(const Fact& fact);
bool IsRow(const Fact& fact);     // A rank or measurements.
bool IsChange(const Fact& fact);  // StoredJob::revision counts it.

// Checks whether a request can be written at all. kInvalidInput: it has no facts, is about several
// jobs, or has text that the database cannot store.
Result<void> CheckRequest(const Backend& backend, const Request& request);

// Writes requests about one job. Several at once are allowed only if all of them contain only rows.
// kConflict: the job does not exist; nothing was written. `name`: of the store, for messages.
Revision WriteRequests(soci::session& sql, const std::string& name,
                       std::span<const Request* const> requests);

// Reads one job; nullopt: it does not exist. kDamaged: its cells are invalid.
Result<std::optional<StoredJob>> ReadJob(soci::session& sql, const std::string& name,
                                         const std::string& id);
// Reads the heads of all jobs in one query. A damaged one lacks what cannot be read.
std::vector<JobHead> ReadHeads(soci::session& sql);
// If `id` or `layout` is set, ReadProfiles() returns at most one profile, with its CSV. Else it
// returns all profiles, the newest first, without CSV.
struct ProfileQuery {
  std::string id = {};
  std::string layout = {};
};
std::vector<ProfileRecord> ReadProfiles(soci::session& sql, const ProfileQuery& wanted);
// By job and start.
std::vector<NamedHistoryRow> ReadHistory(soci::session& sql, const HistoryQuery& wanted);
// Deletes rows of this resolution that began before `start`, the oldest first, at most so many.
// Returns how many that were.
std::int64_t DeleteHistory(soci::session& sql, Resolution resolution, std::int64_t start,
                           std::int64_t most);

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_TABLES_H_
