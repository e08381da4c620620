// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/worker.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace perseus::server {
namespace {

// Until work that failed is tried again, here or elsewhere.
constexpr double kRetryLeaseSeconds = 5;
// For a store that is not shared: a poll finds only work that is tried again.
constexpr double kOwnPollSeconds = 1;
// For a store that is not shared: no server waits for the lease, and each renewal is a commit.
constexpr double kOwnLeaseFactor = 30;
// Nicer than the threads that answer, but not so nice that the holder of a lock starves.
constexpr int kNicer = 15;
constexpr int kNicest = 19;

std::chrono::duration<double> Seconds(double seconds) {
  return std::chrono::duration<double>(seconds);
}

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

Worker::Worker(store::Store& store, Perform perform, OnProblem on_problem, WorkerOptions options)
    : store_(store),
      perform_(std::move(perform)),
      on_problem_(std::move(on_problem)),
      options_(options) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  Start(&urgent_, ThreadsOr(options_.urgent_threads, cores, 2));
  Start(&other_, ThreadsOr(options_.other_threads, cores / 2, 1));
  renewer_ = std::thread([this] { RenewAll(); });
}

Worker::~Worker() {
  Stop();
  Wait();
}

void Worker::Start(Pool* pool, int threads) {
  for (int i = 0; i < threads; ++i) {
    pool->threads.emplace_back([this, pool] {
      if (pool->kind == store::WorkKind::kOther) LowerPriority();
      while (const auto work = Next(pool)) RunOne(work.get());
    });
  }
}

void Worker::Wake() {
  {
    const MutexLock lock(mutex_);
    urgent_.is_woken = true;
    other_.is_woken = true;
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
  for (Pool* const pool : {&urgent_, &other_}) {
    for (std::thread& thread : pool->threads) {
      if (thread.joinable()) thread.join();
    }
  }
  if (renewer_.joinable()) renewer_.join();
}

double Worker::Lasting(double seconds) const {
  return store_.is_shared() ? seconds : kOwnLeaseFactor * seconds;
}

Result<std::optional<std::string>> Worker::Claim(store::WorkKind kind) {
  const MutexUnlock open_again(mutex_);
  return store_.ClaimWork(Lasting(options_.lease_seconds), kind);
}

Result<bool> Worker::Renew(const std::string& job) {
  const MutexUnlock open_again(mutex_);
  return store_.RenewWork(job, Lasting(options_.lease_seconds));
}

std::shared_ptr<Worker::InHand> Worker::Next(Pool* pool) {
  const auto poll = Seconds(store_.is_shared() ? options_.poll_seconds : kOwnPollSeconds);
  const MutexLock turn(pool->turn);
  const MutexLock lock(mutex_);
  while (!stopping_) {
    pool->is_woken = false;
    const auto claimed = Claim(pool->kind);
    if (claimed && claimed->has_value()) {
      auto [at, is_new] = in_hand_.try_emplace(**claimed, std::make_shared<InHand>());
      if (is_new) {
        at->second->job = **claimed;
        changed_.NotifyAll();
        return at->second;
      }
      // Its lease ran out in the hand of another thread, which goes on and then begins again.
      at->second->is_claimed_again = true;
      at->second->is_lost = false;
    }
    // A store that cannot be asked is asked again, too.
    const auto until = std::chrono::steady_clock::now() + poll;
    while (!pool->is_woken && !stopping_ && changed_.WaitUntil(mutex_, until)) {
    }
  }
  return nullptr;
}

void Worker::RunOne(InHand* work) {
  while (true) {
    const bool is_settled = PerformOne(*work);
    // If the store cannot be told, the lease runs out, and the work is done again.
    if (!work->is_lost && is_settled) {
      static_cast<void>(store_.FinishWork(work->job));
    } else if (!work->is_lost) {
      static_cast<void>(store_.RenewWork(work->job, stopping_ ? 0 : kRetryLeaseSeconds));
    }
    const MutexLock lock(mutex_);
    if (std::exchange(work->is_claimed_again, false) && !stopping_) continue;
    in_hand_.erase(work->job);
    // Newer work may be of the other kind, whose threads wait for news.
    urgent_.is_woken = true;
    other_.is_woken = true;
    changed_.NotifyAll();
    return;
  }
}

bool Worker::PerformOne(const InHand& work) {
  try {
    return perform_(work.job, [&] { return !stopping_ && !work.is_lost; });
  } catch (const std::exception& exception) {
    if (on_problem_) on_problem_(std::string("A bug: a computation threw: ") + exception.what());
    return false;
  }
}

void Worker::RenewAll() {
  const MutexLock lock(mutex_);
  while (!stopping_) {
    while (!stopping_ && in_hand_.empty()) changed_.Wait(mutex_);
    const auto until = std::chrono::steady_clock::now() + Seconds(Lasting(options_.renew_seconds));
    while (!stopping_ && changed_.WaitUntil(mutex_, until)) {
    }
    std::vector<std::shared_ptr<InHand>> all;
    for (const auto& [job, work] : in_hand_) all.push_back(work);
    for (const auto& work : all) {
      if (stopping_) return;
      const auto renewed = Renew(work->job);
      // A store that is away takes no lease back; it names the lease's holder once it is back.
      if (renewed && !*renewed && in_hand_.contains(work->job)) work->is_lost = true;
    }
  }
}

}  // namespace perseus::server
