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
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace perseus::server {
namespace {

// Until work that failed is tried again, here or elsewhere.
constexpr double kRetryLeaseSeconds = 5;
// Where nobody else can ask for work: for what is tried again.
constexpr double kOwnPollSeconds = 1;
// Nobody waits for the lease of a store that is not shared, and each renewal is a commit.
constexpr double kOwnLeaseFactor = 30;
// So much nicer than those that answer; not so much that who holds a lock is kept from its end.
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
  renewer_ = std::thread([this] { Renew(); });
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
    const std::lock_guard lock(mutex_);
    urgent_.is_woken = true;
    other_.is_woken = true;
  }
  changed_.notify_all();
}

void Worker::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
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

std::shared_ptr<Worker::InHand> Worker::Next(Pool* pool) {
  const double poll_seconds = store_.is_shared() ? options_.poll_seconds : kOwnPollSeconds;
  const std::lock_guard turn(pool->turn);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    pool->is_woken = false;
    lock.unlock();
    const auto claimed = store_.ClaimWork(Lasting(options_.lease_seconds), pool->kind);
    lock.lock();
    if (claimed && claimed->has_value()) {
      auto [at, is_new] = in_hand_.try_emplace(**claimed, std::make_shared<InHand>());
      if (is_new) {
        at->second->job = **claimed;
        changed_.notify_all();
        return at->second;
      }
      // Its lease ran out in the hand of another thread, which goes on and then begins again.
      at->second->is_claimed_again = true;
      at->second->is_lost = false;
    }
    // A store that cannot be asked is asked again, too.
    changed_.wait_for(lock, Seconds(poll_seconds), [&] { return pool->is_woken || stopping_; });
  }
  return nullptr;
}

void Worker::RunOne(InHand* work) {
  while (true) {
    const bool is_settled = PerformOne(*work);
    // Where the store cannot be told, the lease runs out, and the work is done again.
    if (!work->is_lost && is_settled) {
      static_cast<void>(store_.FinishWork(work->job));
    } else if (!work->is_lost) {
      static_cast<void>(store_.RenewWork(work->job, stopping_ ? 0 : kRetryLeaseSeconds));
    }
    const std::lock_guard lock(mutex_);
    if (std::exchange(work->is_claimed_again, false) && !stopping_) continue;
    in_hand_.erase(work->job);
    // What was wanted meanwhile may be of the other kind, whose threads wait for news.
    urgent_.is_woken = true;
    other_.is_woken = true;
    changed_.notify_all();
    return;
  }
}

bool Worker::PerformOne(const InHand& work) {
  try {
    return perform_(work.job, [&] { return !stopping_ && !work.is_lost; });
  } catch (const std::exception& exception) {
    if (on_problem_) on_problem_(std::string("A bug: a computation threw: ") + exception.what());
    return true;
  }
}

void Worker::Renew() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait(lock, [this] { return stopping_ || !in_hand_.empty(); });
    changed_.wait_for(lock, Seconds(Lasting(options_.renew_seconds)),
                      [this] { return stopping_.load(); });
    std::vector<std::shared_ptr<InHand>> all;
    for (const auto& [job, work] : in_hand_) all.push_back(work);
    for (const auto& work : all) {
      if (stopping_) return;
      lock.unlock();
      const auto renewed = store_.RenewWork(work->job, Lasting(options_.lease_seconds));
      lock.lock();
      // A store that is away takes the lease from nobody; it tells who has it once it is back.
      if (renewed && !*renewed && in_hand_.contains(work->job)) work->is_lost = true;
    }
  }
}

}  // namespace perseus::server
