// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_SCHEMA_H_
#define PERSEUS_SERVER_STORE_SCHEMA_H_

#include <soci/soci.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/result.h"
#include "server/store/backend.h"

namespace perseus::store {

// The version of the tables that this program writes.
inline constexpr int kSchemaVersion = 1;

// The table of this version, which Migrate() itself fills.
inline constexpr std::string_view kVersionTable = "schema_version";

// The names of all tables of the database, in the order in which they were made. Throws what SOCI
// throws.
std::vector<std::string> Tables(soci::session& sql, const Backend& backend);

// Whether the database holds the tables of a store; false: it has no tables. Fails if it has the
// tables of another program. Throws what SOCI throws.
Result<bool> CheckIsStore(soci::session& sql, const Backend& backend);

// The statements that bring the tables from one version to the next.
using SchemaStep = std::span<const std::string_view>;
// Those of this program, from an empty database on.
std::span<const SchemaStep> SchemaSteps();

// Creates the tables, or migrates those of an older version to the last of `steps`. The caller must
// have begun a transaction with Backend::BeginToMigrate(). Fails, and writes nothing, if the tables
// are newer. Throws what SOCI throws. (Tests add steps, to be a later program.)
Result<void> Migrate(soci::session& sql, const Backend& backend,
                     std::span<const SchemaStep> steps = SchemaSteps());

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_SCHEMA_H_
