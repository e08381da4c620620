// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_STORE_H_
#define PERSEUS_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "perseus/result.h"
#include "store/facts.h"

namespace perseus::store {

// Called once, when facts are durable or are not. On a thread of the store
// that does nothing else: it may take locks, and calls Write() and Add() again.
using WrittenCallback = std::function<void(const Result<void>&)>;

inline constexpr double kFailingSeconds = 30;

// How the store is doing. Counts since it was opened.
struct StoreCounters {
  std::uint64_t facts = 0;
  std::uint64_t commits = 0;
  std::uint64_t failures = 0;  // Requests that were refused.
  std::string last_error;      // Empty where the last commit went well.
  // The last attempt failed on the database or the disk, not on what was written, and that
  // was less than kFailingSeconds ago: without new facts nobody knows better afterwards.
  bool is_failing = false;
};

// Durable state. What was acknowledged survives the death of the process and
// the loss of power (SQLite in WAL mode, synchronous=FULL). Facts that arrive
// while a commit is under way go into the next one together, so that thousands
// of ranks that register at once cost a few commits.
//
// Thread-safe. One process owns a store at a time; a second one is refused.
//
// Errors: kInvalidInput for a spec that cannot be, kIo otherwise. Each is a
// sentence that says which it is: in use, full, read-only, damaged, from a newer
// Perseus.
class Store {
 public:
  // "sqlite:FILE", which is made where there is none. Migrates what an older
  // Perseus wrote, in one transaction.
  // `on_problem` is told, from a thread of the store, of callbacks that threw.
  static Result<std::unique_ptr<Store>> Open(
      const std::string& spec, std::function<void(const std::string& sentence)> on_problem = {});

  // Ends what was added (acknowledging it), then closes.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // All of `facts` or none, in one transaction; returns when they are durable.
  // Not to be called with a lock held that a WrittenCallback takes: it is safe,
  // as callbacks have their own thread, but they wait as long.
  Result<void> Write(std::vector<Fact> facts);

  // The same without waiting. The callback is called after those of facts
  // that were added before.
  void Add(std::vector<Fact> facts, WrittenCallback written);

  // Every job, by the time of its creation.
  Result<std::vector<StoredJob>> LoadJobs();
  // One job; an empty vector where there is none.
  Result<std::vector<StoredJob>> LoadJob(const std::string& id);

  StoreCounters counters() const;

 private:
  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perseus::store

#endif  // PERSEUS_STORE_STORE_H_
