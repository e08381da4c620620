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

// Called once when facts are durable, or when writing them failed. Runs on a thread of the store
// that does nothing else, so it may take locks and call Write() and Add().
using WrittenCallback = std::function<void(const Revision&)>;

inline constexpr double kFailingSeconds = 30;

// The state of the store. Counts begin when it is opened.
struct StoreCounters {
  std::uint64_t facts = 0;
  std::uint64_t commits = 0;
  std::uint64_t failures = 0;  // Requests that failed.
  std::string last_error;      // Empty: the last commit succeeded.
  // The last commit failed because of the database or the disk, less than kFailingSeconds ago
  // (later that says nothing, if there were no new facts to try). Or the store's files were
  // deleted while it uses them.
  bool is_failing = false;
  // Requests that are not durable yet, and for how long the oldest of them has waited.
  std::uint64_t waiting = 0;
  double waiting_seconds = 0;
  std::optional<std::string> why_not_active = {};  // None: this server is the active one.
  int schema_version = 0;                          // Of the tables.
  std::optional<std::uint64_t> free_bytes = {};    // Of the disk; none: it is not this machine's.
};

// Whether a database server keeps the store that `spec` names, so that `spec` may hold a password.
bool IsRemote(const std::string& spec);

// How Store::Open() waits, and for whom. With `keep_going` it waits until that returns false
// (called about 20 times a second) for a database that is starting or recovering, and while another
// server has the store. Errors that waiting cannot repair, such as a wrong password, are still
// returned at once.
struct OpenWait {
  std::function<bool()> keep_going = {};
  // The address of this server, for clients that ask one that stands by.
  std::string address = {};
  // Called again and again with the address of the active server while there is one.
  std::function<void(const std::string& active)> on_standby = {};
};

// Durable state. Acknowledged facts survive the death of the process and a loss of power (SQLite
// in WAL mode with synchronous=FULL; PostgreSQL as it is configured). Facts that arrive during a
// commit are written together by the next one, so that thousands of ranks that register at once
// cost only a few commits.
//
// Thread-safe. One process at a time has a store (active.h). Where it loses the store to another,
// or cannot know what the store holds, it writes nothing more: StoreCounters::why_not_active says
// so, and whoever holds this object must close it, and open and read the store anew. While there is
// no connection to a database, calls wait for it for about kWaitSeconds (link.h).
// docs/explanation/server.md has the rest.
//
// Errors are sentences: in use, full, read-only, damaged, from a newer Perseus. Codes:
//   kInvalidInput  an invalid spec; facts about several jobs in one request;
//   kConflict      the tables refused the facts: there is no such job, or a rank's
//                  position or a job's client_key is taken. Nothing was written;
//   kTooLate       a deadline has passed, or no client waits any more. Nothing was written;
//   kDamaged       LoadJob() cannot read this one job; others are not affected;
//   kIo            the database or the disk failed, or this server is not active any more. Nothing
//                  was written or, if the sentence says so, it is not known whether it was.
class Store {
 public:
  // `spec`: "sqlite:FILE", which is created if it does not exist, or a libpq URI "postgresql://..."
  // of an existing database. Creates the tables, or migrates those of an older version, in one
  // transaction.
  // `on_problem` gets sentences about callbacks that threw, damaged jobs, and the waits of
  // Open(). It is called on a thread of the store or of the caller.
  static Result<std::unique_ptr<Store>> Open(
      const std::string& spec, std::function<void(const std::string& sentence)> on_problem = {},
      const OpenWait& wait = {});

  // The errors of Open() that show at once: makes no file, and asks no database.
  static Result<void> Check(const std::string& spec);

  // Completes and acknowledges all writes, then closes.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Writes all of `facts`, which must be about one job, in one transaction. Returns when they are
  // durable. With `deadline`, it writes only before that time.
  Revision Write(std::vector<Fact> facts, std::optional<BootClock::time_point> deadline = {});
  // The same, and returns at once. Requests about one job are written in the order of the calls.
  // `is_wanted`, if given, must return true when the transaction begins, as it does not once the
  // client that asked for the change is gone. Called from any thread.
  void Add(std::vector<Fact> facts, WrittenCallback written, std::function<bool()> is_wanted = {});

  // The heads of all jobs, by time of creation. A damaged one lacks what cannot be read; LoadJob()
  // says so.
  Result<std::vector<JobHead>> ListHeads();
  // One job as it is at one moment; nullopt: it does not exist.
  Result<std::optional<StoredJob>> LoadJob(const std::string& id);

  // The library of profiles, the newest first, without their CSV.
  Result<std::vector<ProfileRecord>> ListProfiles();
  // Nullopt: there is no such profile.
  Result<std::optional<ProfileRecord>> FindProfile(const std::string& id);
  // The newest profile with this layout.
  Result<std::optional<ProfileRecord>> FindProfileOfLayout(const std::string& layout);
  Result<void> DeleteProfile(const std::string& id);

  // The history, by job and start. Days of deleted jobs are there, too.
  Result<std::vector<NamedHistoryRow>> ListHistory(const HistoryQuery& wanted);
  // Deletes rows that are older than kKeptSeconds.
  Result<void> ForgetHistory(double now_seconds);

  // See class Active.
  std::int64_t history_seconds() const;
  double skew_seconds() const;
  // Ends this server's time as the active one: `why` says what it does not know any more.
  void GiveUp(const std::string& why);
  // Whether this server is active, by a look at the clock alone.
  bool is_active() const;
  // For messages: the file, or host and database.
  const std::string& name() const;

  // Does not wait for a commit.
  StoreCounters counters() const;

 private:
  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_STORE_H_
