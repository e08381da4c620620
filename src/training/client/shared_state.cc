// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/shared_state.h"

#include <chrono>
#include <iterator>
#include <utility>

namespace perseus::client {
namespace {

auto After(double seconds) {
  return std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
}

}  // namespace

SharedState::SharedState(ClientSettings settings, HotPagePointer page)
    : settings_(std::move(settings)),
      page_(std::move(page)),
      answered_ns_(MonotonicNs()),
      job_id_(settings_.job_id) {
  stats_.plan_version = -1;
}

void SharedState::Complain(const std::string& sentence, About about) {
  const MutexLock lock(mutex_);
  std::erase_if(problems_, [&](const Problem& problem) { return problem.about == about; });
  problems_.push_back({about, sentence});
  page_->problems.fetch_add(1, std::memory_order_relaxed);
}

void SharedState::Recovered(About about) {
  const MutexLock lock(mutex_);
  const auto is_over = [&](const Problem& problem) { return problem.about == about; };
  if (std::erase_if(problems_, is_over) > 0) {
    page_->problems.fetch_add(1, std::memory_order_relaxed);
  }
}

void SharedState::ComplainOf(const char* thread, const std::exception& exception) noexcept {
  try {
    Complain(std::string(thread) + " goes on after: " + exception.what());
  } catch (const std::exception&) {
    // No memory even for that.
  }
}

std::string SharedState::last_error() const {
  const MutexLock lock(mutex_);
  return problems_.empty() ? std::string() : problems_.back().sentence;
}

void SharedState::StopClock() {
  clock_stopping_.store(true, std::memory_order_release);
  page_->Wake();
}

void SharedState::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_.store(true, std::memory_order_release);
  }
  changed_.NotifyAll();
  outbox_.Wake();
}

bool SharedState::Pause(double seconds) {
  const auto until = After(seconds);
  const MutexLock lock(mutex_);
  while (!stopping() && changed_.WaitUntil(mutex_, until)) {
  }
  return !stopping();
}

void SharedState::OfferPlan(std::shared_ptr<const RankPlan> plan) {
  {
    const MutexLock lock(mutex_);
    if (plan && !plan->rows.empty() && !plan->profile_wanted) profile_wish_.is_wanted = false;
    plan_ = std::move(plan);
    has_new_plan_ = true;
  }
  page_->Wake();
}

bool SharedState::TakePlan(std::shared_ptr<const RankPlan>* plan) {
  const MutexLock lock(mutex_);
  if (!std::exchange(has_new_plan_, false)) return false;
  *plan = plan_;
  return true;
}

void SharedState::AddStepPlan(std::shared_ptr<const RankPlan> plan) {
  {
    const MutexLock lock(mutex_);
    step_plans_.push_back(std::move(plan));
    if (step_plans_.size() > kMostStepPlans) {
      step_plans_.erase(step_plans_.begin());
      ++step_plans_dropped_;
    }
  }
  plans_steps_.store(true, std::memory_order_relaxed);
  page_->listens.store(1, std::memory_order_relaxed);
  page_->Wake();
}

std::vector<std::shared_ptr<const RankPlan>> SharedState::TakeStepPlans() {
  const MutexLock lock(mutex_);
  return std::exchange(step_plans_, {});
}

void SharedState::AskForProfile(std::vector<int> left_mhz) {
  {
    const MutexLock lock(mutex_);
    ++profile_wish_.number;
    profile_wish_.is_wanted = true;
    profile_wish_.left_mhz = std::move(left_mhz);
  }
  page_->Wake();
}

SharedState::ProfileWish SharedState::profile_wish() const {
  const MutexLock lock(mutex_);
  return profile_wish_;
}

void SharedState::AddStepTimes(StepTimes times) {
  const MutexLock lock(mutex_);
  step_times_.push_back(std::move(times));
  if (step_times_.size() > kMaxStepTimes) step_times_.pop_front();
}

std::vector<StepTimes> SharedState::TakeStepTimes() {
  const MutexLock lock(mutex_);
  std::vector<StepTimes> times(std::make_move_iterator(step_times_.begin()),
                               std::make_move_iterator(step_times_.end()));
  step_times_.clear();
  return times;
}

void SharedState::SetDevice(const device::GpuInfo& info) {
  {
    const MutexLock lock(mutex_);
    device_ = Progress::kDone;
    gpu_ = info;
  }
  changed_.NotifyAll();
}

void SharedState::SetDeviceFailed(const std::string& why) {
  {
    const MutexLock lock(mutex_);
    device_ = Progress::kFailed;
    device_failure_ = why;
  }
  changed_.NotifyAll();
}

std::optional<device::GpuInfo> SharedState::WaitForDevice(double seconds) {
  const auto until = After(seconds);
  const MutexLock lock(mutex_);
  while (!stopping() && device_ == Progress::kPending && changed_.WaitUntil(mutex_, until)) {
  }
  if (device_ != Progress::kDone) return std::nullopt;
  return gpu_;
}

void SharedState::SetRegistered(const std::string& job_id) {
  {
    const MutexLock lock(mutex_);
    registration_ = Progress::kDone;
    job_id_ = job_id;
    page_->problems.fetch_add(1, std::memory_order_relaxed);
  }
  changed_.NotifyAll();
}

void SharedState::SetRegistrationFailed(const std::string& why) {
  {
    const MutexLock lock(mutex_);
    registration_ = Progress::kFailed;
    registration_failure_ = why;
  }
  changed_.NotifyAll();
}

bool SharedState::registered() const {
  const MutexLock lock(mutex_);
  return registration_ == Progress::kDone;
}

std::string SharedState::job_id() const {
  const MutexLock lock(mutex_);
  return job_id_;
}

bool SharedState::IsReadyOrFailed() const {
  if (device_ == Progress::kFailed || registration_ == Progress::kFailed) return true;
  return (settings_.device.empty() || device_ == Progress::kDone) &&
         (settings_.server.empty() || registration_ == Progress::kDone);
}

Result<void> SharedState::WaitUntilReady(double seconds) {
  const auto until = After(seconds);
  const MutexLock lock(mutex_);
  while (!IsReadyOrFailed() && changed_.WaitUntil(mutex_, until)) {
  }
  if (device_ == Progress::kFailed) return MakeError(ErrorCode::kIo, device_failure_);
  if (registration_ == Progress::kFailed) return MakeError(ErrorCode::kIo, registration_failure_);
  if (!IsReadyOrFailed()) {
    return MakeError(ErrorCode::kIo, problems_.empty()
                                         ? "the server and the device did not answer in time"
                                         : problems_.back().sentence);
  }
  return {};
}

void SharedState::SetStats(const perseus_client_stats& stats) {
  const MutexLock lock(mutex_);
  stats_ = stats;
}

perseus_client_stats SharedState::stats() const {
  const std::uint64_t dropped = outbox_.dropped();
  const MutexLock lock(mutex_);
  perseus_client_stats stats = stats_;
  stats.server_errors = server_errors_;
  stats.reports_dropped = dropped;
  stats.step_plans_late += step_plans_dropped_;
  if (stats.state == PERSEUS_STATE_CONNECTING) {
    // Without a server, plans come from the trainer.
    if (registration_ == Progress::kDone || settings_.server.empty()) {
      stats.state = PERSEUS_STATE_WAITING;
    } else if (registration_ == Progress::kFailed) {
      stats.state = PERSEUS_STATE_RELEASED;
    }
  }
  return stats;
}

void SharedState::CountServerError() {
  const MutexLock lock(mutex_);
  ++server_errors_;
}

}  // namespace perseus::client
