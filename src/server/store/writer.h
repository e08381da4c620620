// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_WRITER_H_
#define PERSEUS_SERVER_STORE_WRITER_H_

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
#include "server/store/link.h"
#include "server/store/store.h"
#include "server/store/tables.h"

namespace perseus::store {

// Writes requests; those that arrive during a commit are written together by the next one. It has
// two threads: one writes, the other calls callbacks, so that a slow callback does not delay
// commits. Thread-safe.
class Writer {
 public:
  using ProblemCallback = std::function<void(const std::string& sentence)>;
  // Called on the writing thread, after a commit that changed what other servers wait for, with the
  // marks of the changed jobs.
  using NewsCallback = std::function<void(const std::vector<JobMarks>&)>;

  // `link` must outlive this object.
  Writer(std::shared_ptr<const Backend> backend, Link* link, std::string server_id,
         ProblemCallback on_problem, NewsCallback on_news);
  // Completes and acknowledges all requests.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Add(Request request, WrittenCallback written);
  // Returns when the request is durable or has failed.
  Result<JobMarks> Write(Request request);

  StoreCounters counters() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    Request request;
    WrittenCallback written;
    bool at_once = false;  // The writing thread calls `written` itself; it must not block.
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
  std::vector<Entry*> InTime(std::span<Entry* const> entries) const;
  Error TooLate(const Entry& entry) const;
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
  std::size_t writing_ PERSEUS_GUARDED_BY(mutex_) = 0;  // Requests of the commit under way, ...
  Clock::time_point writing_since_
      PERSEUS_GUARDED_BY(mutex_);  // ... of which the oldest came then.
  std::optional<Clock::time_point> failed_at_ PERSEUS_GUARDED_BY(mutex_);
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  bool written_all_ PERSEUS_GUARDED_BY(mutex_) = false;
  bool is_notifying_ PERSEUS_GUARDED_BY(mutex_) = false;

  std::thread writer_;
  std::thread notifier_;
};

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_WRITER_H_
