// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/reading.h"

#include <algorithm>
#include <utility>

namespace perseus::server {
namespace {

using store::Parts;

// Whether the store may have lost rows that this server has read or written. It may have written
// rows beyond those that it has read; see OwnRows.
bool LacksRows(const store::JobMarks& now, const Known& known) {
  return now.rows < std::max(known.marks.rows, known.own_rows) ||
         store::HistoryOf(now.rows) != store::HistoryOf(known.marks.rows);
}

bool AbsorbPhase(const Reading& reading, JobLife* job) {
  const store::JobMarks& marks = reading.stored.marks;
  // A standby that took over may lack the last commits. What it has is what there is.
  const bool went_back = marks.revision < reading.known.marks.revision;
  if (marks.revision <= job->marks.revision && !went_back) return true;
  const Phase& old = job->phase;
  Phase next = ReplayPhase(reading.stored, reading.built);
  if (!Has(reading.parts, Parts::kCurve)) {
    if (marks.curve != job->marks.curve) return false;
    next.built.curve = old.built.curve;
  }
  if (!reading.has_new_job) next.built.job = old.built.job;
  const bool is_new_sweep = next.sweep_round != old.sweep_round;
  job->phase = std::move(next);
  job->marks.revision = marks.revision;
  job->marks.curve = marks.curve;
  if (is_new_sweep) ForgetSweep(job);
  return true;
}

void AbsorbRows(const Reading& reading, JobLife* job) {
  const store::StoredJob& stored = reading.stored;
  const std::int64_t rows = stored.marks.rows;
  const bool went_back = LacksRows(stored.marks, reading.known);
  if (rows <= job->marks.rows && !went_back) return;
  if (went_back) {
    job->ranks.clear();
    job->positions.clear();
    job->own_rows = rows;
  }
  for (const store::RankRecord& rank : stored.ranks) {
    // A record of this server's own that came after the reading is the newer one.
    const bool is_known = job->ranks.contains(rank.rank);
    if (!is_known || rows >= job->own_rows) Apply(rank, {}, job);
  }
  job->marks.rows = job->read_rows = rows;
  ForgetSweep(job);
  for (const store::Measurements& measured : stored.measurements) Apply(measured, {}, job);
}

}  // namespace

Parts PartsToRead(const store::JobMarks& now, const Known& known) {
  Parts parts = Parts::kNone;
  if (now.revision != known.marks.revision) parts = parts | Parts::kPhase;
  if (now.curve != known.marks.curve) parts = parts | Parts::kPhase | Parts::kCurve;
  const bool has_other_rows = now.rows != known.marks.rows || LacksRows(now, known);
  if (has_other_rows) parts = parts | Parts::kRanks | Parts::kMeasurements;
  return parts;
}

bool HasNewJob(const store::StoredJob& stored, const Known& known) {
  const auto conditions = ParseConditionsState(stored.job.conditions_json);
  const bool has_other_conditions =
      (conditions ? std::optional(conditions->plan) : std::nullopt) != known.conditions;
  return known.built.job == nullptr || has_other_conditions ||
         stored.job.settled_round != known.settled_round ||
         store::HistoryOf(stored.marks.revision) != store::HistoryOf(known.marks.revision);
}

Known KnownOf(const JobLife& job) {
  return {
      .marks = job.marks,
      .own_rows = job.own_rows,
      .settled_round = job.phase.settled_round,
      .conditions = job.phase.conditions ? std::optional(job.phase.conditions->plan) : std::nullopt,
      .built = job.phase.built};
}

bool Absorb(const Reading& reading, JobLife* job) {
  if (job->phase.is_gone) return true;
  if (reading.is_gone) {
    Apply(store::JobGone{job->record.id}, {}, job);
    return true;
  }
  if (Has(reading.parts, Parts::kPhase) && !AbsorbPhase(reading, job)) return false;
  if (!Has(reading.parts, Parts::kRanks)) return true;
  // The phase changed after it was looked at: measurements of a new sweep would be dropped.
  if (reading.stored.marks.revision > job->marks.revision) return false;
  AbsorbRows(reading, job);
  return true;
}

OwnRows NoteOwnRows(const store::JobMarks& written, JobLife* job) {
  job->own_rows = std::max(job->own_rows, written.rows);
  if (written.rows <= job->read_rows) return OwnRows::kNo;
  if (written.rows > job->marks.rows + 1) return OwnRows::kReadFirst;
  job->marks.rows = std::max(job->marks.rows, written.rows);
  return OwnRows::kAdd;
}

}  // namespace perseus::server
