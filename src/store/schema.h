// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_SCHEMA_H_
#define PERSEUS_STORE_SCHEMA_H_

#include <soci/soci.h>

#include <string>

#include "perseus/result.h"

namespace perseus::store {

// The version of the tables that this program writes.
inline constexpr int kSchemaVersion = 2;

// Brings the tables of a database to `target`, from none or an older version,
// in one transaction. A newer version than that is an error. Throws what SOCI
// throws. (`target` is for tests, which make files of old versions.)
Result<void> Migrate(soci::session& sql, const std::string& name, int target = kSchemaVersion);

}  // namespace perseus::store

#endif  // PERSEUS_STORE_SCHEMA_H_
