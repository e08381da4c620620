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

// The state that a client's threads share. On the hot path, the trainer's threads use only `page`.
// Members with a lock are for the background threads and for queries (stats, last error).
// Thread-safe, except the constructor.
class SharedState {
 public:
  SharedState(ClientSettings settings, HotPagePointer page);

  const ClientSettings& settings() const { return settings_; }
  HotPage& page() const { return *page_; }
  const TickSource& ticks() const { return ticks_; }
  Outbox& outbox() { return outbox_; }

  // What a problem is about.
  enum class About : std::uint8_t { kDevice, kServer, kPlan, kOrder, kJob, kOther };
  // Records a problem. The same sentence is recorded only once in a row.
  void Complain(const std::string& sentence, About about = About::kOther);
  // The problem with it is over.
  void Recovered(About about);
  // Records an exception in a background thread, which then continues. Throws nothing.
  void ComplainOf(const char* thread, const std::exception& exception) noexcept;
  // The newest problem that is not over; "": none.
  std::string last_error() const;

  // Ends the client: StopClock() ends the clock thread first, so that its last reports are still
  // sent. Then all other threads finish.
  void StopClock();
  bool clock_stopping() const { return clock_stopping_.load(std::memory_order_acquire); }
  void Stop();
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  // Waits for `seconds` or until the client ends. False: it ends.
  bool Pause(double seconds);

  // Passes a plan from the poller to the clock thread.
  void OfferPlan(std::shared_ptr<const RankPlan> plan);
  // True if there is a new plan.
  bool TakePlan(std::shared_ptr<const RankPlan>* plan);
  // Passes plans for single iterations from the trainer to the clock thread. Only the newest
  // kMostStepPlans are kept; others count as late.
  void AddStepPlan(std::shared_ptr<const RankPlan> plan);
  std::vector<std::shared_ptr<const RankPlan>> TakeStepPlans();
  // Whether there ever was such a plan. Events of computations are then needed.
  bool plans_steps() const { return plans_steps_.load(std::memory_order_relaxed); }
  // Passes device times from the trainer to the clock thread. The oldest are dropped if too many
  // wait.
  void AddStepTimes(StepTimes times);
  std::vector<StepTimes> TakeStepTimes();
  // The server has answered the poller at this time.
  void SetAnswered(std::int64_t at_ns) { answered_ns_.store(at_ns, std::memory_order_relaxed); }
  // False: the server has not answered for so long that the plan may be out of date. The caller
  // gives the time, so that a plan expires even if the poller thread hangs.
  bool plan_fresh(std::int64_t now_ns) const {
    return settings_.server.empty() ||
           now_ns - answered_ns_.load(std::memory_order_relaxed) <= kStaleNs;
  }
  // The server asks for a profile. Each request has the next number, and lists the clocks whose
  // rows the server has already.
  struct ProfileWish {
    std::uint64_t number = 0;  // 0: none yet.
    // Becomes false when a plan arrives without such a request: the profile came from elsewhere.
    bool is_wanted = false;
    std::vector<int> left_mhz;
  };
  void AskForProfile(std::vector<int> left_mhz);
  ProfileWish profile_wish() const;

  // SetDevice(): the device is open. SetDeviceFailed(): it cannot be opened for now.
  void SetDevice(const device::GpuInfo& info);
  void SetDeviceFailed(const std::string& why);
  // Waits for either call, at most for `seconds`. None: the device is not open.
  std::optional<device::GpuInfo> WaitForDevice(double seconds);

  void SetRegistered(const std::string& job_id);
  void SetRegistrationFailed(const std::string& why);
  bool registered() const;
  std::string job_id() const;  // "": not known yet.
  // For a strict open: waits until the rank is registered and the device is open (each only if the
  // options ask for it). Fails with the reason.
  Result<void> WaitUntilReady(double seconds);

  // Since when a clock call has been in the driver; 0: there is none.
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
  struct Problem {
    About about = About::kOther;
    std::string sentence;
  };
  std::vector<Problem> problems_ PERSEUS_GUARDED_BY(mutex_);  // One of a kind, newest last.
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
