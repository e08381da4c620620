// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/work_queue.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "server/store/query.h"

namespace perseus::store {

using soci::into;
using soci::use;

std::optional<std::string> ClaimWork(soci::session& sql, const Backend& backend,
                                     const std::string& server_id, double lease_seconds,
                                     WorkKind kind) {
  std::string job;
  const char* const which = kind == WorkKind::kUrgent  ? "urgent = 1 AND"
                            : kind == WorkKind::kOther ? "urgent = 0 AND"
                                                       : "";
  sql << fmt::format(
      "SELECT job FROM work WHERE {} leased_until <= {} ORDER BY urgent DESC, wanted_at LIMIT 1 {}",
      which, backend.lease_now(), backend.lock_or_skip()),
      into(job);
  if (!sql.got_data()) return std::nullopt;
  sql << fmt::format(
      "UPDATE work SET server = :s, leased_until = {} + :l, claimed = wanted WHERE job = :j",
      backend.lease_now()),
      use(server_id), use(lease_seconds), use(job);
  return job;
}

bool RenewWork(soci::session& sql, const Backend& backend, const std::string& server_id,
               const std::string& job, double lease_seconds) {
  std::string renewed;
  // Also one that has ended, as long as nobody else took it.
  Query query(sql, fmt::format("UPDATE work SET leased_until = {} + :l WHERE job = :j AND "
                               "server = :s RETURNING job",
                               backend.lease_now()));
  query.Use(lease_seconds).Use(job).Use(server_id).Into(renewed);
  return query.Next();
}

void FinishWork(soci::session& sql, const Backend& backend, const std::string& server_id,
                const std::string& job) {
  sql << "DELETE FROM work WHERE job = :j AND server = :s AND wanted = claimed", use(job),
      use(server_id);
  sql << fmt::format(
      "UPDATE work SET server = '', leased_until = 0, wanted_at = {} WHERE job = :j AND server = "
      ":s",
      backend.lease_now()),
      use(job), use(server_id);
}

void ForgetLeases(soci::session& sql) {
  // What waits keeps its order, before all that will be wanted.
  sql << "UPDATE work SET server = '', leased_until = 0, wanted_at = wanted_at - (SELECT "
         "MAX(wanted_at) FROM work)";
}

}  // namespace perseus::store
