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

std::string KindName(const ::testing::TestParamInfo<Kind>& kind);

// A test that holds for every kind of store: skipped where there is no such
// database. `spec_` names an empty one.
class AnyStoreTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override;
  std::unique_ptr<Store> Open() const;

  TemporaryDirectory directory_;
  std::string spec_;
};

}  // namespace perseus::store

#endif  // PERSEUS_TESTS_STORE_TESTING_STORES_H_
