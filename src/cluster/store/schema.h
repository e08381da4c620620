// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_SCHEMA_H_
#define PERSEUS_STORE_SCHEMA_H_

#include <soci/soci.h>

#include "perseus/result.h"
#include "store/backend.h"

namespace perseus::store {

// The version of the tables that this program writes.
inline constexpr int kSchemaVersion = 5;

// Whether the tables are those of a store; false where there are none. An error
// where they are another program's. Throws what SOCI throws.
Result<bool> CheckIsStore(soci::session& sql, const Backend& backend);

// Brings the tables of a database to `target`, from none or an older version,
// within a transaction that the caller began with Backend::BeginToMigrate(). A newer
// version than that is an error; nothing is written then. Throws what SOCI throws.
// (`target` is for tests, which make files of old versions.)
Result<void> Migrate(soci::session& sql, const Backend& backend, int target = kSchemaVersion);

}  // namespace perseus::store

#endif  // PERSEUS_STORE_SCHEMA_H_
