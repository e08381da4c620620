// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "store/schema.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace perseus::store {
namespace {

// Released versions are never edited: what changes is a step of its own at the
// end, with a file of the version before in tests/store/data/.
constexpr std::array<std::string_view, 10> kVersion1 = {
    R"(CREATE TABLE jobs (
         id TEXT PRIMARY KEY,
         client_key TEXT NOT NULL UNIQUE,
         name TEXT NOT NULL,
         origin INTEGER NOT NULL,
         pipeline_parallel INTEGER NOT NULL,
         data_parallel INTEGER NOT NULL,
         tensor_parallel INTEGER NOT NULL,
         settings TEXT NOT NULL,
         profile TEXT NOT NULL,
         blocking_power TEXT NOT NULL,
         target TEXT NOT NULL,
         state TEXT NOT NULL,
         reason TEXT NOT NULL,
         created_at DOUBLE PRECISION NOT NULL,
         last_straggler BIGINT NOT NULL DEFAULT 0))",
    R"(CREATE TABLE ranks (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         rank INTEGER NOT NULL,
         dp_rank INTEGER NOT NULL,
         pp_rank INTEGER NOT NULL,
         tp_rank INTEGER NOT NULL,
         gpu_uuid TEXT NOT NULL,
         gpu_name TEXT NOT NULL,
         node TEXT NOT NULL,
         clocks TEXT NOT NULL,
         PRIMARY KEY (job, rank),
         UNIQUE (job, dp_rank, pp_rank, tp_rank)))",
    R"(CREATE TABLE measurements (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         number BIGINT NOT NULL,
         rank INTEGER NOT NULL,
         measured TEXT NOT NULL,
         blocking_power DOUBLE PRECISION NOT NULL,
         done INTEGER NOT NULL,
         PRIMARY KEY (job, number)))",
    R"(CREATE TABLE curves (
         job TEXT PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
         revision INTEGER NOT NULL,
         frontier TEXT NOT NULL))",
    R"(CREATE TABLE plans (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         id BIGINT NOT NULL,
         requested_time DOUBLE PRECISION NOT NULL,
         knobs TEXT NOT NULL,
         PRIMARY KEY (job, id)))",
    R"(CREATE TABLE versions (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         version BIGINT NOT NULL,
         reason TEXT NOT NULL,
         at DOUBLE PRECISION NOT NULL,
         plan BIGINT NOT NULL,
         exceptions TEXT NOT NULL,
         PRIMARY KEY (job, version)))",
    R"(CREATE TABLE stragglers (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         id BIGINT NOT NULL,
         pipeline INTEGER NOT NULL,
         rank INTEGER NOT NULL,
         node TEXT NOT NULL,
         factor DOUBLE PRECISION NOT NULL,
         delay DOUBLE PRECISION NOT NULL,
         starts_at DOUBLE PRECISION NOT NULL,
         expires_at DOUBLE PRECISION NOT NULL,
         PRIMARY KEY (job, id)))",
    "CREATE INDEX measurements_of_rank ON measurements (job, rank)",
    "CREATE TABLE schema_version (version INTEGER NOT NULL)",
    "INSERT INTO schema_version (version) VALUES (1)",
};

constexpr std::array<std::string_view, 2> kVersion2 = {
    R"(CREATE TABLE iterations (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         plan_version BIGINT NOT NULL,
         reports BIGINT NOT NULL,
         total_time DOUBLE PRECISION NOT NULL,
         least_time DOUBLE PRECISION NOT NULL,
         most_time DOUBLE PRECISION NOT NULL,
         total_energy DOUBLE PRECISION NOT NULL,
         PRIMARY KEY (job, plan_version)))",
    // Nobody asks for the measurements of one rank.
    "DROP INDEX measurements_of_rank",
};

const std::array<std::span<const std::string_view>, kSchemaVersion> kSteps = {kVersion1, kVersion2};

// 0 where there are no tables.
int VersionOf(soci::session& sql) {
  int tables = 0;
  sql << "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table'", soci::into(tables);
  if (tables == 0) return 0;
  int version = 0;
  sql << "SELECT MAX(version) FROM schema_version", soci::into(version);
  return version;
}

}  // namespace

Result<void> Migrate(soci::session& sql, const std::string& name, int target) {
  sql << "BEGIN IMMEDIATE";
  const auto leave = [&](Error error) {
    sql << "ROLLBACK";
    return tl::unexpected<Error>(std::move(error));
  };
  int version = 0;
  try {
    version = VersionOf(sql);
  } catch (const soci::soci_error& error) {
    if (std::string_view(error.what()).find("no such table") == std::string_view::npos) throw;
    return leave(
        {ErrorCode::kIo,
         fmt::format("{}: this is a database, but no store of Perseus; name another file", name)});
  }
  if (version > target) {
    return leave({ErrorCode::kIo, fmt::format("{}: the store was written by a newer Perseus (its "
                                              "version is {}, this program knows {}); use that one",
                                              name, version, target)});
  }
  for (int step = version; step < target; ++step) {
    for (const std::string_view statement : kSteps[step]) sql << std::string(statement);
  }
  // Always: who may not write hears of it now.
  sql << "UPDATE schema_version SET version = :v", soci::use(target);
  sql << "COMMIT";
  return {};
}

}  // namespace perseus::store
