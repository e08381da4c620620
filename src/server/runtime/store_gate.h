// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_STORE_GATE_H_
#define PERSEUS_SERVER_RUNTIME_STORE_GATE_H_

#include <array>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "server/base/without_throwing.h"
#include "server/detect/iteration_sums.h"
#include "server/runtime/job_store.h"
#include "server/store/store.h"

namespace perseus::server {

// Threads that read from the store, so that no other thread has to wait for it. Thread-safe.
class Readers {
 public:
  using Task = std::function<void()>;

  // `on_problem` gets a sentence about each task that throws.
  explicit Readers(std::function<void(const std::string&)> on_problem)
      : on_problem_(std::move(on_problem)) {
    for (std::thread& thread : threads_) thread = std::thread([this] { Run(); });
  }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;
  ~Readers() { Stop(); }

  // Runs `task` soon; tasks may run in any order. Does nothing after Stop().
  void Post(Task task) {
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
      tasks_.push_back(std::move(task));
    }
    changed_.NotifyOne();
  }

  // Runs `work`, which returns a Result or an Outcome, and calls `done` with it. An exception of
  // `work` is an error, so `done` is called whatever happens, but after Stop(). `what`: see
  // WithoutThrowing().
  template <typename Work, typename Done>
  void Read(const char* what, Work work, Done done) {
    Post([this, what, work = std::move(work), done = std::move(done)] {
      const auto result = WithoutThrowing(what, work);
      using Code = decltype(result.error().code);
      if (!result && result.error().code == Code::kInternal) Tell(result.error().message);
      done(result);
    });
  }

  // Waits for running tasks and drops the others.
  void Stop() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.NotifyAll();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  void Run() {
    const MutexLock lock(mutex_);
    while (true) {
      while (!stopping_ && tasks_.empty()) changed_.Wait(mutex_);
      if (stopping_) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      const MutexUnlock open_again(mutex_);
      try {
        task();
      } catch (const std::exception& exception) {
        Tell(std::string("A bug: a reading threw: ") + exception.what());
      }
      task = nullptr;  // Its captures may call back: it goes without the lock.
    }
  }

  void Tell(const std::string& sentence) const {
    if (on_problem_) on_problem_(sentence);
  }

  const std::function<void(const std::string&)> on_problem_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Task> tasks_ PERSEUS_GUARDED_BY(mutex_);
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  // A reading of a large job does not keep the others waiting.
  std::array<std::thread, 2> threads_;
};

// The JobStore of a real store. Thread-safe.
class StoreGate : public JobStore {
 public:
  // `store` and `readers` must outlive this object.
  StoreGate(store::Store& store, Readers& readers) : store_(store), readers_(readers) {}

  void Add(std::vector<store::Fact> facts, std::function<bool()> is_wanted,
           Written written) override {
    store_.Add(std::move(facts), std::move(written), std::move(is_wanted));
  }
  void GiveUp(const std::string& why) override { store_.GiveUp(why); }
  void FindProfile(const std::string& layout, const store::JobRecord& record,
                   ProfileFound found) override;

 private:
  store::Store& store_;
  Readers& readers_;
};

// A job as loaded from the store. LoadJobLife() waits for the store.
struct LoadedJob {
  JobLife life;
  StoredSums sums;
};
Result<std::optional<LoadedJob>> LoadJobLife(store::Store& store, const std::string& id);
LoadedJob LifeOf(const store::StoredJob& stored);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_STORE_GATE_H_
