// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/store/query.h"

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

constexpr std::array<std::string_view, 9> kVersion3 = {
    "ALTER TABLE jobs ADD COLUMN detection TEXT NOT NULL DEFAULT ''",
    // Apart from the jobs, whose rows are wide: every request with facts bumps one.
    R"(CREATE TABLE marks (
         job TEXT PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
         revision BIGINT NOT NULL,
         row_revision BIGINT NOT NULL,
         curve_revision BIGINT NOT NULL))",
    R"(INSERT INTO marks (job, revision, row_revision, curve_revision)
         SELECT id, 1, 1, (SELECT COUNT(*) FROM curves WHERE job = id) FROM jobs)",
    // By the server that heard of them.
    R"(CREATE TABLE iterations_by_server (
         job TEXT NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,
         plan_version BIGINT NOT NULL,
         server TEXT NOT NULL,
         reports BIGINT NOT NULL,
         total_time DOUBLE PRECISION NOT NULL,
         least_time DOUBLE PRECISION NOT NULL,
         most_time DOUBLE PRECISION NOT NULL,
         square_time DOUBLE PRECISION NOT NULL,
         energy_reports BIGINT NOT NULL,
         total_energy DOUBLE PRECISION NOT NULL,
         square_energy DOUBLE PRECISION NOT NULL,
         PRIMARY KEY (job, plan_version, server)))",
    R"(INSERT INTO iterations_by_server
         SELECT job, plan_version, '', reports, total_time, least_time, most_time, 0, 0,
                total_energy, 0
         FROM iterations)",
    "DROP TABLE iterations",
    "ALTER TABLE iterations_by_server RENAME TO iterations",
    // What some server should compute, and who does until when.
    R"(CREATE TABLE work (
         job TEXT PRIMARY KEY REFERENCES jobs(id) ON DELETE CASCADE,
         server TEXT NOT NULL,
         leased_until DOUBLE PRECISION NOT NULL,
         wanted_at DOUBLE PRECISION NOT NULL,
         urgent INTEGER NOT NULL,
         wanted BIGINT NOT NULL,
         claimed BIGINT NOT NULL))",
    "CREATE INDEX work_by_age ON work (urgent, wanted_at)",
};

constexpr std::array<std::string_view, 14> kVersion4 = {
    "ALTER TABLE jobs ADD COLUMN library TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE jobs ADD COLUMN profile_source TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE jobs ADD COLUMN sweep_round INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN settled_round INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN next_profile TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE jobs ADD COLUMN next_blocking_power TEXT NOT NULL DEFAULT ''",
    R"(UPDATE jobs SET profile_source = CASE
         WHEN id IN (SELECT job FROM measurements) THEN 'measured' ELSE 'given' END
         WHERE profile <> '')",
    "ALTER TABLE measurements ADD COLUMN sweep_round INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE measurements ADD COLUMN blocking_power_std DOUBLE PRECISION NOT NULL DEFAULT 0",
    "ALTER TABLE measurements ADD COLUMN counter_period DOUBLE PRECISION NOT NULL DEFAULT 0",
    "ALTER TABLE measurements ADD COLUMN sweep TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE measurements ADD COLUMN notes TEXT NOT NULL DEFAULT ''",
    // Beyond the jobs that measured them.
    R"(CREATE TABLE profiles (
         id TEXT PRIMARY KEY,
         job TEXT NOT NULL,
         model TEXT NOT NULL,
         layout TEXT NOT NULL,
         metadata TEXT NOT NULL,
         profile TEXT NOT NULL,
         blocking_power TEXT NOT NULL,
         created_at DOUBLE PRECISION NOT NULL))",
    "CREATE INDEX profiles_by_layout ON profiles (layout, created_at)",
};

constexpr std::array<std::string_view, 3> kVersion5 = {
    "ALTER TABLE jobs ADD COLUMN finished_at DOUBLE PRECISION NOT NULL DEFAULT 0",
    // The last version of the plan says when a job ended: that it has none any more.
    "UPDATE jobs SET finished_at = COALESCE((SELECT MAX(at) FROM versions WHERE job = jobs.id), "
    "created_at) WHERE state = 'finished'",
    // SQLite reads a long text to its end to come to the columns behind it: lists of jobs find
    // these here.
    "CREATE INDEX jobs_by_age ON jobs (created_at, id, state, finished_at)",
};

constexpr std::array<std::string_view, 1> kVersion6 = {
    // By which Backend::instance() they were last raised.
    "ALTER TABLE marks ADD COLUMN instance BIGINT NOT NULL DEFAULT 0",
};

constexpr std::array<std::string_view, 1> kVersion7 = {
    "ALTER TABLE jobs ADD COLUMN conditions TEXT NOT NULL DEFAULT ''",
};

constexpr std::array<std::string_view, 1> kVersion8 = {
    "ALTER TABLE measurements ADD COLUMN waiting TEXT NOT NULL DEFAULT ''",
};

constexpr std::array<std::string_view, 4> kVersion9 = {
    "ALTER TABLE jobs ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
    // Beyond the jobs that it is of.
    R"(CREATE TABLE history (
         job TEXT NOT NULL,
         server TEXT NOT NULL,
         resolution INTEGER NOT NULL,
         start_at BIGINT NOT NULL,
         name TEXT NOT NULL,
         owner TEXT NOT NULL,
         ranks INTEGER NOT NULL,
         reports BIGINT NOT NULL,
         total_time DOUBLE PRECISION NOT NULL,
         energy_reports BIGINT NOT NULL,
         energy_time DOUBLE PRECISION NOT NULL,
         energy DOUBLE PRECISION NOT NULL,
         promised DOUBLE PRECISION NOT NULL,
         compared DOUBLE PRECISION NOT NULL,
         realised DOUBLE PRECISION NOT NULL,
         PRIMARY KEY (job, server, resolution, start_at)))",
    "CREATE INDEX history_by_time ON history (resolution, start_at)",
    "ALTER TABLE profiles ADD COLUMN conditions TEXT NOT NULL DEFAULT ''",
};

constexpr std::array<std::string_view, 3> kVersion10 = {
    // Beyond the jobs that they are of, as the history. Of a job without labels there is no row.
    "CREATE TABLE labels (job TEXT PRIMARY KEY, labels TEXT NOT NULL)",
    "ALTER TABLE history ADD COLUMN first_at DOUBLE PRECISION NOT NULL DEFAULT 0",
    "ALTER TABLE history ADD COLUMN last_at DOUBLE PRECISION NOT NULL DEFAULT 0",
};

constexpr std::array<std::string_view, 10> kVersion11 = {
    "ALTER TABLE history ADD COLUMN iterations BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE history ADD COLUMN iteration_reports BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE history ADD COLUMN iteration_time DOUBLE PRECISION NOT NULL DEFAULT 0",
    "ALTER TABLE history ADD COLUMN measured_iterations BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE history ADD COLUMN measured_reports BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE history ADD COLUMN measured_time DOUBLE PRECISION NOT NULL DEFAULT 0",
    "ALTER TABLE history ADD COLUMN measured_energy DOUBLE PRECISION NOT NULL DEFAULT 0",
    // Nobody wrote down which rank was the slowest: an iteration is as long as the mean of its
    // ranks, as older versions showed it.
    R"(UPDATE history SET iterations = (reports + ranks - 1) / ranks, iteration_reports = reports,
         iteration_time = total_time * ((reports + ranks - 1) / ranks) / reports
         WHERE reports > 0 AND ranks > 0)",
    R"(UPDATE history SET measured_iterations = (energy_reports + ranks - 1) / ranks,
         measured_reports = energy_reports, measured_energy = energy,
         measured_time = energy_time * ((energy_reports + ranks - 1) / ranks) / energy_reports
         WHERE energy_reports > 0 AND ranks > 0)",
    "ALTER TABLE history DROP COLUMN energy_time",
};

const std::array<std::span<const std::string_view>, kSchemaVersion> kSteps = {
    kVersion1, kVersion2, kVersion3, kVersion4,  kVersion5, kVersion6,
    kVersion7, kVersion8, kVersion9, kVersion10, kVersion11};

// Of other programs there may be one of these names, but not all.
constexpr std::array<std::string_view, 3> kOwnTables = {kVersionTable, "jobs", "curves"};

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
                               backend.name(), backend.is_shared() ? "one" : "file"));
}

Result<void> Migrate(soci::session& sql, const Backend& backend, int target) {
  const Result<bool> is_store = CheckIsStore(sql, backend);
  if (!is_store) return tl::unexpected(is_store.error());
  int version = 0;
  if (*is_store) sql << "SELECT MAX(version) FROM schema_version", soci::into(version);
  if (version > target) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: the store was written by a newer Perseus (its version is {}, "
                                 "this program knows {}); use that one",
                                 backend.name(), version, target));
  }
  for (int step = version; step < target; ++step) {
    for (const std::string_view statement : kSteps[step]) sql << std::string(statement);
  }
  // Always: who may not write hears of it now.
  sql << "UPDATE schema_version SET version = :v", soci::use(target);
  return {};
}

}  // namespace perseus::store
