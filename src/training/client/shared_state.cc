// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/shared_state.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <ctime>
#include <iterator>
#include <string>
#include <utility>

#include "client/hot_page.h"
#include "common/file_descriptor.h"

namespace perseus::client {

void Tally::Handle(const Event& event, std::uint64_t lost) {
  switch (event.kind) {
    case EventKind::kStepBegin:
      // A trainer that was told that nobody listens may say nothing.
      is_counting_ = event.stage != kUnheard;
      lost_ = lost;
      now_.clear();
      break;
    case EventKind::kBegin:
      if (is_counting_) ++now_[{event.type, event.stage}];
      break;
    case EventKind::kStepEnd:
      if (!is_counting_ || lost != lost_) break;
      is_counting_ = false;
      if (last_ == now_) counts_ = now_;
      last_ = std::move(now_);
      break;
    case EventKind::kStepAbandon:
      is_counting_ = false;
      break;
    case EventKind::kEnd:
    case EventKind::kBusy:
    case EventKind::kWork:
      break;
  }
}

namespace {

void Append(ProfileReport* report, ProfileReport more) {
  // A newer row of the same kind and clock is the better one.
  std::erase_if(report->rows, [&](const measure::Estimate& old) {
    return std::any_of(more.rows.begin(), more.rows.end(), [&](const measure::Estimate& row) {
      return row.kind == old.kind && row.mhz == old.mhz;
    });
  });
  report->rows.insert(report->rows.end(), std::make_move_iterator(more.rows.begin()),
                      std::make_move_iterator(more.rows.end()));
  report->notes.insert(report->notes.end(), std::make_move_iterator(more.notes.begin()),
                       std::make_move_iterator(more.notes.end()));
  if (more.blocking) report->blocking = more.blocking;
  if (!more.waiting.empty()) report->waiting = std::move(more.waiting);
  if (more.counter_period_seconds) report->counter_period_seconds = more.counter_period_seconds;
  report->cost = more.cost;
  report->done = report->done || more.done;
}

}  // namespace

void Outbox::Trim() {
  while (iterations_.size() > kMaxIterations) {
    iterations_.pop_front();
    ++dropped_;
  }
  while (notices_.size() > kMaxNotices) notices_.pop_front();
}

void Outbox::Add(const IterationReport& report) {
  const MutexLock lock(mutex_);
  iterations_.push_back(report);
  Trim();
}

void Outbox::Add(const StragglerNotice& notice) {
  {
    const MutexLock lock(mutex_);
    notices_.push_back(notice);
    Trim();
  }
  changed_.NotifyAll();
}

void Outbox::Add(ProfileReport report) {
  {
    const MutexLock lock(mutex_);
    if (!profile_) profile_.emplace();
    Append(&*profile_, std::move(report));
  }
  changed_.NotifyAll();
}

Outbox::Contents Outbox::Wait(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const MutexLock lock(mutex_);
  while (!awake_ && notices_.empty() && !profile_ && changed_.WaitUntil(mutex_, until)) {
  }
  Contents contents;
  contents.iterations.assign(iterations_.begin(), iterations_.end());
  contents.notices.assign(notices_.begin(), notices_.end());
  contents.profile = std::exchange(profile_, std::nullopt);
  iterations_.clear();
  notices_.clear();
  return contents;
}

void Outbox::PutBack(Contents contents) {
  // The server needs these of all ranks of the iteration; what is late is of no use.
  for (IterationReport& report : contents.iterations) report.timeline.reset();
  const MutexLock lock(mutex_);
  iterations_.insert(iterations_.begin(), contents.iterations.begin(), contents.iterations.end());
  notices_.insert(notices_.begin(), contents.notices.begin(), contents.notices.end());
  if (contents.profile) {
    ProfileReport newer = profile_ ? std::move(*profile_) : ProfileReport{};
    profile_ = std::move(contents.profile);
    Append(&*profile_, std::move(newer));
  }
  Trim();
}

void Outbox::Wake() {
  {
    const MutexLock lock(mutex_);
    awake_ = true;
  }
  changed_.NotifyAll();
}

std::uint64_t Outbox::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

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

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));  // A futex.

void HotPage::Wake() {
  wake.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &wake, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void HotPage::PushAndWake(const Event& event) {
  ring.Push(event);
  Wake();
}

void HotPage::Sleep(std::uint32_t seen, std::int64_t nanoseconds, bool lightly) {
  if (nanoseconds <= 0) return;
  const timespec time = {.tv_sec = nanoseconds / 1'000'000'000,
                         .tv_nsec = nanoseconds % 1'000'000'000};
  sleeping.store(lightly ? 0 : 1, std::memory_order_seq_cst);
  // Returns at once where `wake` is no longer `seen`.
  syscall(SYS_futex, &wake, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
  sleeping.store(0, std::memory_order_seq_cst);
}

void UnmapHotPage::operator()(HotPage* page) const { munmap(page, sizeof(HotPage)); }

Result<HotPagePointer> MapHotPage() {
  void* memory = mmap(nullptr, sizeof(HotPage), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    return MakeError(ErrorCode::kIo, "no memory for the client: " + SystemMessage(errno));
  }
  HotPagePointer page(static_cast<HotPage*>(memory));
  if (madvise(memory, sizeof(HotPage), MADV_WIPEONFORK) != 0) {
    return MakeError(ErrorCode::kIo,
                     "this kernel cannot keep a client from its children (MADV_WIPEONFORK): " +
                         SystemMessage(errno) + "; Linux 4.14 or later is needed");
  }
  return page;
}

}  // namespace perseus::client
