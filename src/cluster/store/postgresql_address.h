// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_POSTGRESQL_ADDRESS_H_
#define PERSEUS_STORE_POSTGRESQL_ADDRESS_H_

#include <string>

#include "perseus/result.h"

namespace perseus::store {

// Where a database is, and how to reach it.
struct PostgresqlAddress {
  std::string uri;       // With limits on how long a dead server is waited for. Holds the password.
  std::string name;      // For messages: "postgresql://HOST:PORT/DATABASE".
  std::string password;  // To be kept out of messages; may be empty.
};

// Of what a person wrote, whose own settings stay. Errors: kInvalidInput, with a
// sentence that has nothing of `uri` in it.
Result<PostgresqlAddress> ParsePostgresqlAddress(const std::string& uri);

}  // namespace perseus::store

#endif  // PERSEUS_STORE_POSTGRESQL_ADDRESS_H_
