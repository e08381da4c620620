// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_POSTGRESQL_ADDRESS_H_
#define PERSEUS_SERVER_STORE_POSTGRESQL_ADDRESS_H_

#include <string>

#include "perseus/result.h"

namespace perseus::store {

// The address of a database.
struct PostgresqlAddress {
  std::string uri;       // With time limits for a dead server. Contains the password.
  std::string name;      // For messages: "postgresql://HOST:PORT/DATABASE".
  std::string password;  // Must not appear in messages; may be empty.
};

// Parses a URI that a person wrote and adds time limits where it sets none. kInvalidInput: the
// message shows no part of `uri`, which may hold a password.
Result<PostgresqlAddress> ParsePostgresqlAddress(const std::string& uri);

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_POSTGRESQL_ADDRESS_H_
