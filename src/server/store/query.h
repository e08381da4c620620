// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_QUERY_H_
#define PERSEUS_SERVER_STORE_QUERY_H_

#include <soci/soci.h>

#include <string>

namespace perseus::store {

// One SQL statement with any number of values. It is sent once and has no name in the database;
// SOCI's own `prepare` would leave named statements behind, and a pooler like PgBouncer would hand
// them to other clients. Values are bound by reference in the order of their names in the text, so
// they must live as long as the query. Throws what SOCI throws.
class Query {
 public:
  Query(soci::session& sql, const std::string& text) : text_(text), statement_(sql) {}

  template <typename T>
  Query& Use(const T& value) {
    statement_.exchange(soci::use(value));
    return *this;
  }
  template <typename T>
  Query& Into(T& value) {
    statement_.exchange(soci::into(value));
    return *this;
  }
  // With whether it is NULL.
  template <typename T>
  Query& Use(const T& value, soci::indicator& indicator) {
    statement_.exchange(soci::use(value, indicator));
    return *this;
  }
  template <typename T>
  Query& Into(T& value, soci::indicator& indicator) {
    statement_.exchange(soci::into(value, indicator));
    return *this;
  }

  // Reads the next row into the variables of Into(); false: there is none.
  bool Next() {
    if (is_executed_) return statement_.fetch();
    Start();
    return statement_.execute(true);
  }

  // For statements without rows.
  void Execute() {
    Start();
    statement_.execute(true);
  }

 private:
  void Start() {
    is_executed_ = true;
    statement_.alloc();
    statement_.prepare(text_, soci::details::st_one_time_query);
    statement_.define_and_bind();
  }

  const std::string text_;
  soci::statement statement_;
  bool is_executed_ = false;
};

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_QUERY_H_
