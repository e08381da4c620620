// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_READERS_H_
#define PERSEUS_SERVER_RUNTIME_READERS_H_

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace perseus::server {

// Threads that may wait for the store, so that no other has to. Thread-safe.
class Readers {
 public:
  using Task = std::function<void()>;

  // `on_problem` is told of tasks that threw.
  explicit Readers(std::function<void(const std::string&)> on_problem)
      : on_problem_(std::move(on_problem)) {
    for (std::thread& thread : threads_) thread = std::thread([this] { Run(); });
  }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;
  ~Readers() { Stop(); }

  // Has it done soon, in any order. Nothing happens after Stop().
  void Post(Task task) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

  // Ends what is being done; leaves the rest.
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (stopping_) return;
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      try {
        task();
      } catch (const std::exception& exception) {
        if (on_problem_) on_problem_(std::string("A bug: a reading threw: ") + exception.what());
      }
      lock.lock();
    }
  }

  const std::function<void(const std::string&)> on_problem_;
  std::mutex mutex_;  // Of all below but the threads.
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool stopping_ = false;
  // A reading of a large job does not keep the others waiting.
  std::array<std::thread, 2> threads_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_READERS_H_
