// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/cells.h"
#include "store/tables.h"

namespace perseus::store {
namespace {

using soci::into;
using soci::use;

// What throws no SOCI error, and still is not what was written.
struct OddCell {
  std::string_view table;
};

template <typename T>
T Checked(std::optional<T> value, std::string_view table) {
  if (!value) throw OddCell{table};
  return *std::move(value);
}

JobState StateOf(std::string_view name) {
  const auto* const found = std::find(kJobStateNames.begin(), kJobStateNames.end(), name);
  if (found == kJobStateNames.end()) throw OddCell{"jobs"};
  return static_cast<JobState>(found - kJobStateNames.begin());
}

std::optional<int> NotNegative(int value) {
  return value < 0 ? std::nullopt : std::optional<int>(value);
}

std::optional<double> NotNegative(double value) {
  return value < 0 ? std::nullopt : std::optional<double>(value);
}

class JobReader {
 public:
  explicit JobReader(soci::session& sql) : sql_(sql) {}

  std::vector<StoredJob> Jobs(const std::string& id) {
    std::vector<StoredJob> jobs;
    JobRecord job;
    int origin = 0;
    long long last_straggler = 0;
    std::string power;
    std::string state;
    soci::statement rows =
        (sql_.prepare << "SELECT id, client_key, name, origin, pipeline_parallel, data_parallel, "
                         "tensor_parallel, settings, profile, blocking_power, target, state, "
                         "reason, created_at, last_straggler FROM jobs WHERE id = :i OR :e = '' "
                         "ORDER BY created_at, id",
         use(id, "i"), use(id, "e"), into(job.id), into(job.client_key), into(job.name),
         into(origin), into(job.pipeline_parallel), into(job.data_parallel),
         into(job.tensor_parallel), into(job.settings_json), into(job.profile_csv), into(power),
         into(job.target), into(state), into(job.reason), into(job.created_at_seconds),
         into(last_straggler));
    rows.execute();
    while (rows.fetch()) {
      StoredJob& stored = jobs.emplace_back();
      stored.job = job;
      stored.job.origin = static_cast<JobOrigin>(origin);
      stored.job.blocking_power_watts = Checked(ParseNumbers(power), "jobs");
      stored.job.state = StateOf(state);
      stored.last_straggler = last_straggler;
    }
    for (StoredJob& stored : jobs) ReadRest(&stored);
    return jobs;
  }

 private:
  void ReadRest(StoredJob* stored) {
    ReadRanks(stored);
    ReadMeasurements(stored);
    ReadCurve(stored);
    ReadVersion(stored);
    ReadStragglers(stored);
    ReadIterations(stored);
  }

  void ReadRanks(StoredJob* stored) {
    RankRecord rank;
    rank.job = stored->job.id;
    std::string clocks;
    soci::statement rows =
        (sql_.prepare << "SELECT rank, dp_rank, pp_rank, tp_rank, gpu_uuid, gpu_name, node, clocks "
                         "FROM ranks WHERE job = :j ORDER BY rank",
         use(stored->job.id), into(rank.rank), into(rank.dp_rank), into(rank.pp_rank),
         into(rank.tp_rank), into(rank.gpu_uuid), into(rank.gpu_name), into(rank.node),
         into(clocks));
    rows.execute();
    while (rows.fetch()) {
      rank.clocks_mhz = Checked(ParseIntegers(clocks), "ranks");
      stored->ranks.push_back(rank);
    }
  }

  void ReadMeasurements(StoredJob* stored) {
    Measurements measured;
    measured.job = stored->job.id;
    std::string text;
    double power = 0;
    int done = 0;
    soci::statement rows =
        (sql_.prepare << "SELECT rank, measured, blocking_power, done FROM measurements "
                         "WHERE job = :j ORDER BY number",
         use(stored->job.id), into(measured.rank), into(text), into(power), into(done));
    rows.execute();
    while (rows.fetch()) {
      measured.rows = Checked(ParseRows(text), "measurements");
      measured.blocking_power_watts = NotNegative(power);
      measured.done = done != 0;
      stored->measurements.push_back(measured);
    }
  }

  void ReadCurve(StoredJob* stored) {
    CurveRecord curve;
    curve.job = stored->job.id;
    sql_ << "SELECT revision, frontier FROM curves WHERE job = :j", use(stored->job.id),
        into(curve.revision), into(curve.frontier_json);
    if (!sql_.got_data()) return;
    PlanRecord plan;
    long long id = 0;
    std::string knobs;
    soci::statement rows =
        (sql_.prepare << "SELECT id, requested_time, knobs FROM plans WHERE job = :j ORDER BY id",
         use(stored->job.id), into(id), into(plan.requested_time_seconds), into(knobs));
    rows.execute();
    while (rows.fetch()) {
      plan.id = id;
      plan.knobs = Checked(ParseKnobs(knobs), "plans");
      curve.plans.push_back(plan);
    }
    stored->curve = std::move(curve);
  }

  void ReadVersion(StoredJob* stored) {
    PlanVersion version;
    version.job = stored->job.id;
    long long number = 0;
    long long plan = 0;
    std::string exceptions;
    sql_ << "SELECT version, reason, at, plan, exceptions FROM versions WHERE job = :j "
            "ORDER BY version DESC LIMIT 1",
        use(stored->job.id), into(number), into(version.reason), into(version.at_seconds),
        into(plan), into(exceptions);
    if (!sql_.got_data()) return;
    version.version = number;
    version.plan = plan;
    version.exceptions = Checked(ParseExceptions(exceptions), "versions");
    stored->version = std::move(version);
  }

  void ReadStragglers(StoredJob* stored) {
    StragglerRecord straggler;
    straggler.job = stored->job.id;
    long long id = 0;
    int pipeline = 0;
    int rank = 0;
    double expires = 0;
    soci::statement rows =
        (sql_.prepare << "SELECT id, pipeline, rank, node, factor, delay, starts_at, expires_at "
                         "FROM stragglers WHERE job = :j ORDER BY id",
         use(stored->job.id), into(id), into(pipeline), into(rank), into(straggler.node),
         into(straggler.factor), into(straggler.delay_seconds), into(straggler.starts_at_seconds),
         into(expires));
    rows.execute();
    while (rows.fetch()) {
      straggler.id = id;
      straggler.pipeline = NotNegative(pipeline);
      straggler.rank = NotNegative(rank);
      straggler.expires_at_seconds = NotNegative(expires);
      stored->stragglers.push_back(straggler);
    }
  }

  void ReadIterations(StoredJob* stored) {
    IterationSummary summary;
    summary.job = stored->job.id;
    long long version = 0;
    long long reports = 0;
    soci::statement rows =
        (sql_.prepare << "SELECT plan_version, reports, total_time, least_time, most_time, "
                         "total_energy FROM iterations WHERE job = :j ORDER BY plan_version",
         use(stored->job.id), into(version), into(reports), into(summary.total_seconds),
         into(summary.least_seconds), into(summary.most_seconds), into(summary.total_joules));
    rows.execute();
    while (rows.fetch()) {
      summary.plan_version = version;
      summary.reports = reports;
      stored->iterations.push_back(summary);
    }
  }

  soci::session& sql_;
};

}  // namespace

Result<std::vector<StoredJob>> ReadJobs(soci::session& sql, const std::string& name,
                                        const std::string& id) {
  try {
    return JobReader(sql).Jobs(id);
  } catch (const OddCell& odd) {
    return MakeError(
        ErrorCode::kIo,
        fmt::format("{}: the store is damaged: table {} holds what Perseus never wrote; "
                    "restore a copy",
                    name, odd.table));
  }
}

}  // namespace perseus::store
