// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_WORK_QUEUE_H_
#define PERSEUS_SERVER_STORE_WORK_QUEUE_H_

#include <soci/soci.h>

#include <optional>
#include <string>

#include "server/store/backend.h"
#include "server/store/facts.h"

// The queue of planning work: rows that WorkWanted facts made. Each is leased to one server until a
// time of Backend::lease_now(). All functions run within a transaction that the caller began, and
// throw what SOCI throws.
namespace perseus::store {

// Claims the unclaimed job that has waited longest; nullopt: there is none.
std::optional<std::string> ClaimWork(soci::session& sql, const Backend& backend,
                                     const std::string& server_id, double lease_seconds,
                                     WorkKind kind);

// False: the lease ended, and another server may have it.
bool RenewWork(soci::session& sql, const Backend& backend, const std::string& server_id,
               const std::string& job, double lease_seconds);

// Gives the lease back. Work of the job that was asked for since the claim can then be claimed.
void FinishWork(soci::session& sql, const Backend& backend, const std::string& server_id,
                const std::string& job);

// Ends all leases. For a store of one process: the process that had them is dead, and the clock of
// leases may have started again with a boot.
void ForgetLeases(soci::session& sql);

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_WORK_QUEUE_H_
