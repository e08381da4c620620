// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_READING_H_
#define PERSEUS_SERVER_DOMAIN_READING_H_

#include <cstdint>
#include <optional>

#include "server/domain/job_life.h"

// Reads other servers' writes about a job. All rows of one reading show the store at one moment. If
// this server wrote newer rows meanwhile, the older ones that were read are ignored.
namespace perseus::server {

// The server's knowledge of the job before a reading.
struct Known {
  store::JobMarks marks;
  std::int64_t own_rows = 0;  // See JobLife.
  int settled_round = 0;
  std::optional<PlannedConditions> conditions;  // That the plans are made for.
  Built built;
};
Known KnownOf(const JobLife& job);

// The parts to read for a server that knows `known`, where the store has the rows of `now`.
store::Parts PartsToRead(const store::JobMarks& now, const Known& known);

// Whether the stored job, which has a curve, is made from another profile, or for other conditions,
// than the one that is known. A sweep that was given up leaves profile and curve as they were.
bool HasNewJob(const store::StoredJob& stored, const Known& known);

// The result of one reading.
struct Reading {
  Known known;           // The server's knowledge when the reading began.
  bool is_gone = false;  // The job was deleted.
  store::Parts parts = store::Parts::kNone;
  store::StoredJob stored;
  Built built;               // Built from the rows that were read. Null members: no change.
  bool has_new_job = false;  // built.job was made from another profile, or for other
                             // conditions, than before.
};

// Brings `job` up to date with a reading. False: the reading does not fit the job any more, so the
// store must be read again.
bool Absorb(const Reading& reading, JobLife* job);

// Whether rows that this server wrote must now be applied to its job. kAdd: yes, and the job's
// marks already count them. kNo: a reading has brought them. kReadFirst: another server wrote rows
// before them, so the store must be read first.
enum class OwnRows : std::uint8_t { kAdd, kNo, kReadFirst };
OwnRows NoteOwnRows(const store::JobMarks& written, JobLife* job);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_READING_H_
