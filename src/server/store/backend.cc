// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

namespace {

// A version that was released is never edited: a change is a step of its own at the end.
constexpr std::array<std::string_view, 19> kVersion1 = {
    R"(CREATE TABLE jobs (
         id TEXT PRIMARY KEY,
         client_key TEXT NOT NULL UNIQUE,
         name TEXT NOT NULL,
         owner TEXT NOT NULL,
         origin INTEGER NOT NULL,
         pipeline_parallel INTEGER NOT NULL,
         data_parallel INTEGER NOT NULL,
         tensor_parallel INTEGER NOT NULL,
         settings TEXT NOT NULL,
         profile TEXT NOT NULL,
         profile_source TEXT NOT NULL,
         blocking_power TEXT NOT NULL,
         next_profile TEXT NOT NULL DEFAULT '',
         next_blocking_power TEXT NOT NULL DEFAULT '',
         sweep_round INTEGER NOT NULL DEFAULT 0,
         settled_round INTEGER NOT NULL DEFAULT 0,
         library TEXT NOT NULL,
         target TEXT NOT NULL,
         state TEXT NOT NULL,
         reason TEXT NOT NULL,
         detection TEXT NOT NULL,
         conditions TEXT NOT NULL,
         created_at DOUBLE PRECISION NOT NULL,
         finished_at DOUBLE PRECISION NOT NULL DEFAULT 0,
         last_straggler BIGINT NOT NULL DEFAULT 0))",
    // SQLite reads a long text to its end to come to the columns behind it: lists of jobs find
    // these here.
    "CREATE INDEX jobs_by_age ON jobs (created_at, id, state, finished_at)",
    // Apart from the jobs, whose rows are wide: every change raises one.
    R"(CREATE TABLE revisions (
         job TEXT PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
         revision BIGINT NOT NULL))",
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
         blocking_power_std DOUBLE PRECISION NOT NULL,
         waiting TEXT NOT NULL,
         counter_period DOUBLE PRECISION NOT NULL,
         sweep_round INTEGER NOT NULL,
         sweep TEXT NOT NULL,
         notes TEXT NOT NULL,
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
    R"(CREATE TABLE iterations (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         plan_version BIGINT NOT NULL,
         reports BIGINT NOT NULL,
         total_time DOUBLE PRECISION NOT NULL,
         least_time DOUBLE PRECISION NOT NULL,
         most_time DOUBLE PRECISION NOT NULL,
         square_time DOUBLE PRECISION NOT NULL,
         energy_reports BIGINT NOT NULL,
         total_energy DOUBLE PRECISION NOT NULL,
         square_energy DOUBLE PRECISION NOT NULL,
         PRIMARY KEY (job, plan_version)))",
    // These outlive their jobs: profiles, the history, and labels where there are any.
    R"(CREATE TABLE profiles (
         id TEXT PRIMARY KEY,
         job TEXT NOT NULL,
         model TEXT NOT NULL,
         layout TEXT NOT NULL,
         metadata TEXT NOT NULL,
         profile TEXT NOT NULL,
         blocking_power TEXT NOT NULL,
         conditions TEXT NOT NULL,
         created_at DOUBLE PRECISION NOT NULL))",
    "CREATE INDEX profiles_by_layout ON profiles (layout, created_at)",
    R"(CREATE TABLE history (
         job TEXT NOT NULL,
         resolution INTEGER NOT NULL,
         start_at BIGINT NOT NULL,
         name TEXT NOT NULL,
         owner TEXT NOT NULL,
         ranks INTEGER NOT NULL,
         first_at DOUBLE PRECISION NOT NULL,
         last_at DOUBLE PRECISION NOT NULL,
         reports BIGINT NOT NULL,
         total_time DOUBLE PRECISION NOT NULL,
         energy_reports BIGINT NOT NULL,
         energy DOUBLE PRECISION NOT NULL,
         predicted DOUBLE PRECISION NOT NULL,
         compared DOUBLE PRECISION NOT NULL,
         measured DOUBLE PRECISION NOT NULL,
         iterations BIGINT NOT NULL,
         iteration_reports BIGINT NOT NULL,
         iteration_time DOUBLE PRECISION NOT NULL,
         measured_iterations BIGINT NOT NULL,
         measured_reports BIGINT NOT NULL,
         measured_time DOUBLE PRECISION NOT NULL,
         measured_energy DOUBLE PRECISION NOT NULL,
         PRIMARY KEY (job, resolution, start_at)))",
    "CREATE INDEX history_by_time ON history (resolution, start_at)",
    "CREATE TABLE labels (job TEXT PRIMARY KEY, labels TEXT NOT NULL)",
    // See active.h. `instance`: Backend::instance() when the store was last taken.
    R"(CREATE TABLE active (
         epoch BIGINT PRIMARY KEY,
         server TEXT NOT NULL,
         address TEXT NOT NULL,
         leased_until DOUBLE PRECISION NOT NULL,
         instance BIGINT NOT NULL,
         history BIGINT NOT NULL))",
    "INSERT INTO active (epoch, server, address, leased_until, instance, history) "
    "VALUES (0, '', '', 0, 0, 0)",
    "CREATE TABLE schema_version (version INTEGER NOT NULL)",
    "INSERT INTO schema_version (version) VALUES (1)",
};

constexpr std::array<SchemaStep, kSchemaVersion> kSteps = {kVersion1};

// Of other programs there may be one of these names, but not all.
constexpr std::array<std::string_view, 3> kOwnTables = {kVersionTable, "jobs", kActiveTable};

}  // namespace

std::vector<std::string> Tables(soci::session& sql, const Backend& backend) {
  std::vector<std::string> names;
  std::string name;
  Query query(sql, std::string(backend.tables()));
  query.Into(name);
  while (query.Next()) names.push_back(name);
  return names;
}

Result<bool> CheckIsStore(soci::session& sql, const Backend& backend) {
  const std::vector<std::string> tables = Tables(sql, backend);
  if (tables.empty()) return false;
  const bool is_store =
      std::all_of(kOwnTables.begin(), kOwnTables.end(), [&](std::string_view own) {
        return std::find(tables.begin(), tables.end(), own) != tables.end();
      });
  if (is_store) return true;
  return MakeError(ErrorCode::kIo,
                   fmt::format("{}: this is a database, but no store of Perseus; name another {}",
                               backend.name(), backend.is_remote() ? "one" : "file"));
}

std::span<const SchemaStep> SchemaSteps() { return kSteps; }

Result<void> Migrate(soci::session& sql, const Backend& backend,
                     std::span<const SchemaStep> steps) {
  const Result<bool> is_store = CheckIsStore(sql, backend);
  if (!is_store) return tl::unexpected(is_store.error());
  const int target = static_cast<int>(steps.size());
  int version = 0;
  if (*is_store) sql << "SELECT MAX(version) FROM schema_version", soci::into(version);
  if (version > target) {
    return MakeError(
        ErrorCode::kIo,
        fmt::format("{}: the store was written by a newer Perseus, or by a build before "
                    "0.2.0 (its version is {}, this program knows {}); use that "
                    "program, or begin a new store",
                    backend.name(), version, target));
  }
  for (int step = version; step < target; ++step) {
    for (const std::string_view statement : steps[static_cast<std::size_t>(step)])
      sql << std::string(statement);
  }
  // Always: without the right to write, it fails now.
  sql << "UPDATE schema_version SET version = :v", soci::use(target);
  return {};
}

}  // namespace perseus::store
