// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_POSTGRESQL_FAULTS_H_
#define PERSEUS_SERVER_STORE_POSTGRESQL_FAULTS_H_

#include <exception>
#include <stdexcept>
#include <string>

#include "server/store/backend.h"
#include "server/store/postgresql_address.h"

namespace perseus::store {

// The connection works, but this database cannot be used (for example: too old). what() is the end
// of a sentence that begins with the database's name.
class UnfitDatabase : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What an exception of SOCI's PostgreSQL backend means: decided by its SQLSTATE or, if there is no
// connection and so no SQLSTATE, by libpq's message.
Fault PostgresqlFault(const PostgresqlAddress& address, const std::exception& exception);

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_POSTGRESQL_FAULTS_H_
