// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Reads and deletes rows of the history.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/store/cells.h"
#include "server/store/query.h"
#include "server/store/tables.h"

namespace perseus::store {
namespace {

// SOCI knows long long, not int64_t.
using Big = long long;

// Where a query puts IterationTimes.
struct Times {
  Big iterations = 0;
  Big reports = 0;

  void Bind(IterationTimes* times, Query* query) {
    query->Into(iterations).Into(reports).Into(times->seconds);
  }
  void Complete(IterationTimes* times) const {
    times->iterations = iterations;
    times->reports = reports;
  }
};

// Where a query puts the figures of a row.
struct Figures {
  int resolution = 0;
  Big start = 0;
  Big reports = 0;
  Big energy_reports = 0;
  Times times;
  Times measured_times;

  void Bind(HistoryRow* row, Query* query) {
    query->Into(resolution).Into(start).Into(row->ranks);
    query->Into(row->first_seconds).Into(row->last_seconds);
    query->Into(reports).Into(row->total_seconds);
    query->Into(energy_reports).Into(row->joules);
    query->Into(row->promised_joules).Into(row->compared_joules).Into(row->realised_joules);
    times.Bind(&row->times, query);
    measured_times.Bind(&row->measured_times, query);
    query->Into(row->measured_joules);
  }
  void Complete(HistoryRow* row) const {
    row->resolution = static_cast<Resolution>(resolution);
    row->start = start;
    row->reports = reports;
    row->energy_reports = energy_reports;
    times.Complete(&row->times);
    measured_times.Complete(&row->measured_times);
  }
};

// Of all servers. Where each heard of some ranks only, all heard of the same iterations: these are
// as long as at the server with the slowest rank, `longest`. Where one followed another, they heard
// of different ones: then each counts once.
double MeanSeconds(const IterationTimes& times, double longest, int ranks) {
  if (times.reports == 0) return 0;
  return std::min(longest, times.seconds * ranks / static_cast<double>(times.reports));
}

}  // namespace

std::vector<HistoryRow> ReadLastHistory(soci::session& sql, const std::string& server_id,
                                        const std::string& job) {
  std::vector<HistoryRow> rows;
  HistoryRow row;
  row.job = job;
  Figures figures;
  Query query(sql,
              "SELECT resolution, start_at, ranks, first_at, last_at, reports, total_time, "
              "energy_reports, energy, promised, compared, realised, iterations, "
              "iteration_reports, iteration_time, measured_iterations, measured_reports, "
              "measured_time, measured_energy FROM history h "
              "WHERE job = :j AND server = :s AND start_at = (SELECT MAX(start_at) FROM history "
              "WHERE job = h.job AND server = h.server AND resolution = h.resolution)");
  query.Use(job).Use(server_id);
  figures.Bind(&row, &query);
  while (query.Next()) {
    figures.Complete(&row);
    rows.push_back(row);
  }
  return rows;
}

std::vector<NamedHistoryRow> ReadHistory(soci::session& sql, const HistoryQuery& wanted) {
  std::vector<NamedHistoryRow> rows;
  NamedHistoryRow named;
  std::string labels;
  const int resolution = static_cast<int>(wanted.resolution);
  const Big since = wanted.since;
  const Big until = wanted.until;
  Figures figures;
  Query query(
      sql,
      "SELECT job, MAX(name), MAX(owner), " + LabelsOf("history.job") +
          std::string(", resolution, start_at, MAX(ranks), MIN(first_at), MAX(last_at), "
                      "CAST(SUM(reports) AS BIGINT), SUM(total_time), "
                      "CAST(SUM(energy_reports) AS BIGINT), SUM(energy), "
                      "SUM(promised), SUM(compared), SUM(realised), "
                      "CAST(SUM(iterations) AS BIGINT), CAST(SUM(iteration_reports) AS BIGINT), "
                      "SUM(iteration_time), CAST(SUM(measured_iterations) AS BIGINT), "
                      "CAST(SUM(measured_reports) AS BIGINT), SUM(measured_time), "
                      "SUM(measured_energy), "
                      "COALESCE(MAX(iteration_time / NULLIF(iterations, 0)), 0), "
                      "COALESCE(MAX(measured_time / NULLIF(measured_iterations, 0)), 0) "
                      "FROM history "
                      "WHERE resolution = :r AND start_at >= :s AND start_at < :u") +
          (wanted.job.empty() ? "" : " AND job = :j") +
          " GROUP BY job, resolution, start_at ORDER BY job, start_at LIMIT " +
          std::to_string(wanted.most + 1));
  query.Use(resolution).Use(since).Use(until);
  if (!wanted.job.empty()) query.Use(wanted.job);
  query.Into(named.row.job).Into(named.name).Into(named.owner).Into(labels);
  figures.Bind(&named.row, &query);
  double longest = 0;
  double longest_measured = 0;
  query.Into(longest).Into(longest_measured);
  while (query.Next()) {
    figures.Complete(&named.row);
    named.iteration_seconds = MeanSeconds(named.row.times, longest, named.row.ranks);
    named.measured_iteration_seconds =
        MeanSeconds(named.row.measured_times, longest_measured, named.row.ranks);
    // What cannot be read is as good as none: an account lacks no job.
    named.labels = ParseLabels(labels).value_or(JobLabels());
    rows.push_back(named);
  }
  return rows;
}

std::int64_t DeleteHistory(soci::session& sql, Resolution resolution, std::int64_t start,
                           std::int64_t most) {
  const int number = static_cast<int>(resolution);
  const Big before = start;
  const Big limit = most;
  Big deleted = 0;
  Query query(sql,
              "DELETE FROM history WHERE (job, server, resolution, start_at) IN (SELECT job, "
              "server, resolution, start_at FROM history WHERE resolution = :r AND start_at < :b "
              "ORDER BY start_at LIMIT :l) RETURNING 1");
  Big one = 0;
  query.Use(number).Use(before).Use(limit).Into(one);
  while (query.Next()) ++deleted;
  return deleted;
}

}  // namespace perseus::store
