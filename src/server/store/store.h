// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_STORE_H_
#define PERSEUS_SERVER_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clocks.h"
#include "perseus/result.h"
#include "server/store/facts.h"

namespace perseus::store {

// Called once when facts are durable, with the job's new marks, or when writing them failed. Runs
// on a thread of the store that does nothing else, so it may take locks and call Write() and Add().
using WrittenCallback = std::function<void(const Result<JobMarks>&)>;

// Called with the marks of jobs that other processes changed (revision 0: the job was deleted) or,
// if `are_all`, with the marks of all jobs. Runs on a thread of the store that does nothing else.
using WatchCallback = std::function<void(const std::vector<JobMarks>& marks, bool are_all)>;

inline constexpr double kFailingSeconds = 30;

// The state of the store. Counts begin when it is opened.
struct StoreCounters {
  std::uint64_t facts = 0;
  std::uint64_t commits = 0;
  std::uint64_t failures = 0;  // Requests that failed, without conflicts.
  std::string last_error;      // Empty: the last commit succeeded.
  // The last commit failed because of the database or the disk, less than kFailingSeconds ago
  // (later that says nothing, if there were no new facts to try). Or the store's files were
  // deleted while it uses them.
  bool is_failing = false;
  // Requests that are not durable yet, and for how long the oldest of them has waited.
  std::uint64_t waiting = 0;
  double waiting_seconds = 0;
  int schema_version = 0;                        // Of the tables.
  std::optional<std::uint64_t> free_bytes = {};  // Of the disk; none: it is not this machine's.
};

// Durable state. Acknowledged facts survive the death of the process and a loss of power (SQLite
// in WAL mode with synchronous=FULL; PostgreSQL as it is configured). Facts that arrive during a
// commit are written together by the next one, so that thousands of ranks that register at once
// cost only a few commits.
//
// Thread-safe. A SQLite store is owned by one process at a time; a second process is refused. Any
// number of processes can share a PostgreSQL store. While its database is away, calls wait for it
// for about kWaitSeconds (link.h); once it has been away for longer, they fail at once.
// docs/explanation/server.md has the rest.
//
// Errors are sentences: in use, full, read-only, damaged, from a newer Perseus. Codes:
//   kInvalidInput  an invalid spec; facts about several jobs in one request;
//   kConflict      the tables refused the facts: there is no such job, a rank's
//                  position or a job's client_key is taken, or the job's revision is
//                  not the expected one. Nothing was written; read again;
//   kTooLate       a deadline has passed, or no client waits any more. Nothing was written; read
//                  again;
//   kDamaged       LoadJob() cannot read this one job; others are not affected;
//   kIo            the database or the disk failed. Nothing was written or, if the sentence says
//                  so, it is not known whether it was: read again.
class Store {
 public:
  // `spec`: "sqlite:FILE", which is created if it does not exist, or a libpq URI "postgresql://..."
  // of an existing database. Creates the tables, or migrates those of an older version, in one
  // transaction.
  // `on_problem` gets sentences about callbacks that threw, damaged jobs, and the waits of
  // Open(). It is called on a thread of the store or of the caller.
  // `keep_going`: if given, Open() waits for a database that is starting or recovering until
  // `keep_going` returns false (called about 20 times a second). Errors that waiting cannot repair,
  // such as a wrong password, are still returned at once.
  static Result<std::unique_ptr<Store>> Open(
      const std::string& spec, std::function<void(const std::string& sentence)> on_problem = {},
      const std::function<bool()>& keep_going = {});

  // The errors of Open() that show at once: makes no file, and asks no database.
  static Result<void> Check(const std::string& spec);

  // Completes and acknowledges all writes, then closes.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Writes all of `facts`, which must be about one job, in one transaction. Returns when they are
  // durable. With `expected_revision`, it writes only if the job's JobMarks::revision has that
  // value, and raises it by one; if two servers try that at once, the second gets kConflict.
  // If the transaction has not begun by `deadline` (default: 10 s after the call), nothing is
  // written (kTooLate). So a process that was stopped meanwhile does not overwrite newer facts.
  // Do not hold a lock that a WrittenCallback takes: that is safe, but delays all callbacks.
  Result<JobMarks> Write(std::vector<Fact> facts,
                         std::optional<std::int64_t> expected_revision = std::nullopt,
                         std::optional<BootClock::time_point> deadline = std::nullopt);

  // The same without waiting. Callbacks are called in the order of the calls of Add(). The facts
  // are not written (kTooLate) if `is_wanted` returns false when the transaction has locked the
  // job, as it does once the client that asked for the change is gone. Called from any thread.
  void Add(std::vector<Fact> facts, WrittenCallback written,
           std::optional<std::int64_t> expected_revision = std::nullopt,
           std::function<bool()> is_wanted = {});

  // The heads of all jobs, by time of creation. Damaged ones are left out and reported to
  // `on_problem`.
  Result<std::vector<JobHead>> ListHeads();
  // One job as it is at one moment; nullopt: it does not exist.
  Result<std::optional<StoredJob>> LoadJob(const std::string& id, Parts parts = Parts::kAll);
  Result<std::optional<std::string>> FindKey(const std::string& client_key);

  // The library of profiles, the newest first, without their CSV.
  Result<std::vector<ProfileRecord>> ListProfiles();
  // Nullopt: there is no such profile.
  Result<std::optional<ProfileRecord>> FindProfile(const std::string& id);
  // The newest profile with this layout.
  Result<std::optional<ProfileRecord>> FindProfileOfLayout(const std::string& layout);
  Result<void> DeleteProfile(const std::string& id);

  // The history, by job and start, summed over servers. Days of deleted jobs are there, too.
  Result<std::vector<NamedHistoryRow>> ListHistory(const HistoryQuery& wanted);
  // Deletes rows that are older than kKeptSeconds. Several processes may do so at once.
  Result<void> ForgetHistory(double now_seconds);

  // Calls `changed` when other processes have changed jobs, until the store is closed. To be called
  // once. Calls are hints: they may come late, twice, or for changes of this process. There are
  // none if the store is not shared.
  void Watch(WatchCallback changed);

  // Claims work that a WorkWanted asked for, and leases it to this process for `lease_seconds` (by
  // Backend::lease_now()). Of all unclaimed jobs it takes the one that has waited longest. Nullopt:
  // there is no work.
  Result<std::optional<std::string>> ClaimWork(double lease_seconds,
                                               WorkKind kind = WorkKind::kAny);
  // Extends the lease to `lease_seconds` from now. False: the lease ended, and another process took
  // the work.
  Result<bool> RenewWork(const std::string& job, double lease_seconds);
  // Says that the work is done or given up. If more work of the job was asked for since the claim,
  // it can be claimed now. Does nothing if another process holds the lease.
  Result<void> FinishWork(const std::string& job);

  // The database's time of day, which all processes that share it can use.
  Result<double> NowSeconds();

  // A unique id of this process: 64 random bits in hexadecimal digits.
  const std::string& server_id() const;
  // Whether other processes may write at the same time.
  bool is_shared() const;

  // Does not wait for a commit.
  StoreCounters counters() const;

 private:
  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_STORE_H_
