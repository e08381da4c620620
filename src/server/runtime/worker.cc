// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/worker.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

namespace perseus::server {
namespace {

// Until work that failed is tried again, here or elsewhere.
constexpr double kRetryLeaseSeconds = 5;
// Where nobody else can ask for work: for what is tried again.
constexpr double kOwnPollSeconds = 1;

std::chrono::duration<double> Seconds(double seconds) {
  return std::chrono::duration<double>(seconds);
}

}  // namespace

Worker::Worker(store::Store& store, Perform perform, OnProblem on_problem, WorkerOptions options)
    : store_(store),
      perform_(std::move(perform)),
      on_problem_(std::move(on_problem)),
      options_(options) {
  worker_ = std::thread([this] { Run(); });
  // Nobody else can take what is leased from a store that is not shared.
  if (store_.is_shared()) renewer_ = std::thread([this] { Renew(); });
}

Worker::~Worker() {
  Stop();
  Wait();
}

void Worker::Wake() {
  {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
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
  if (worker_.joinable()) worker_.join();
  if (renewer_.joinable()) renewer_.join();
}

void Worker::Run() {
  const double poll_seconds = store_.is_shared() ? options_.poll_seconds : kOwnPollSeconds;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    is_woken_ = false;
    lock.unlock();
    const auto claimed = store_.ClaimWork(options_.lease_seconds);
    const bool has_work = claimed && claimed->has_value();
    if (has_work) RunOne(**claimed);
    lock.lock();
    if (has_work) continue;
    // A store that cannot be asked is asked again, too.
    changed_.wait_for(lock, Seconds(poll_seconds), [this] { return is_woken_ || stopping_; });
  }
}

void Worker::RunOne(const std::string& job) {
  is_lost_ = false;
  {
    const std::lock_guard lock(mutex_);
    job_ = job;
  }
  changed_.notify_all();
  const bool is_settled = PerformOne(job);
  {
    const std::lock_guard lock(mutex_);
    job_.clear();
  }
  if (is_lost_) return;
  // Where the store cannot be told, the lease runs out, and the work is done again.
  if (is_settled) {
    static_cast<void>(store_.FinishWork(job));
  } else {
    static_cast<void>(store_.RenewWork(job, stopping_ ? 0 : kRetryLeaseSeconds));
  }
}

bool Worker::PerformOne(const std::string& job) {
  try {
    return perform_(job, [this] { return !stopping_ && !is_lost_; });
  } catch (const std::exception& exception) {
    if (on_problem_) on_problem_(std::string("A bug: a computation threw: ") + exception.what());
    return true;
  }
}

void Worker::Renew() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait(lock, [this] { return stopping_ || !job_.empty(); });
    changed_.wait_for(lock, Seconds(options_.renew_seconds), [this] { return stopping_.load(); });
    if (stopping_ || job_.empty()) continue;
    const std::string job = job_;
    lock.unlock();
    const auto renewed = store_.RenewWork(job, options_.lease_seconds);
    lock.lock();
    // A store that is away takes the lease from nobody; it tells who has it once it is back.
    if (renewed && !*renewed && job_ == job) is_lost_ = true;
  }
}

}  // namespace perseus::server
