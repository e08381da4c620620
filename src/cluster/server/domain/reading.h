// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_READING_H_
#define PERSEUS_SERVER_DOMAIN_READING_H_

#include <cstdint>

#include "server/domain/job_life.h"

// How a job learns what other servers wrote. Rows of one reading are of one moment. What is older
// than what this server knows, because it wrote meanwhile, is passed over.
namespace perseus::server {

// What a reading begins with.
struct Known {
  store::JobMarks marks;
  int settled_round = 0;
  Built built;
};
Known KnownOf(const JobLife& job);

// What a server that knows the rows as of `known` has to read, where the store has those of `now`.
store::Parts PartsToRead(const store::JobMarks& now, const store::JobMarks& known);

// What one reading found.
struct Reading {
  Known known;           // Before it.
  bool is_gone = false;  // There is no such job any more.
  store::Parts parts = store::Parts::kNone;
  store::StoredJob stored;
  Built built;               // Of what was read. Null: as before.
  bool has_new_job = false;  // built.job is of another profile than before.
};

// The job as it is after a reading. False: what was read does not fit what is known; read again.
bool Absorb(const Reading& reading, JobLife* job);

// Whether rows that this server wrote are to be added to what it knows, and the marks say so from
// now on. kNo: they came by reading. kReadFirst: another server wrote in between.
enum class OwnRows : std::uint8_t { kAdd, kNo, kReadFirst };
OwnRows NoteOwnRows(const store::JobMarks& written, JobLife* job);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_READING_H_
