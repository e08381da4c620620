// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_POSTGRESQL_H_
#define PERSEUS_SERVER_STORE_POSTGRESQL_H_

#include <memory>
#include <string>

#include "perseus/result.h"
#include "server/store/backend.h"

namespace perseus::store {

// A store in a database of PostgreSQL 12 or later, for any number of processes,
// directly or through PgBouncer: nothing is kept in a session from one transaction
// to the next. `uri` is libpq's, "postgresql://USER:PASSWORD@HOST:PORT/DATABASE?...".
// Does not connect. kInvalidInput: `uri` is not such a URI.
Result<std::shared_ptr<const Backend>> OpenPostgresql(const std::string& uri);

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_POSTGRESQL_H_
