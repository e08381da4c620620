// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_SHARED_STATE_H_
#define PERSEUS_CLIENT_SHARED_STATE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/hot_page.h"
#include "client/outbox.h"
#include "client/rank_plan.h"
#include "client/settings.h"
#include "client/step_times.h"
#include "client/ticks.h"
#include "common/mutex.h"
#include "device/device.h"
#include "perseus/client.h"

namespace perseus::client {

// What a client's threads share. The trainer's threads touch `page` on the hot
// path, and nothing else of it; what has a lock is for the background threads
// and for questions (stats, last error). Thread-safe, but for the constructor.
class SharedState {
 public:
  SharedState(ClientSettings settings, HotPagePointer page);

  const ClientSettings& settings() const { return settings_; }
  HotPage& page() const { return *page_; }
  const TickSource& ticks() const { return ticks_; }
  Outbox& outbox() { return outbox_; }

  // What went wrong, newest last. The same sentence again is no news.
  void Complain(const std::string& sentence);
  // Of a background thread that goes on after an exception. Throws nothing itself.
  void ComplainOf(const char* thread, const std::exception& exception) noexcept;
  std::string last_error() const;
  // What the server has not been told.
  std::string TakeUnreportedError();

  // The client ends. First the clock thread, so that its last words are still
  // reported; then all threads finish what they do and leave.
  void StopClock();
  bool clock_stopping() const { return clock_stopping_.load(std::memory_order_acquire); }
  void Stop();
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  // Until `seconds` passed or the client ends; false: it ends.
  bool Pause(double seconds);

  // From the poller to the clock thread.
  void OfferPlan(std::shared_ptr<const RankPlan> plan);
  // True where there is a new one.
  bool TakePlan(std::shared_ptr<const RankPlan>* plan);
  // Plans of one iteration each, from the trainer to the clock thread; where it takes none, the
  // newest kMostStepPlans stay, and the others count as late.
  void AddStepPlan(std::shared_ptr<const RankPlan> plan);
  std::vector<std::shared_ptr<const RankPlan>> TakeStepPlans();
  // Whether there ever was one: the trainer's computations are then wanted.
  bool plans_steps() const { return plans_steps_.load(std::memory_order_relaxed); }
  // From the trainer to the clock thread; the oldest go where nobody takes them.
  void AddStepTimes(StepTimes times);
  std::vector<StepTimes> TakeStepTimes();
  // The server answered the poller just now.
  void SetAnswered(std::int64_t at_ns) { answered_ns_.store(at_ns, std::memory_order_relaxed); }
  // False: no answer for so long that its plan may be stale. The asker's clock decides,
  // so that a poller that stands still cannot keep a plan alive.
  bool plan_fresh(std::int64_t now_ns) const {
    return settings_.server.empty() ||
           now_ns - answered_ns_.load(std::memory_order_relaxed) <= kStaleNs;
  }
  // The server wants a profile; it has the rows of these clocks. Each asking is a new
  // wish, with the next number.
  struct ProfileWish {
    std::uint64_t number = 0;  // 0: none yet.
    // No longer where a plan came that needs none: the profile came from elsewhere.
    bool is_wanted = false;
    std::vector<int> left_mhz;
  };
  void AskForProfile(std::vector<int> left_mhz);
  ProfileWish profile_wish() const;

  // The device, once it is open. `failed`: it cannot be had for now.
  void SetDevice(const device::GpuInfo& info);
  void SetDeviceFailed(const std::string& why);
  // Waits for either, or `seconds`; none: not open.
  std::optional<device::GpuInfo> WaitForDevice(double seconds);

  void SetRegistered(const std::string& job_id);
  void SetRegistrationFailed(const std::string& why);
  bool registered() const;
  std::string job_id() const;  // "": not known yet.
  // For a strict open: until registered and with a device (each where one was
  // asked for), or why not.
  Result<void> WaitUntilReady(double seconds);

  // A clock call is in the driver since then; 0: none.
  std::atomic<std::int64_t>& call_begin_ns() { return call_begin_ns_; }

  void SetStats(const perseus_client_stats& stats);
  perseus_client_stats stats() const;
  void CountServerError();

 private:
  static constexpr std::size_t kMaxStepTimes = 16;
  static constexpr std::int64_t kStaleNs = 60 * kSecondNs;

  enum class Progress : std::uint8_t { kPending, kDone, kFailed };

  // Of device and server: each is there, or cannot be had.
  bool IsReadyOrFailed() const PERSEUS_REQUIRES(mutex_);

  const ClientSettings settings_;
  const HotPagePointer page_;
  const TickSource ticks_;
  Outbox outbox_;
  std::atomic<std::int64_t> answered_ns_;
  std::atomic<std::int64_t> call_begin_ns_ = 0;
  std::atomic<bool> clock_stopping_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> plans_steps_ = false;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::string last_error_ PERSEUS_GUARDED_BY(mutex_);
  std::string unreported_error_ PERSEUS_GUARDED_BY(mutex_);
  std::shared_ptr<const RankPlan> plan_ PERSEUS_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const RankPlan>> step_plans_ PERSEUS_GUARDED_BY(mutex_);
  std::deque<StepTimes> step_times_ PERSEUS_GUARDED_BY(mutex_);
  ProfileWish profile_wish_ PERSEUS_GUARDED_BY(mutex_);
  std::string device_failure_ PERSEUS_GUARDED_BY(mutex_);
  device::GpuInfo gpu_ PERSEUS_GUARDED_BY(mutex_);
  std::string registration_failure_ PERSEUS_GUARDED_BY(mutex_);
  std::string job_id_ PERSEUS_GUARDED_BY(mutex_);
  std::uint64_t server_errors_ PERSEUS_GUARDED_BY(mutex_) = 0;
  std::uint64_t step_plans_dropped_ PERSEUS_GUARDED_BY(mutex_) = 0;
  perseus_client_stats stats_ PERSEUS_GUARDED_BY(mutex_) = {};
  bool has_new_plan_ PERSEUS_GUARDED_BY(mutex_) = false;
  Progress device_ PERSEUS_GUARDED_BY(mutex_) = Progress::kPending;
  Progress registration_ PERSEUS_GUARDED_BY(mutex_) = Progress::kPending;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_SHARED_STATE_H_
