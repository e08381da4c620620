// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/worker.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace perseus::server {
namespace {

// Nicer than the threads that answer, but not so nice that the holder of a lock starves.
constexpr int kNicer = 15;
constexpr int kNicest = 19;

int ThreadsOr(int asked, int otherwise, int least) {
  return asked > 0 ? asked : std::max(otherwise, least);
}

// Of this thread alone. Where it is refused, all threads have the same share.
void LowerPriority() {
  const sched_param parameters = {};
  static_cast<void>(sched_setscheduler(0, SCHED_BATCH, &parameters));
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  const int nice = getpriority(PRIO_PROCESS, thread);
  static_cast<void>(setpriority(PRIO_PROCESS, thread, std::min(nice + kNicer, kNicest)));
}

}  // namespace

Worker::Worker(Perform perform, OnProblem on_problem, WorkerOptions options)
    : perform_(std::move(perform)), on_problem_(std::move(on_problem)), options_(options) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  Start(/*is_urgent=*/true, ThreadsOr(options_.urgent_threads, cores, 2));
  Start(/*is_urgent=*/false, ThreadsOr(options_.other_threads, cores / 2, 1));
}

Worker::~Worker() {
  Stop();
  Wait();
}

void Worker::Start(bool is_urgent, int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, is_urgent] {
      if (!is_urgent) LowerPriority();
      while (const auto job = Next(is_urgent)) RunOne(*job, is_urgent);
    });
  }
}

void Worker::Want(const std::string& job, bool is_urgent) {
  {
    const MutexLock lock(mutex_);
    auto [wanted, is_new] =
        wanted_.try_emplace(job, Wanted{.number = last_number_ + 1, .not_before = {}});
    if (is_new) ++last_number_;
    wanted->second.is_urgent = is_urgent;
    wanted->second.not_before = {};
  }
  changed_.NotifyAll();
}

void Worker::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
}

void Worker::Wait() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

std::optional<std::string> Worker::Next(bool is_urgent) {
  const MutexLock lock(mutex_);
  while (!stopping_) {
    const Clock::time_point now = Clock::now();
    Clock::time_point wake = Clock::time_point::max();
    auto oldest = wanted_.end();
    for (auto wanted = wanted_.begin(); wanted != wanted_.end(); ++wanted) {
      const Wanted& work = wanted->second;
      if (work.is_urgent != is_urgent || in_hand_.contains(wanted->first)) continue;
      if (work.not_before > now) {
        wake = std::min(wake, work.not_before);
      } else if (oldest == wanted_.end() || work.number < oldest->second.number) {
        oldest = wanted;
      }
    }
    if (oldest != wanted_.end()) {
      std::string job = oldest->first;
      wanted_.erase(oldest);
      in_hand_.insert(job);
      return job;
    }
    if (wake == Clock::time_point::max()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitUntil(mutex_, wake);
    }
  }
  return std::nullopt;
}

void Worker::RunOne(const std::string& job, bool is_urgent) {
  const bool is_settled = PerformOne(job);
  {
    const MutexLock lock(mutex_);
    in_hand_.erase(job);
    const auto again = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(options_.retry_seconds));
    // Unless more was asked for meanwhile.
    if (!is_settled) {
      const Wanted retry = {
          .is_urgent = is_urgent, .number = last_number_ + 1, .not_before = again};
      if (wanted_.try_emplace(job, retry).second) ++last_number_;
    }
  }
  changed_.NotifyAll();
}

bool Worker::PerformOne(const std::string& job) {
  try {
    return perform_(job, [this] { return !stopping_; });
  } catch (const std::exception& exception) {
    if (on_problem_) on_problem_(std::string("A bug: a computation threw: ") + exception.what());
    return false;
  }
}

}  // namespace perseus::server
