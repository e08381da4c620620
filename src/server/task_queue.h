// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_TASK_QUEUE_H_
#define PERSEUS_SERVER_TASK_QUEUE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace perseus::server {

// Runs long computations one after the other, off the threads that answer.
class TaskQueue {
 public:
  // A task looks at `stopping` now and then and ends when it is true.
  using Task = std::function<void(const std::atomic<bool>& stopping)>;
  using OnProblem = std::function<void(const std::string& sentence)>;

  // `on_problem` is told, on the queue's thread, of tasks that threw; the next go on.
  explicit TaskQueue(OnProblem on_problem = {})
      : on_problem_(std::move(on_problem)), thread_([this] { Run(); }) {}
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;
  // Waits for the task that runs; drops the others.
  ~TaskQueue() {
    Stop();
    Wait();
  }

  // Urgent ones before all others, each kind in the order in which it was added.
  void Add(Task task, bool urgent = false) {
    {
      const std::lock_guard lock(mutex_);
      (urgent ? urgent_ : tasks_).push_back(std::move(task));
    }
    wake_.notify_one();
  }

  // Asks the task that runs to end; starts no other. Does not wait.
  void Stop() {
    stopping_ = true;
    const std::lock_guard lock(mutex_);
    tasks_.clear();
    urgent_.clear();
    wake_.notify_one();
  }

  // After Stop(), waits for the task that runs. One thread.
  void Wait() {
    if (thread_.joinable()) thread_.join();
  }

  std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return urgent_.size() + tasks_.size() + (running_ ? 1 : 0);
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || !tasks_.empty() || !urgent_.empty(); });
      if (stopping_) return;
      std::deque<Task>& next = urgent_.empty() ? tasks_ : urgent_;
      const Task task = std::move(next.front());
      next.pop_front();
      running_ = true;
      lock.unlock();
      RunOne(task);
      lock.lock();
      running_ = false;
    }
  }

  void RunOne(const Task& task) {
    try {
      task(stopping_);
    } catch (const std::exception& exception) {
      if (on_problem_) on_problem_(std::string("A bug: a computation threw: ") + exception.what());
    }
  }

  OnProblem on_problem_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> urgent_;
  std::deque<Task> tasks_;
  bool running_ = false;
  std::thread thread_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_TASK_QUEUE_H_
