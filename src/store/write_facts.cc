// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <variant>

#include "store/cells.h"
#include "store/tables.h"

namespace perseus::store {
namespace {

using soci::use;

// SOCI binds by reference and knows long long, not int64_t.
using Big = long long;

class FactWriter {
 public:
  explicit FactWriter(soci::session& sql) : sql_(sql) {}

  void operator()(const JobRecord& job) const {
    const int origin = static_cast<int>(job.origin);
    const std::string power = FormatNumbers(job.blocking_power_watts);
    const std::string state(JobStateName(job.state));
    sql_ << "INSERT INTO jobs (id, client_key, name, origin, pipeline_parallel, data_parallel, "
            "tensor_parallel, settings, profile, blocking_power, target, state, reason, "
            "created_at) "
            "VALUES (:i, :k, :n, :o, :pp, :dp, :tp, :s, :p, :b, :t, :st, :r, :c)",
        use(job.id), use(job.client_key), use(job.name), use(origin), use(job.pipeline_parallel),
        use(job.data_parallel), use(job.tensor_parallel), use(job.settings_json),
        use(job.profile_csv), use(power), use(job.target), use(state), use(job.reason),
        use(job.created_at_seconds);
  }

  void operator()(const StateChange& change) const {
    const std::string state(JobStateName(change.state));
    sql_ << "UPDATE jobs SET state = :s, reason = :r WHERE id = :i", use(state), use(change.reason),
        use(change.job);
    if (change.profile_csv) {
      sql_ << "UPDATE jobs SET profile = :p WHERE id = :i", use(*change.profile_csv),
          use(change.job);
    }
    if (change.blocking_power_watts) {
      const std::string power = FormatNumbers(*change.blocking_power_watts);
      sql_ << "UPDATE jobs SET blocking_power = :p WHERE id = :i", use(power), use(change.job);
    }
  }

  void operator()(const RankRecord& rank) const {
    const std::string clocks = FormatIntegers(rank.clocks_mhz);
    sql_ << "INSERT INTO ranks (job, rank, dp_rank, pp_rank, tp_rank, gpu_uuid, gpu_name, node, "
            "clocks) VALUES (:j, :r, :d, :p, :t, :u, :g, :n, :c) "
            "ON CONFLICT (job, rank) DO UPDATE SET gpu_uuid = excluded.gpu_uuid, "
            "gpu_name = excluded.gpu_name, node = excluded.node, clocks = excluded.clocks",
        use(rank.job), use(rank.rank), use(rank.dp_rank), use(rank.pp_rank), use(rank.tp_rank),
        use(rank.gpu_uuid), use(rank.gpu_name), use(rank.node), use(clocks);
  }

  void operator()(const Measurements& measured) const {
    const std::string rows = FormatRows(measured.rows);
    const double power = measured.blocking_power_watts.value_or(-1);
    const int done = measured.done ? 1 : 0;
    sql_ << "INSERT INTO measurements (job, number, rank, measured, blocking_power, done) "
            "VALUES (:j, (SELECT COALESCE(MAX(number), 0) + 1 FROM measurements WHERE job = :k), "
            ":r, :m, :b, :d)",
        use(measured.job), use(measured.job), use(measured.rank), use(rows), use(power), use(done);
  }

  void operator()(const CurveRecord& curve) const {
    sql_ << "INSERT INTO curves (job, revision, frontier) VALUES (:j, :r, :f) "
            "ON CONFLICT (job) DO UPDATE SET revision = excluded.revision, "
            "frontier = excluded.frontier",
        use(curve.job), use(curve.revision), use(curve.frontier_json);
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
            "expires_at) VALUES (:j, :i, :p, :r, :n, :f, :d, :s, :e)",
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
    sql_ << "INSERT INTO iterations (job, plan_version, reports, total_time, least_time, "
            "most_time, total_energy) VALUES (:j, :v, :n, :t, :l, :m, :e) "
            "ON CONFLICT (job, plan_version) DO UPDATE SET reports = excluded.reports, "
            "total_time = excluded.total_time, least_time = excluded.least_time, "
            "most_time = excluded.most_time, total_energy = excluded.total_energy",
        use(summary.job), use(version), use(reports), use(summary.total_seconds),
        use(summary.least_seconds), use(summary.most_seconds), use(summary.total_joules);
  }

  void operator()(const JobGone& gone) const {
    sql_ << "DELETE FROM jobs WHERE id = :i", use(gone.job);
  }

 private:
  soci::session& sql_;
};

}  // namespace

void WriteFact(soci::session& sql, const Fact& fact) { std::visit(FactWriter(sql), fact); }

}  // namespace perseus::store
