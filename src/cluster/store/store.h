// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_STORE_H_
#define PERSEUS_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/boot_clock.h"
#include "perseus/result.h"
#include "store/facts.h"

namespace perseus::store {

// Called once, when facts are durable or are not, with the marks of their job
// after them. On a thread of the store that does nothing else: it may take locks,
// and calls Write() and Add() again.
using WrittenCallback = std::function<void(const Result<JobMarks>&)>;

// Called with the marks of jobs that changed elsewhere (revision 0: it is gone)
// or, with `are_all`, with those of every job that there is. On a thread of the
// store that does nothing else.
using WatchCallback = std::function<void(const std::vector<JobMarks>& marks, bool are_all)>;

inline constexpr double kFailingSeconds = 30;

// How the store is doing. Counts since it was opened.
struct StoreCounters {
  std::uint64_t facts = 0;
  std::uint64_t commits = 0;
  std::uint64_t failures = 0;   // Requests that were not written,
  std::uint64_t conflicts = 0;  // but for these: another server was faster.
  std::string last_error;       // Empty where the last commit went well.
  // The last attempt failed on the database or the disk, not on what was written, and that
  // was less than kFailingSeconds ago: without new facts nobody knows better afterwards. Or the
  // files of the store were deleted under it.
  bool is_failing = false;
};

// Durable state. What was acknowledged survives the death of the process and
// the loss of power (SQLite in WAL mode, synchronous=FULL; PostgreSQL as it is set
// up). Facts that arrive while a commit is under way go into the next one together,
// so that thousands of ranks that register at once cost a few commits.
//
// Thread-safe. One process owns a store of SQLite at a time; a second one is refused.
// A store of PostgreSQL is shared by any number. While its database is away a call
// waits for it for about kWaitSeconds (link.h), and not at all once it has been away
// for longer. docs/explanation/store.md has the rest.
//
// Errors are sentences: in use, full, read-only, damaged, from a newer Perseus. Codes:
//   kInvalidInput  a spec that cannot be; facts about several jobs in one request;
//   kConflict      the tables refused the facts: there is no such job, a rank's
//                  position or a job's client_key is taken, or the job's revision is
//                  not the expected one. Nothing was written; read again;
//   kTooLate       a request's deadline is past. Nothing was written; read again;
//   kDamaged       of LoadJob(): this one job cannot be read; others are well;
//   kIo            the database or the disk. Nothing was written, or, as the sentence
//                  then says, it is not known whether it was: read again.
class Store {
 public:
  // "sqlite:FILE", which is made where there is none, or "postgresql://..." (a URI
  // of libpq), which names a database. Makes the tables, and migrates what an older
  // Perseus wrote, in one transaction.
  // `on_problem` is told, from a thread of the store or of its caller, of callbacks that
  // threw, of jobs that are damaged, and of what Open() waits for.
  // With `keep_going`, a database that cannot be reached yet, as it starts or recovers, is
  // waited for until that returns false (asked some 20 times a second); what no waiting
  // mends, as a wrong password, still is an error at once.
  static Result<std::unique_ptr<Store>> Open(
      const std::string& spec, std::function<void(const std::string& sentence)> on_problem = {},
      const std::function<bool()>& keep_going = {});

  // Ends what was added (acknowledging it), then closes.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // All of `facts`, which are about one job, or none, in one transaction; returns
  // when they are durable. With `expected_revision` only if the job still has that
  // one (JobMarks::revision), which goes on by one; two servers that try at once
  // take turns, and the second has a conflict.
  // Where the transaction has not begun by `deadline` (none given: 10 s after the call),
  // nothing is written (kTooLate): a process that was stopped meanwhile does not write
  // over what others wrote since.
  // Not to be called with a lock held that a WrittenCallback takes: it is safe,
  // as callbacks have their own thread, but they wait as long.
  Result<JobMarks> Write(std::vector<Fact> facts,
                         std::optional<std::int64_t> expected_revision = std::nullopt,
                         std::optional<BootClock::time_point> deadline = std::nullopt);

  // The same without waiting. The callback is called after those of facts
  // that were added before.
  void Add(std::vector<Fact> facts, WrittenCallback written,
           std::optional<std::int64_t> expected_revision = std::nullopt,
           std::optional<BootClock::time_point> deadline = std::nullopt);

  // Every job, by the time of its creation. One that is damaged is left out, and
  // `on_problem` is told.
  Result<std::vector<StoredJob>> LoadJobs();
  // The same of what a list needs: one query without the long texts.
  Result<std::vector<JobHead>> ListHeads();
  // One job as it is at one moment, or nullopt where there is none.
  Result<std::optional<StoredJob>> LoadJob(const std::string& id, Parts parts = Parts::kAll);
  // The id of the job with this client_key.
  Result<std::optional<std::string>> FindKey(const std::string& client_key);
  // Of every job, by the time of its creation.
  Result<std::vector<JobMarks>> ListMarks();

  // The library of profiles, the newest first, without their CSV.
  Result<std::vector<ProfileRecord>> ListProfiles();
  // Nullopt: there is none, or no longer.
  Result<std::optional<ProfileRecord>> FindProfile(const std::string& id);
  // The newest of those with this layout.
  Result<std::optional<ProfileRecord>> FindProfileOfLayout(const std::string& layout);
  Result<void> DeleteProfile(const std::string& id);

  // Calls back when other processes changed jobs, until the store is closed; once
  // a store. A hint: it may come late, twice, or of changes of this process. Never
  // where no other process can write.
  void Watch(WatchCallback changed);

  // Work that WorkWanted asked for: the job that has waited longest and that nobody
  // has, leased to this process for `lease_seconds` by the database's clock (of SQLite: by
  // one that nobody sets). Nullopt: none.
  Result<std::optional<std::string>> ClaimWork(double lease_seconds,
                                               WorkKind kind = WorkKind::kAny);
  // For another `lease_seconds` from now. False: the lease ended, and another
  // process took it.
  Result<bool> RenewWork(const std::string& job, double lease_seconds);
  // The work is done or given up. What was wanted of the job since it was claimed
  // is there to be claimed again. Nothing happens where another process has it.
  Result<void> FinishWork(const std::string& job);

  // The database's time of day: that of all processes that share it.
  Result<double> NowSeconds();

  // Of this process, and of no other: 64 random bits in hexadecimal digits.
  const std::string& server_id() const;
  // Whether other processes may write at the same time.
  bool is_shared() const;

  // Waits for no commit.
  StoreCounters counters() const;

 private:
  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perseus::store

#endif  // PERSEUS_STORE_STORE_H_
