// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_STORE_TESTING_STORES_H_
#define PERSEUS_TESTS_STORE_TESTING_STORES_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/temporary_directory.h"
#include "store/facts_testing.h"
#include "store/store.h"
#include "support/postgres.h"

namespace perseus::store {

enum class Kind { kSqlite, kPostgresql, kPgBouncer };

inline std::string KindName(const ::testing::TestParamInfo<Kind>& kind) {
  switch (kind.param) {
    case Kind::kSqlite:
      return "Sqlite";
    case Kind::kPostgresql:
      return "Postgresql";
    case Kind::kPgBouncer:
      return "PgBouncer";
  }
  return "";
}

// A test that holds for every kind of store: skipped where there is no such
// database. `spec_` names an empty one.
class AnyStoreTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::kSqlite) {
      spec_ = "sqlite:" + directory_.Path("perseus store.sqlite");
      return;
    }
    if (const std::string why = PostgresServer::WhyMissing(); !why.empty()) GTEST_SKIP() << why;
    server_ = std::make_unique<PostgresServer>();
    spec_ = server_->Uri();
    if (GetParam() == Kind::kPostgresql) return;
    if (const std::string why = PgBouncer::WhyMissing(); !why.empty()) GTEST_SKIP() << why;
    pooler_ = std::make_unique<PgBouncer>(*server_);
    spec_ = pooler_->Uri();
  }
  std::unique_ptr<Store> Open() const { return OpenOrThrow(spec_); }

  TemporaryDirectory directory_;
  std::unique_ptr<PostgresServer> server_;
  std::unique_ptr<PgBouncer> pooler_;
  std::string spec_;
};

}  // namespace perseus::store

#endif  // PERSEUS_TESTS_STORE_TESTING_STORES_H_
