// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "store/testing_stores.h"

#include <fmt/format.h>

#include <memory>
#include <string>

namespace perseus::store {
namespace {

// One for all tests of the process, each of which has a database of its own.
struct Shared {
  PostgresServer server;
  PgBouncer* pooler() {
    if (pooler_ == nullptr) pooler_ = std::make_unique<PgBouncer>(server);
    return pooler_.get();
  }
  int databases = 0;

 private:
  std::unique_ptr<PgBouncer> pooler_;
};

Shared& SharedServer() {
  static Shared shared;
  return shared;
}

}  // namespace

PostgresServer& SharedPostgres() { return SharedServer().server; }

std::string KindName(const ::testing::TestParamInfo<Kind>& kind) {
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

void AnyStoreTest::SetUp() {
  if (GetParam() == Kind::kSqlite) {
    spec_ = "sqlite:" + directory_.Path("perseus store.sqlite");
    return;
  }
  if (const std::string why = PostgresServer::WhyMissing(); !why.empty()) GTEST_SKIP() << why;
  if (GetParam() == Kind::kPgBouncer && !PgBouncer::WhyMissing().empty()) {
    GTEST_SKIP() << PgBouncer::WhyMissing();
  }
  Shared& shared = SharedServer();
  database_ = fmt::format("test{}", ++shared.databases);
  shared.server.Run("CREATE DATABASE " + database_);
  spec_ = GetParam() == Kind::kPgBouncer ? shared.pooler()->Uri(database_)
                                         : shared.server.Uri(database_);
}

std::unique_ptr<Store> AnyStoreTest::Open() const { return OpenOrThrow(spec_); }

}  // namespace perseus::store
