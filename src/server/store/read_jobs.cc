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

#include "perseus/plan.h"
#include "server/store/cells.h"
#include "server/store/query.h"
#include "server/store/tables.h"

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

JobOrigin OriginOf(int number) {
  if (number < 0 || number > static_cast<int>(JobOrigin::kZeus)) throw OddCell{"jobs"};
  return static_cast<JobOrigin>(number);
}

// Empty: the settings say it.
void CheckTarget(const std::string& text) {
  if (!text.empty() && !ParsePlanTarget(text)) throw OddCell{"jobs"};
}

Error DamageOf(const std::string& name, const std::string& job, std::string_view table) {
  return {kDamaged, fmt::format("{}: job {} is damaged: table {} holds what Perseus never wrote; "
                                "delete the job, or restore a copy of the store",
                                name, job, table)};
}

std::optional<int> NotNegative(int value) {
  return value < 0 ? std::nullopt : std::optional<int>(value);
}

std::optional<double> NotNegative(double value) {
  return value < 0 ? std::nullopt : std::optional<double>(value);
}

class JobReader {
 public:
  JobReader(soci::session& sql, const std::string& server_id, Parts parts)
      : sql_(sql), server_id_(server_id), parts_(parts) {}

  // Throws OddCell.
  void ReadParts(StoredJob* stored) {
    if (Has(parts_, Parts::kPhase)) {
      ReadRecord(stored);
      ReadVersion(stored);
      ReadStragglers(stored);
    }
    if (Has(parts_, Parts::kRanks)) ReadRanks(stored);
    if (Has(parts_, Parts::kMeasurements)) ReadMeasurements(stored);
    if (Has(parts_, Parts::kCurve)) ReadCurve(stored);
    if (Has(parts_, Parts::kIterations)) {
      stored->iterations_here = ReadIterations(stored->job.id, "=");
      stored->iterations_elsewhere = ReadIterations(stored->job.id, "<>");
    }
    if (Has(parts_, Parts::kHistory)) {
      stored->history_here = ReadLastHistory(sql_, server_id_, stored->job.id);
    }
  }

 private:
  void ReadRecord(StoredJob* stored) {
    JobRecord& job = stored->job;
    int origin = 0;
    long long last_straggler = 0;
    std::string power;
    std::string state;
    std::string labels;
    const bool has_profile = Has(parts_, Parts::kProfile);
    const std::string profile = has_profile ? "profile" : "''";
    const std::string next_profile = has_profile ? "next_profile" : "''";
    std::string next_power;
    sql_ << "SELECT client_key, name, origin, pipeline_parallel, data_parallel, tensor_parallel, "
            "settings, "
         << profile
         << ", blocking_power, target, state, reason, detection, created_at, "
            "last_straggler, library, profile_source, sweep_round, settled_round, "
         << next_profile << ", next_blocking_power, finished_at, conditions, owner, "
         << LabelsOf("jobs.id") << " FROM jobs WHERE id = :i",
        use(job.id), into(job.client_key), into(job.name), into(origin),
        into(job.pipeline_parallel), into(job.data_parallel), into(job.tensor_parallel),
        into(job.settings_json), into(job.profile_csv), into(power), into(job.target), into(state),
        into(job.reason), into(job.detection_json), into(job.created_at_seconds),
        into(last_straggler), into(job.library_json), into(job.profile_source),
        into(job.sweep_round), into(job.settled_round), into(job.next_profile_csv),
        into(next_power), into(job.finished_at_seconds), into(job.conditions_json), into(job.owner),
        into(labels);
    job.labels = Checked(ParseLabels(labels), "labels");
    job.next_blocking_power_watts = Checked(ParseNumbers(next_power), "jobs");
    job.origin = OriginOf(origin);
    job.blocking_power_watts = Checked(ParseNumbers(power), "jobs");
    job.state = StateOf(state);
    CheckTarget(job.target);
    stored->last_straggler = last_straggler;
  }

  void ReadRanks(StoredJob* stored) {
    RankRecord rank;
    rank.job = stored->job.id;
    std::string clocks;
    Query query(sql_,
                "SELECT rank, dp_rank, pp_rank, tp_rank, gpu_uuid, gpu_name, node, clocks "
                "FROM ranks WHERE job = :j ORDER BY rank");
    query.Use(stored->job.id).Into(rank.rank).Into(rank.dp_rank).Into(rank.pp_rank);
    query.Into(rank.tp_rank).Into(rank.gpu_uuid).Into(rank.gpu_name).Into(rank.node).Into(clocks);
    while (query.Next()) {
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
    std::string sweep;
    std::string notes;
    std::string waiting;
    Query query(sql_,
                "SELECT rank, measured, blocking_power, done, sweep_round, blocking_power_std, "
                "counter_period, sweep, notes, waiting FROM measurements WHERE job = :j "
                "ORDER BY number");
    query.Use(stored->job.id).Into(measured.rank).Into(text).Into(power).Into(done);
    query.Into(measured.sweep_round).Into(measured.blocking_power_std_watts);
    query.Into(measured.counter_period_seconds).Into(sweep).Into(notes).Into(waiting);
    while (query.Next()) {
      measured.rows = Checked(ParseRows(text), "measurements");
      if (!ParseSweep(sweep, &measured.sweep)) throw OddCell{"measurements"};
      measured.notes = ParseLines(notes);
      measured.waiting = Checked(ParseWaiting(waiting), "measurements");
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
    Query query(sql_, "SELECT id, requested_time, knobs FROM plans WHERE job = :j ORDER BY id");
    query.Use(stored->job.id).Into(id).Into(plan.requested_time_seconds).Into(knobs);
    while (query.Next()) {
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
    Query query(sql_,
                "SELECT id, pipeline, rank, node, factor, delay, starts_at, expires_at "
                "FROM stragglers WHERE job = :j ORDER BY id");
    query.Use(stored->job.id).Into(id).Into(pipeline).Into(rank).Into(straggler.node);
    query.Into(straggler.factor).Into(straggler.delay_seconds).Into(straggler.starts_at_seconds);
    query.Into(expires);
    while (query.Next()) {
      straggler.id = id;
      straggler.pipeline = NotNegative(pipeline);
      straggler.rank = NotNegative(rank);
      straggler.expires_at_seconds = NotNegative(expires);
      stored->stragglers.push_back(straggler);
    }
  }

  // Summed over the servers that are (=) or are not (<>) this one.
  std::vector<IterationSummary> ReadIterations(const std::string& job,
                                               const std::string& comparison) {
    std::vector<IterationSummary> summaries;
    IterationSummary summary;
    summary.job = job;
    long long version = 0;
    long long reports = 0;
    long long energy_reports = 0;
    Query query(sql_,
                "SELECT plan_version, CAST(SUM(reports) AS BIGINT), SUM(total_time), "
                "MIN(least_time), MAX(most_time), SUM(square_time), "
                "CAST(SUM(energy_reports) AS BIGINT), SUM(total_energy), SUM(square_energy) "
                "FROM iterations WHERE job = :j AND server " +
                    comparison + " :s GROUP BY plan_version ORDER BY plan_version");
    query.Use(job).Use(server_id_);
    query.Into(version).Into(reports).Into(summary.total_seconds).Into(summary.least_seconds);
    query.Into(summary.most_seconds).Into(summary.square_seconds2).Into(energy_reports);
    query.Into(summary.total_joules).Into(summary.square_joules2);
    while (query.Next()) {
      summary.plan_version = version;
      summary.reports = reports;
      summary.energy_reports = energy_reports;
      summaries.push_back(summary);
    }
    return summaries;
  }

  soci::session& sql_;
  const std::string& server_id_;
  const Parts parts_;
};

}  // namespace

Result<std::optional<StoredJob>> ReadJob(soci::session& sql, const std::string& name,
                                         const std::string& server_id, const std::string& id,
                                         Parts parts) {
  std::vector<JobMarks> marks = ReadMarks(sql, {id});
  if (marks.empty()) return std::nullopt;
  StoredJob stored;
  stored.job.id = id;
  stored.marks = std::move(marks.front());
  try {
    JobReader(sql, server_id, parts).ReadParts(&stored);
  } catch (const OddCell& odd) {
    return tl::unexpected(DamageOf(name, id, odd.table));
  }
  return stored;
}

std::vector<JobHead> ReadHeads(soci::session& sql, const std::string& name,
                               std::vector<Error>* damaged) {
  std::vector<JobHead> heads;
  JobHead head;
  int origin = 0;
  std::string state;
  std::string labels;
  long long revision = 0;
  long long rows = 0;
  long long curve = 0;
  // CROSS: SQLite begins with the jobs then, whose index has them in order.
  Query query(
      sql, "SELECT j.id, j.client_key, j.name, j.origin, j.state, j.created_at, j.finished_at, " +
               LabelsOf("j.id") +
               ", m.revision, m.row_revision, m.curve_revision FROM jobs j CROSS JOIN marks m "
               "WHERE m.job = j.id ORDER BY j.created_at, j.id");
  query.Into(head.id).Into(head.client_key).Into(head.name).Into(origin).Into(state);
  query.Into(head.created_at_seconds).Into(head.finished_at_seconds).Into(labels);
  query.Into(revision).Into(rows).Into(curve);
  while (query.Next()) {
    head.marks = {.id = head.id, .revision = revision, .rows = rows, .curve = curve};
    try {
      head.origin = OriginOf(origin);
      head.state = StateOf(state);
      head.labels = Checked(ParseLabels(labels), "labels");
      heads.push_back(head);
    } catch (const OddCell& odd) {
      damaged->push_back(DamageOf(name, head.id, odd.table));
    }
  }
  return heads;
}

std::vector<JobMarks> ReadMarks(soci::session& sql, const std::vector<std::string>& ids) {
  std::vector<JobMarks> all;
  JobMarks marks;
  long long revision = 0;
  long long rows = 0;
  long long curve = 0;
  std::string text =
      "SELECT j.id, m.revision, m.row_revision, m.curve_revision FROM jobs j CROSS JOIN marks m "
      "WHERE m.job = j.id";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    text += fmt::format("{}:i{}", i == 0 ? " AND j.id IN (" : ", ", i);
  }
  text += ids.empty() ? "" : ")";
  Query query(sql, text + " ORDER BY j.created_at, j.id");
  for (const std::string& id : ids) query.Use(id);
  query.Into(marks.id).Into(revision).Into(rows).Into(curve);
  while (query.Next()) {
    marks.revision = revision;
    marks.rows = rows;
    marks.curve = curve;
    all.push_back(marks);
  }
  return all;
}

std::optional<std::string> ReadIdOfKey(soci::session& sql, const std::string& client_key) {
  std::string id;
  sql << "SELECT id FROM jobs WHERE client_key = :k", use(client_key), into(id);
  if (!sql.got_data()) return std::nullopt;
  return id;
}

std::vector<ProfileRecord> ReadProfiles(soci::session& sql, const ProfileQuery& wanted) {
  std::vector<ProfileRecord> all;
  ProfileRecord profile;
  std::string power;
  const bool is_one = !wanted.id.empty() || !wanted.layout.empty();
  std::string text = fmt::format(
      "SELECT id, job, model, layout, metadata, {}, blocking_power, conditions, created_at "
      "FROM profiles",
      is_one ? "profile" : "''");
  if (!wanted.id.empty()) text += " WHERE id = :i";
  if (!wanted.layout.empty()) text += " WHERE layout = :l";
  text += " ORDER BY created_at DESC, id";
  Query query(sql, text + (is_one ? " LIMIT 1" : ""));
  if (!wanted.id.empty()) query.Use(wanted.id);
  if (!wanted.layout.empty()) query.Use(wanted.layout);
  query.Into(profile.id).Into(profile.job).Into(profile.model).Into(profile.layout);
  query.Into(profile.metadata_json).Into(profile.profile_csv).Into(power);
  query.Into(profile.conditions_json).Into(profile.created_at_seconds);
  while (query.Next()) {
    // What cannot be read is as good as none: the planner asks for one then.
    profile.blocking_power_watts = ParseNumbers(power).value_or(std::vector<double>());
    all.push_back(profile);
  }
  return all;
}

}  // namespace perseus::store
