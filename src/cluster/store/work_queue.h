// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_WORK_QUEUE_H_
#define PERSEUS_STORE_WORK_QUEUE_H_

#include <soci/soci.h>

#include <optional>
#include <string>

#include "store/backend.h"
#include "store/facts.h"

// Who computes what: rows that WorkWanted made, each leased to one server until a
// time by the database's clock (of SQLite, by one that nobody sets). All within a transaction that
// the caller began; all throw what SOCI throws.
namespace perseus::store {

// The job that has waited longest of those that nobody holds; nullopt: none does.
std::optional<std::string> ClaimWork(soci::session& sql, const Backend& backend,
                                     const std::string& server_id, double lease_seconds,
                                     WorkKind kind);

// False: the lease ended, and another server may have it.
bool RenewWork(soci::session& sql, const Backend& backend, const std::string& server_id,
               const std::string& job, double lease_seconds);

// Gives the lease back. What was wanted since the claim is there to be claimed.
void FinishWork(soci::session& sql, const Backend& backend, const std::string& server_id,
                const std::string& job);

// Ends all leases, as where the only process that had them is dead, or the zero of their
// clock is another one.
void ForgetLeases(soci::session& sql);

}  // namespace perseus::store

#endif  // PERSEUS_STORE_WORK_QUEUE_H_
