// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <variant>

#include "server/store/cells.h"
#include "server/store/query.h"
#include "server/store/tables.h"

namespace perseus::store {
namespace {

using soci::use;

// SOCI binds by reference and knows long long, not int64_t.
using Big = long long;

class FactWriter {
 public:
  FactWriter(soci::session& sql, const Backend& backend, std::string_view server_id)
      : sql_(sql), backend_(backend), server_id_(server_id) {}

  void operator()(const JobRecord& job) const {
    const int origin = static_cast<int>(job.origin);
    const std::string power = FormatNumbers(job.blocking_power_watts);
    const std::string state(JobStateName(job.state));
    sql_ << "INSERT INTO jobs (id, client_key, name, origin, pipeline_parallel, data_parallel, "
            "tensor_parallel, settings, profile, blocking_power, target, state, reason, "
            "detection, created_at, library, profile_source, conditions, owner) "
            "VALUES (:i, :k, :n, :o, :pp, :dp, :tp, :s, :p, :b, :t, :st, :r, :d, :c, :l, :ps, :co, "
            ":ow)",
        use(job.id), use(job.client_key), use(job.name), use(origin), use(job.pipeline_parallel),
        use(job.data_parallel), use(job.tensor_parallel), use(job.settings_json),
        use(job.profile_csv), use(power), use(job.target), use(state), use(job.reason),
        use(job.detection_json), use(job.created_at_seconds), use(job.library_json),
        use(job.profile_source), use(job.conditions_json), use(job.owner);
    sql_ << fmt::format(
        "INSERT INTO marks (job, revision, row_revision, curve_revision, instance) VALUES (:j, 1, "
        "1, 0, {})",
        backend_.instance()),
        use(job.id);
    if (!job.labels.empty()) (*this)(LabelsChange{.job = job.id, .labels = job.labels});
  }

  void operator()(const StateChange& change) const {
    const std::string state(JobStateName(change.state));
    const double finished_at = change.state == JobState::kFinished ? change.at_seconds : 0;
    // The first time counts.
    sql_ << "UPDATE jobs SET finished_at = CASE WHEN state = 'finished' AND finished_at > 0 AND "
            "state = :s THEN finished_at ELSE :f END, state = :t, reason = :r WHERE id = :i",
        use(state), use(finished_at), use(state), use(change.reason), use(change.job);
    if (change.profile_csv) {
      sql_ << "UPDATE jobs SET profile = :p WHERE id = :i", use(*change.profile_csv),
          use(change.job);
    }
    if (change.blocking_power_watts) {
      const std::string power = FormatNumbers(*change.blocking_power_watts);
      sql_ << "UPDATE jobs SET blocking_power = :p WHERE id = :i", use(power), use(change.job);
    }
    if (change.profile_source) {
      sql_ << "UPDATE jobs SET profile_source = :p WHERE id = :i", use(*change.profile_source),
          use(change.job);
    }
    if (change.sweep_round) {
      sql_ << "UPDATE jobs SET sweep_round = :r WHERE id = :i", use(*change.sweep_round),
          use(change.job);
    }
    if (change.next_profile_csv) {
      const std::string power = FormatNumbers(change.next_blocking_power_watts);
      sql_ << "UPDATE jobs SET next_profile = :n, next_blocking_power = :p WHERE id = :i",
          use(*change.next_profile_csv), use(power), use(change.job);
    }
    if (change.next == StateChange::Next::kAdopt) {
      sql_ << "UPDATE jobs SET profile = next_profile, blocking_power = next_blocking_power "
              "WHERE id = :i",
          use(change.job);
    }
    if (change.next != StateChange::Next::kKeep) {
      sql_ << "UPDATE jobs SET next_profile = '', next_blocking_power = '', "
              "settled_round = sweep_round WHERE id = :i",
          use(change.job);
    }
  }

  void operator()(const RankRecord& rank) const { WriteRanks(sql_, {&rank}); }

  void operator()(const Measurements& measured) const {
    const std::string rows = FormatRows(measured.rows);
    const double power = measured.blocking_power_watts.value_or(-1);
    const int done = measured.done ? 1 : 0;
    const std::string sweep = FormatSweep(measured.sweep);
    const std::string notes = FormatLines(measured.notes);
    const std::string waiting = FormatWaiting(measured.waiting);
    // Rows of a sweep that is over are refused: that NULL breaks a constraint. The server that
    // still believed in it reads again.
    sql_ << "INSERT INTO measurements (job, number, rank, measured, blocking_power, done, "
            "sweep_round, blocking_power_std, counter_period, sweep, notes, waiting) "
            "VALUES (:j, (SELECT COALESCE(MAX(number), 0) + 1 FROM measurements WHERE job = :k), "
            ":r, :m, :b, :d, (SELECT CASE WHEN sweep_round = :ro THEN sweep_round END FROM jobs "
            "WHERE id = :i), :bs, :cp, :sw, :no, :wa)",
        use(measured.job), use(measured.job), use(measured.rank), use(rows), use(power), use(done),
        use(measured.sweep_round), use(measured.job), use(measured.blocking_power_std_watts),
        use(measured.counter_period_seconds), use(sweep), use(notes), use(waiting);
  }

  void operator()(const CurveRecord& curve) const {
    sql_ << "INSERT INTO curves (job, revision, frontier) VALUES (:j, :r, :f) "
            "ON CONFLICT (job) DO UPDATE SET revision = excluded.revision, "
            "frontier = excluded.frontier",
        use(curve.job), use(curve.revision), use(curve.frontier_json);
    sql_ << "UPDATE marks SET curve_revision = revision WHERE job = :j", use(curve.job);
    sql_ << "DELETE FROM plans WHERE job = :j", use(curve.job);
    for (const PlanRecord& plan : curve.plans) {
      const Big id = plan.id;
      const std::string knobs = FormatKnobs(plan.knobs);
      sql_ << "INSERT INTO plans (job, id, requested_time, knobs) VALUES (:j, :i, :t, :k)",
          use(curve.job), use(id), use(plan.requested_time_seconds), use(knobs);
    }
  }

  void operator()(const PlanVersion& version) const {
    const Big number = version.version;
    const Big plan = version.plan;
    const std::string exceptions = FormatExceptions(version.exceptions);
    sql_ << "INSERT INTO versions (job, version, reason, at, plan, exceptions) "
            "VALUES (:j, :v, :r, :a, :p, :e)",
        use(version.job), use(number), use(version.reason), use(version.at_seconds), use(plan),
        use(exceptions);
    sql_ << "DELETE FROM versions WHERE job = :j AND version <= (SELECT version FROM versions "
            "WHERE job = :k ORDER BY version DESC LIMIT 1 OFFSET :n)",
        use(version.job), use(version.job), use(kMostStoredVersions);
  }

  void operator()(const TargetChange& change) const {
    sql_ << "UPDATE jobs SET target = :t WHERE id = :i", use(change.target), use(change.job);
  }

  void operator()(const StragglerRecord& straggler) const {
    const Big id = straggler.id;
    const int pipeline = straggler.pipeline.value_or(-1);
    const int rank = straggler.rank.value_or(-1);
    const double expires = straggler.expires_at_seconds.value_or(-1);
    sql_ << "INSERT INTO stragglers (job, id, pipeline, rank, node, factor, delay, starts_at, "
            "expires_at) VALUES (:j, :i, :p, :r, :n, :f, :d, :s, :e) "
            "ON CONFLICT (job, id) DO UPDATE SET factor = excluded.factor",
        use(straggler.job), use(id), use(pipeline), use(rank), use(straggler.node),
        use(straggler.factor), use(straggler.delay_seconds), use(straggler.starts_at_seconds),
        use(expires);
    sql_ << "UPDATE jobs SET last_straggler = :i WHERE id = :j AND last_straggler < :k", use(id),
        use(straggler.job), use(id);
  }

  void operator()(const StragglerGone& gone) const {
    const Big id = gone.id;
    sql_ << "DELETE FROM stragglers WHERE job = :j AND id = :i", use(gone.job), use(id);
  }

  void operator()(const IterationSummary& summary) const {
    const Big version = summary.plan_version;
    const Big reports = summary.reports;
    const Big energy_reports = summary.energy_reports;
    sql_ << "INSERT INTO iterations (job, plan_version, server, reports, total_time, least_time, "
            "most_time, square_time, energy_reports, total_energy, square_energy) "
            "VALUES (:j, :v, :s, :n, :t, :l, :m, :q, :en, :e, :eq) "
            "ON CONFLICT (job, plan_version, server) DO UPDATE SET reports = excluded.reports, "
            "total_time = excluded.total_time, least_time = excluded.least_time, "
            "most_time = excluded.most_time, square_time = excluded.square_time, "
            "energy_reports = excluded.energy_reports, total_energy = excluded.total_energy, "
            "square_energy = excluded.square_energy",
        use(summary.job), use(version), use(server_id_), use(reports), use(summary.total_seconds),
        use(summary.least_seconds), use(summary.most_seconds), use(summary.square_seconds2),
        use(energy_reports), use(summary.total_joules), use(summary.square_joules2);
  }

  void operator()(const HistoryRow& row) const {
    const int resolution = static_cast<int>(row.resolution);
    const Big start = row.start;
    const Big reports = row.reports;
    const Big energy_reports = row.energy_reports;
    const Big iterations = row.times.iterations;
    const Big iteration_reports = row.times.reports;
    const Big measured_iterations = row.measured_times.iterations;
    const Big measured_reports = row.measured_times.reports;
    Big one = 0;
    Query update(
        sql_,
        "UPDATE history SET ranks = :k, first_at = :f, last_at = :l, reports = :n, "
        "total_time = :t, energy_reports = :en, energy = :e, promised = :p, compared = :c, "
        "realised = :d, iterations = :i, iteration_reports = :ir, iteration_time = :it, "
        "measured_iterations = :m, measured_reports = :mr, measured_time = :mt, "
        "measured_energy = :me "
        "WHERE job = :j AND server = :s AND resolution = :r AND start_at = :a RETURNING 1");
    update.Use(row.ranks)
        .Use(row.first_seconds)
        .Use(row.last_seconds)
        .Use(reports)
        .Use(row.total_seconds)
        .Use(energy_reports);
    update.Use(row.joules).Use(row.promised_joules);
    update.Use(row.compared_joules).Use(row.realised_joules);
    update.Use(iterations).Use(iteration_reports).Use(row.times.seconds);
    update.Use(measured_iterations).Use(measured_reports).Use(row.measured_times.seconds);
    update.Use(row.measured_joules);
    update.Use(row.job).Use(server_id_).Use(resolution).Use(start).Into(one);
    if (update.Next()) return;
    // Name and owner stay when the job goes. Only here: they lie beside the job's long texts.
    sql_ << "INSERT INTO history (job, server, resolution, start_at, name, owner, ranks, first_at, "
            "last_at, reports, total_time, energy_reports, energy, promised, compared, realised, "
            "iterations, iteration_reports, iteration_time, measured_iterations, "
            "measured_reports, measured_time, measured_energy) "
            "VALUES (:j, :s, :r, :a, (SELECT name FROM jobs WHERE id = :i), (SELECT owner FROM "
            "jobs WHERE id = :o), :k, :f, :l, :n, :t, :en, :e, :p, :c, :d, :x, :xr, :xt, :m, :mr, "
            ":mt, :me)",
        use(row.job), use(server_id_), use(resolution), use(start), use(row.job), use(row.job),
        use(row.ranks), use(row.first_seconds), use(row.last_seconds), use(reports),
        use(row.total_seconds), use(energy_reports), use(row.joules), use(row.promised_joules),
        use(row.compared_joules), use(row.realised_joules), use(iterations), use(iteration_reports),
        use(row.times.seconds), use(measured_iterations), use(measured_reports),
        use(row.measured_times.seconds), use(row.measured_joules);
  }

  void operator()(const DetectionChange& change) const {
    sql_ << "UPDATE jobs SET detection = :d WHERE id = :i", use(change.detection_json),
        use(change.job);
  }

  void operator()(const ConditionsChange& change) const {
    sql_ << "UPDATE jobs SET conditions = :c WHERE id = :i", use(change.conditions_json),
        use(change.job);
  }

  void operator()(const LabelsChange& change) const {
    if (change.labels.empty()) {
      sql_ << "DELETE FROM labels WHERE job = :i", use(change.job);
      return;
    }
    const std::string labels = FormatLabels(change.labels);
    sql_ << "INSERT INTO labels (job, labels) VALUES (:i, :l) "
            "ON CONFLICT (job) DO UPDATE SET labels = excluded.labels",
        use(change.job), use(labels);
  }

  void operator()(const WorkWanted& wanted) const {
    const int urgent = wanted.urgent ? 1 : 0;
    sql_ << fmt::format(
        "INSERT INTO work (job, server, leased_until, wanted_at, urgent, wanted, claimed) "
        "VALUES (:j, '', 0, {}, :u, 1, 0) ON CONFLICT (job) DO UPDATE SET wanted = work.wanted + "
        "1, urgent = excluded.urgent",
        backend_.lease_now()),
        use(wanted.job), use(urgent);
  }

  void operator()(const ProfileRecord& profile) const {
    const std::string power = FormatNumbers(profile.blocking_power_watts);
    sql_ << "INSERT INTO profiles (id, job, model, layout, metadata, profile, blocking_power, "
            "conditions, created_at) VALUES (:i, :j, :m, :l, :d, :p, :b, :o, :c) "
            "ON CONFLICT (id) DO NOTHING",
        use(profile.id), use(profile.job), use(profile.model), use(profile.layout),
        use(profile.metadata_json), use(profile.profile_csv), use(power),
        use(profile.conditions_json), use(profile.created_at_seconds);
    sql_ << "DELETE FROM profiles WHERE id NOT IN "
            "(SELECT id FROM profiles ORDER BY created_at DESC, id LIMIT :n)",
        use(kMostStoredProfiles);
  }

  void operator()(const ProfileConditions& measured) const {
    sql_ << "UPDATE profiles SET conditions = :c WHERE id = :i", use(measured.conditions_json),
        use(measured.profile);
  }

  // Its days stay, for accounts, and the labels by which they go.
  void operator()(const JobGone& gone) const {
    const int day = static_cast<int>(Resolution::kDay);
    sql_ << "DELETE FROM history WHERE job = :i AND resolution < :r", use(gone.job), use(day);
    sql_ << "DELETE FROM labels WHERE job = :i AND NOT EXISTS (SELECT 1 FROM history WHERE "
            "job = :h)",
        use(gone.job), use(gone.job);
    sql_ << "DELETE FROM jobs WHERE id = :i", use(gone.job);
  }

 private:
  soci::session& sql_;
  const Backend& backend_;
  const std::string server_id_;
};

}  // namespace

void WriteFact(soci::session& sql, const Backend& backend, std::string_view server_id,
               const Fact& fact) {
  std::visit(FactWriter(sql, backend, server_id), fact);
}

}  // namespace perseus::store
