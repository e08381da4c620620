// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_STORE_TESTING_STORES_H_
#define PERSEUS_TESTS_STORE_TESTING_STORES_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/temporary_directory.h"
#include "server/store/store.h"
#include "store/facts_testing.h"
#include "support/postgres.h"

namespace perseus::store {

enum class Kind { kSqlite, kPostgresql, kPgBouncer };

std::string KindName(const ::testing::TestParamInfo<Kind>& kind);

// The server that all tests of this process share, each with its own database.
PostgresServer& SharedPostgres();

// A test that holds for every kind of store: skipped where there is no such
// database. `spec_` names an empty one.
class AnyStoreTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override;
  std::unique_ptr<Store> Open() const;

  const std::string& DatabaseName() const { return database_; }

  TemporaryDirectory directory_;
  std::string spec_;

 private:
  std::string database_;
};

}  // namespace perseus::store

#endif  // PERSEUS_TESTS_STORE_TESTING_STORES_H_
