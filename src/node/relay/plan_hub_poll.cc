// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <random>
#include <system_error>
#include <utility>

#include "relay/plan_answers.h"
#include "relay/plan_hub.h"

// The one long poll of a job, on a thread of its own.
namespace perseus::relay {
namespace {

// Beyond the long poll itself.
constexpr double kPollGraceSeconds = 5;
// A poll that ends sooner, without news, is not asked again at once.
constexpr double kHastySeconds = 1;
constexpr double kFirstPauseSeconds = 0.1;
constexpr double kLongestPauseSeconds = 2;

// Relays that lost the same server come back at different times.
double Spread(double seconds) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return seconds * std::uniform_real_distribution<double>(0.5, 1)(random);
}

}  // namespace

void PlanHub::StartThread(const JobPointer& job, Answers* answers) {
  if (job->thread.joinable() || job->ranks.empty()) return;
  try {
    job->thread = std::thread([this, job] { Poll(job); });
  } catch (const std::system_error& error) {
    RefuseWaiting(job.get(), UnavailableResponse({ErrorCode::kIo, error.what()}), answers);
    jobs_.erase(job->id);
  }
}

void PlanHub::ForgetTheDead(Job* job) {
  const Clock::time_point now = Clock::now();
  for (auto& [number, rank] : job->ranks) {
    std::erase_if(rank.waiters, [now](const Waiter& waiter) { return waiter.until < now; });
  }
  std::erase_if(job->ranks, [&](const auto& entry) {
    return entry.second.waiters.empty() && now - entry.second.seen > options_.live;
  });
}

void PlanHub::Poll(const JobPointer& job) {
  Pace pace;
  for (;;) {
    try {
      if (!PollOnce(job, &pace)) return;
    } catch (const std::exception&) {  // No memory.
      pace.pause_seconds = kHastySeconds;
    }
  }
}

// False: this thread has nothing more to do.
bool PlanHub::PollOnce(const JobPointer& job, Pace* pace) {
  std::vector<int> ranks;
  std::int64_t after = 0;
  {
    const auto until = Clock::now() + std::chrono::duration<double>(
                                          std::exchange(pace->pause_seconds, kHastySeconds));
    const MutexLock lock(mutex_);
    while (!stopped_ && job->wake.WaitUntil(mutex_, until)) {
    }
    if (stopped_) return false;
    ForgetTheDead(job.get());
    if (job->ranks.empty() && !job->is_fetching) {
      ended_.push_back(std::move(job->thread));
      jobs_.erase(job->id);
      return false;
    }
    for (const auto& [number, rank] : job->ranks) {
      if (rank.plans != nullptr) ranks.push_back(number);
    }
    if (ranks.empty()) return true;  // All are being fetched.
    after = job->version;
    ++polls_;
  }
  const Clock::time_point begin = Clock::now();
  Result<http::Response> result = MakeError(ErrorCode::kIo, "");
  try {
    result = job->line.Call("GET", PlansTarget(job->id, ranks, after, options_.poll_seconds), {},
                            options_.poll_seconds + kPollGraceSeconds);
  } catch (const std::exception& exception) {  // No memory, or no thread to look a name up.
    result = MakeError(ErrorCode::kIo, exception.what());
    health_->Failed(exception.what());
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  pace->pause_seconds = TakePolled(job, ranks, after, result, seconds, &pace->failures);
  return true;
}

double PlanHub::TakePolled(const JobPointer& job, const std::vector<int>& ranks, std::int64_t after,
                           const Result<http::Response>& result, double seconds, int* failures) {
  Result<std::shared_ptr<const PlanSet>> plans = MakeError(ErrorCode::kIo, "");
  if (result && result->status == 200) {
    plans = PlanSet::Parse(result->body);
    if (!plans && log_) log_(true, "bad_answer", plans.error().message);
  }
  Answers answers;
  const MutexLock lock(mutex_);
  if (stopped_) return 0;
  if (plans) {
    *failures = 0;
    Accept(job, *plans, after, &answers);
    StartFetch(job, &answers);
    return (*plans)->version() == after ? kHastySeconds : 0;
  }
  if (result && result->status == 204) {
    *failures = 0;
    return seconds < kHastySeconds ? kHastySeconds : 0;
  }
  if (result && result->status / 100 == 4 && !IsUnavailable(result->status)) {
    // Which of them is it? Each rank gets its own answer.
    for (const int number : ranks) {
      const auto found = job->ranks.find(number);
      if (found == job->ranks.end()) continue;
      found->second.wants_fetch = found->second.fetch_alone = true;
      found->second.fetch_after = -1;
    }
    StartFetch(job, &answers);
    return kHastySeconds;
  }
  if (result) {
    health_->Failed(result->status == 200
                        ? plans.error().message
                        : fmt::format("The server answers with status {}.", result->status));
  }
  if (health_->is_away()) {
    RefuseWaiting(job.get(), UnavailableResponse({ErrorCode::kIo, health_->why()}), &answers);
  }
  const double pause = kFirstPauseSeconds * static_cast<double>(1 << std::min((*failures)++, 5));
  return Spread(std::min(pause, kLongestPauseSeconds));
}

void PlanHub::JoinEnded() {
  std::vector<std::thread> ended;
  {
    const MutexLock lock(mutex_);
    ended.swap(ended_);
  }
  for (std::thread& thread : ended) thread.join();
}

void PlanHub::Stop() {
  std::vector<JobPointer> jobs;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    for (const auto& [id, job] : jobs_) {
      jobs.push_back(job);
      job->wake.NotifyAll();
    }
  }
  for (const JobPointer& job : jobs) job->line.Cancel();
  for (const JobPointer& job : jobs) {
    if (job->thread.joinable()) job->thread.join();
  }
  JoinEnded();
}

}  // namespace perseus::relay
