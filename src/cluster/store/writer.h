// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_WRITER_H_
#define PERSEUS_STORE_WRITER_H_

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "perseus/result.h"
#include "store/link.h"
#include "store/store.h"
#include "store/tables.h"

namespace perseus::store {

// Takes requests and commits those that came during a commit together. Two
// threads: one writes, the other calls back, so that a callback may wait for
// whatever it likes and the next commit goes on meanwhile. Thread-safe.
class Writer {
 public:
  using ProblemCallback = std::function<void(const std::string& sentence)>;
  // Told, on the writing thread, of jobs whose plan others wait for: after the
  // commit, with what the job then is.
  using NewsCallback = std::function<void(const std::vector<JobMarks>&)>;

  // `link` outlives it.
  Writer(std::shared_ptr<const Backend> backend, Link* link, std::string server_id,
         ProblemCallback on_problem, NewsCallback on_news);
  // Ends what was added, acknowledging it.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Add(Request request, WrittenCallback written);
  // Returns when it is durable, or is not.
  Result<JobMarks> Write(Request request);

  StoreCounters counters() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    Request request;
    WrittenCallback written;
    bool at_once = false;  // Called by the writing thread itself; must not block.
    Clock::time_point added = Clock::now();
    std::optional<Result<JobMarks>> result = {};
  };
  struct Acknowledgement {
    WrittenCallback written;
    Result<JobMarks> result;
  };

  void AddEntry(Entry entry);
  void WriteAll();
  void CommitBatch(std::vector<Entry>* batch);
  void CommitOrAnswer(std::span<Entry* const> entries);
  static double SecondsFor(std::span<Entry* const> entries);
  std::optional<Failure> Commit(std::span<Entry* const> entries);
  std::optional<Failure> TryToCommit(std::span<Entry* const> entries, std::size_t* facts);
  std::vector<Entry*> Punctual(std::span<Entry* const> entries) const;
  bool MayTryAgain(const Failure& failure, bool is_repeatable, Clock::time_point since, int tries);
  bool Pause(std::chrono::milliseconds time);
  void Acknowledge(Entry* entry);
  void TellNews(const std::vector<Entry>& batch) const;
  void Notify(const Acknowledgement& next) const;
  void NotifyAll();

  const std::shared_ptr<const Backend> backend_;
  Link* const link_;
  const std::string server_id_;
  const ProblemCallback on_problem_;
  const NewsCallback on_news_;

  mutable Mutex mutex_;
  ConditionVariable wake_writer_;
  ConditionVariable wake_notifier_;
  std::deque<Entry> entries_ PERSEUS_GUARDED_BY(mutex_);
  std::deque<Acknowledgement> acknowledgements_ PERSEUS_GUARDED_BY(mutex_);
  StoreCounters counters_ PERSEUS_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> failed_at_ PERSEUS_GUARDED_BY(mutex_);
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  bool written_all_ PERSEUS_GUARDED_BY(mutex_) = false;
  bool is_notifying_ PERSEUS_GUARDED_BY(mutex_) = false;

  std::thread writer_;
  std::thread notifier_;
};

}  // namespace perseus::store

#endif  // PERSEUS_STORE_WRITER_H_
