// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_COLUMNS_H_
#define PERSEUS_STORE_COLUMNS_H_

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/store/backend.h"
#include "server/store/cells.h"

// One table of columns for each table of the database: names and members stand there once. Writing
// and reading are loops over it.
namespace perseus::store {

// A cell that SOCI reads without an error, but that the program did not write.
struct OddCell {
  std::string_view table;
};

// A value in the form in which it is bound; SOCI knows long long, not int64_t.
struct Value {
  std::string text = {};
  long long integer = 0;
  double real = 0;
};

enum class CellType : std::uint8_t { kText, kInteger, kReal };

template <typename Row>
struct Column {
  std::string_view name;
  CellType type;
  void (*get)(const Row& row, Value* value);
  bool (*set)(const Value& value, Row* row);  // False: it is not what `get` makes.
};

namespace internal {

template <typename T>
constexpr bool kIsWhole = std::is_integral_v<T> || std::is_same_v<T, std::optional<int>> ||
                          std::is_same_v<T, JobOrigin> || std::is_same_v<T, Resolution>;
template <typename T>
constexpr bool kIsReal = std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>;

template <typename T>
void Get(const T& member, Value* value) {
  if constexpr (std::is_same_v<T, std::string>) {
    value->text = member;
  } else if constexpr (std::is_same_v<T, std::optional<int>>) {
    value->integer = member.value_or(-1);
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    value->real = member.value_or(-1);
  } else if constexpr (kIsWhole<T>) {
    value->integer = static_cast<long long>(member);
  } else if constexpr (kIsReal<T>) {
    value->real = member;
  } else {
    value->text = CellOf(member);
  }
}

template <typename T>
bool Set(const Value& value, T* member) {
  if constexpr (std::is_same_v<T, std::string>) {
    *member = value.text;
  } else if constexpr (std::is_same_v<T, std::optional<int>>) {
    *member = value.integer < 0 ? std::nullopt : std::optional(static_cast<int>(value.integer));
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    *member = value.real < 0 ? std::nullopt : std::optional(value.real);
  } else if constexpr (std::is_same_v<T, JobOrigin>) {
    *member = static_cast<JobOrigin>(value.integer);
    return value.integer >= 0 && value.integer <= static_cast<int>(JobOrigin::kZeus);
  } else if constexpr (kIsWhole<T>) {
    *member = static_cast<T>(value.integer);
  } else if constexpr (kIsReal<T>) {
    *member = value.real;
  } else {
    return ReadCell(value.text, member);
  }
  return true;
}

template <typename T>
struct OfMember;
template <typename Class, typename Member>
struct OfMember<Member Class::*> {
  using Row = Class;
};

}  // namespace internal

// The column of a member, which may be one of a member: Of<&HistoryRow::times, &Times::seconds>.
template <auto kFirst, auto... kRest>
constexpr auto Of(std::string_view name) {
  using Row = typename internal::OfMember<decltype(kFirst)>::Row;
  using T = std::remove_cvref_t<decltype(((std::declval<Row&>().*kFirst).*....*kRest))>;
  constexpr CellType kType = internal::kIsWhole<T>  ? CellType::kInteger
                             : internal::kIsReal<T> ? CellType::kReal
                                                    : CellType::kText;
  return Column<Row>{
      name, kType,
      [](const Row& row, Value* value) { internal::Get(((row.*kFirst).*....*kRest), value); },
      [](const Value& value, Row* row) {
        return internal::Set(value, &((row->*kFirst).*....*kRest));
      }};
}

template <typename Row>
using Columns = std::span<const Column<Row>>;

// The values that a query binds for one row.
template <typename Row>
class Cells {
 public:
  explicit Cells(Columns<Row> columns) : columns_(columns), values_(columns.size()) {}

  void Use(const Row& row, Query* query) {
    for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].get(row, &values_[i]);
    Each([query](const auto& value) { query->Use(value); });
  }
  void Into(Query* query) {
    Each([query](auto& value) { query->Into(value); });
  }
  // Reads the fetched values. Throws OddCell.
  void Complete(Row* row, std::string_view table) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].set(values_[i], row)) throw OddCell{table};
    }
  }

 private:
  template <typename Bind>
  void Each(const Bind& bind) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      switch (columns_[i].type) {
        case CellType::kText:
          bind(values_[i].text);
          break;
        case CellType::kInteger:
          bind(values_[i].integer);
          break;
        case CellType::kReal:
          bind(values_[i].real);
          break;
      }
    }
  }

  const Columns<Row> columns_;
  std::vector<Value> values_;
};

// `part` with the name of each column for {0} and its number for {1}: "{0} = :c{1}".
template <typename Row>
std::string Joined(Columns<Row> columns, fmt::string_view part) {
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) text += ", ";
    text += fmt::format(fmt::runtime(part), columns[i].name, i);
  }
  return text;
}

template <typename Row>
std::string NamesOf(Columns<Row> columns) {
  return Joined(columns, "{0}");
}

// Parts of an INSERT beside the columns: their names and places come first.
struct InsertMore {
  std::string names = {};   // "server, "
  std::string places = {};  // ":s, "
  std::function<void(Query*)> use = {};
  std::string rest = {};  // "ON CONFLICT ..."
};

template <typename Row>
void Insert(soci::session& sql, std::string_view table, Columns<Row> columns, const Row& row,
            const InsertMore& more = {}) {
  Cells<Row> cells(columns);
  Query query(sql, fmt::format("INSERT INTO {} ({}{}) VALUES ({}{}) {}", table, more.names,
                               NamesOf(columns), more.places, Joined(columns, ":c{1}"), more.rest));
  if (more.use) more.use(&query);
  cells.Use(row, &query);
  query.Execute();
}

// The rows of one job. `names`: the columns' names, or expressions for them. Throws OddCell.
template <typename Row>
std::vector<Row> SelectOf(soci::session& sql, std::string_view table, Columns<Row> columns,
                          const std::string& job, std::string_view order) {
  std::vector<Row> rows;
  Row row;
  Cells<Row> cells(columns);
  Query query(sql,
              fmt::format("SELECT {} FROM {} WHERE job = :j {}", NamesOf(columns), table, order));
  query.Use(job);
  cells.Into(&query);
  while (query.Next()) {
    cells.Complete(&row, table);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace perseus::store

#endif  // PERSEUS_STORE_COLUMNS_H_
