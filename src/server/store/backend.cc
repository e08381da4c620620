// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/backend.h"

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/store/postgresql.h"
#include "server/store/sqlite.h"

namespace perseus::store {
namespace {

constexpr std::string_view kSqlite = "sqlite:";

}  // namespace

std::optional<std::string> SqliteFileOf(const std::string& spec) {
  if (!spec.starts_with(kSqlite)) return std::nullopt;
  return spec.substr(kSqlite.size());
}

Result<void> CheckSpec(const std::string& spec) {
  if (const auto file = SqliteFileOf(spec)) return CheckSqliteFile(*file);
  const auto backend = OpenBackend(spec);
  if (!backend) return tl::unexpected(backend.error());
  return {};
}

Result<std::shared_ptr<const Backend>> OpenBackend(const std::string& spec) {
  const std::string_view text = spec;
  if (const auto file = SqliteFileOf(spec)) return OpenSqlite(*file);
  // Nothing is asked of a database before Connect().
  if (text.starts_with("postgresql://") || text.starts_with("postgres://")) {
    return OpenPostgresql(spec);
  }
  // Without the rest, which may hold a password.
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return InvalidInput("the store has no kind; write sqlite:FILE or postgresql://HOST/DATABASE");
  }
  return InvalidInput(
      fmt::format("stores of the kind '{}' are not known; write sqlite:FILE or "
                  "postgresql://HOST/DATABASE",
                  text.substr(0, colon)));
}

}  // namespace perseus::store
