// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "store/store.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/backend.h"
#include "store/schema.h"
#include "store/tables.h"

namespace perseus::store {
namespace {

// What one commit takes at most: bounds how long the first of them waits.
constexpr std::size_t kMostRequests = 2048;

}  // namespace

// Two threads: one writes, the other calls back, so that a callback may wait for
// whatever it likes and the next commit goes on meanwhile.
class Store::Impl {
 public:
  struct WriteRequest {
    std::vector<Fact> facts;
    WrittenCallback written;
    bool at_once = false;  // Called by the writer itself; must not block.
  };

  struct Acknowledgement {
    WrittenCallback written;
    Result<void> result;
  };

  Impl(Database database, std::function<void(const std::string&)> on_problem)
      : database_(std::move(database)), on_problem_(std::move(on_problem)) {
    writer_ = std::thread([this] { WriteAll(); });
    notifier_ = std::thread([this] { NotifyAll(); });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_writer_.notify_all();
    writer_.join();
    wake_notifier_.notify_all();
    notifier_.join();
  }

  void Add(WriteRequest request) {
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(std::move(request));
    }
    wake_writer_.notify_one();
  }

  Result<std::vector<StoredJob>> Load(const std::string& id) {
    const std::lock_guard lock(session_mutex_);
    try {
      return ReadJobs(*database_.session, database_.name, id);
    } catch (const std::exception& exception) {
      return tl::unexpected(DatabaseError(database_.name, exception));
    }
  }

  StoreCounters counters() const {
    const std::lock_guard lock(mutex_);
    StoreCounters counters = counters_;
    counters.is_failing =
        failed_at_ && Clock::now() - *failed_at_ < std::chrono::duration<double>(kFailingSeconds);
    return counters;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void WriteAll() {
    std::unique_lock lock(mutex_);
    while (true) {
      // Callbacks may write, so that there is an end only after the last of them.
      wake_writer_.wait(lock, [this] {
        return !requests_.empty() || (stopping_ && acknowledgements_.empty() && !is_notifying_);
      });
      if (requests_.empty()) {
        written_all_ = true;
        return;
      }
      const auto count = static_cast<std::ptrdiff_t>(std::min(requests_.size(), kMostRequests));
      std::vector<WriteRequest> batch(std::make_move_iterator(requests_.begin()),
                                      std::make_move_iterator(requests_.begin() + count));
      requests_.erase(requests_.begin(), requests_.begin() + count);
      lock.unlock();
      CommitBatch(&batch);
      lock.lock();
    }
  }

  // All together; where that fails, each by itself, so that one request that
  // the tables refuse takes no other with it.
  void CommitBatch(std::vector<WriteRequest>* batch) {
    const Result<void> all = Commit(*batch);
    if (all || batch->size() == 1) {
      for (WriteRequest& request : *batch) Acknowledge(&request, all);
      return;
    }
    for (WriteRequest& request : *batch) Acknowledge(&request, Commit({&request, 1}));
  }

  Result<void> Commit(std::span<const WriteRequest> batch) {
    const std::lock_guard lock(session_mutex_);
    soci::session& sql = *database_.session;
    try {
      sql << "BEGIN IMMEDIATE";
      std::size_t facts = 0;
      for (const WriteRequest& request : batch) {
        for (const Fact& fact : request.facts) WriteFact(sql, fact);
        facts += request.facts.size();
      }
      sql << "COMMIT";
      const std::lock_guard counting(mutex_);
      counters_.facts += facts;
      ++counters_.commits;
      counters_.last_error.clear();
      failed_at_.reset();
      return {};
    } catch (const std::exception& exception) {
      const Error error = DatabaseError(database_.name, exception);
      RollBack();
      const std::lock_guard counting(mutex_);
      failed_at_ = IsRefusedFact(exception) ? std::nullopt : std::optional(Clock::now());
      return tl::unexpected(error);
    }
  }

  void RollBack() {
    try {
      *database_.session << "ROLLBACK";
    } catch (const std::exception&) {
      return;  // The database did so by itself, as it does when the disk is full.
    }
  }

  void Acknowledge(WriteRequest* request, const Result<void>& result) {
    if (!result) {
      const std::lock_guard lock(mutex_);
      ++counters_.failures;
      counters_.last_error = result.error().message;
    }
    if (request->at_once) {
      request->written(result);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      acknowledgements_.push_back({std::move(request->written), result});
    }
    wake_notifier_.notify_one();
  }

  // What was written is durable whatever the callback does; the next ones are called.
  void Notify(const Acknowledgement& next) const {
    try {
      next.written(next.result);
    } catch (const std::exception& exception) {
      if (on_problem_) {
        on_problem_(std::string("A bug: what follows a commit threw: ") + exception.what());
      }
    }
  }

  void NotifyAll() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_notifier_.wait(lock, [this] { return written_all_ || !acknowledgements_.empty(); });
      if (acknowledgements_.empty()) return;
      Acknowledgement next = std::move(acknowledgements_.front());
      acknowledgements_.pop_front();
      is_notifying_ = true;
      lock.unlock();
      Notify(next);
      next = {};  // What the callback holds goes now, not with the next one.
      lock.lock();
      is_notifying_ = false;
      if (stopping_) wake_writer_.notify_all();
    }
  }

  Database database_;
  const std::function<void(const std::string&)> on_problem_;
  std::mutex session_mutex_;  // Of database_; taken before mutex_ where both are.

  mutable std::mutex mutex_;  // Of all below.
  std::condition_variable wake_writer_;
  std::condition_variable wake_notifier_;
  std::deque<WriteRequest> requests_;
  std::deque<Acknowledgement> acknowledgements_;
  StoreCounters counters_;
  std::optional<Clock::time_point> failed_at_;
  bool stopping_ = false;
  bool written_all_ = false;
  bool is_notifying_ = false;

  std::thread writer_;
  std::thread notifier_;
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::Open(
    const std::string& spec, std::function<void(const std::string& sentence)> on_problem) {
  Result<Database> database = OpenDatabase(spec);
  if (!database) return tl::unexpected(database.error());
  try {
    if (auto migrated = Migrate(*database->session, database->name); !migrated) {
      return tl::unexpected(migrated.error());
    }
  } catch (const std::exception& exception) {
    return tl::unexpected(DatabaseError(database->name, exception));
  }
  return std::unique_ptr<Store>(
      new Store(std::make_unique<Impl>(*std::move(database), std::move(on_problem))));
}

Result<void> Store::Write(std::vector<Fact> facts) {
  std::promise<Result<void>> promise;
  std::future<Result<void>> future = promise.get_future();
  impl_->Add({.facts = std::move(facts),
              .written = [&promise](const Result<void>& result) { promise.set_value(result); },
              .at_once = true});
  return future.get();
}

void Store::Add(std::vector<Fact> facts, WrittenCallback written) {
  impl_->Add({.facts = std::move(facts), .written = std::move(written)});
}

Result<std::vector<StoredJob>> Store::LoadJobs() { return impl_->Load(""); }

Result<std::vector<StoredJob>> Store::LoadJob(const std::string& id) { return impl_->Load(id); }

StoreCounters Store::counters() const { return impl_->counters(); }

}  // namespace perseus::store
