// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_AGENT_FAKE_GPU_H_
#define PERSEUS_TESTS_AGENT_FAKE_GPU_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"

namespace perseus::agent {

// A GPU in memory that remembers what was asked of it, and can fail and hang.
// Safe from any thread.
class FakeGpu : public device::Gpu {
 public:
  using Clock = std::chrono::steady_clock;

  explicit FakeGpu(int index) {
    info_.uuid = "GPU-fake-" + std::to_string(index);
    info_.name = "Fake";
    info_.index = index;
    info_.clocks_mhz = {600, 900, 1200, 1500};
  }

  const device::GpuInfo& info() const override { return info_; }
  Result<void> LockClock(int mhz) override { return Change(mhz, "lock " + std::to_string(mhz)); }
  Result<void> ReleaseClock() override { return Change(std::nullopt, "release"); }
  Result<int> ClockMhz() override {
    const std::lock_guard lock(mutex_);
    ++clock_reads_;
    if (late_clock_reads_ > 0) {
      --late_clock_reads_;
      return 1;
    }
    return locked_.value_or(1500);
  }
  Result<double> EnergyJoules() override {
    Guard guard(mutex_);
    Begin("energy", &guard);
    return joules_ += 10;
  }
  Result<double> PowerWatts() override { return 100; }
  Result<device::GpuConditions> Conditions() override {
    Guard guard(mutex_);
    Begin("conditions", &guard);
    return conditions_;
  }

  // The next `count` calls that change the clock fail.
  void FailNext(int count) {
    const std::lock_guard lock(mutex_);
    failures_left_ = count;
  }
  // So often the clock is not read yet.
  void SettleAfter(int reads) {
    const std::lock_guard lock(mutex_);
    late_clock_reads_ = reads;
  }
  int clock_reads() const {
    const std::lock_guard lock(mutex_);
    return clock_reads_;
  }
  // Calls hang until Resume.
  void Hang() {
    const std::lock_guard lock(mutex_);
    hangs_ = true;
  }
  void Resume() {
    const std::lock_guard lock(mutex_);
    hangs_ = false;
    changed_.notify_all();
  }
  void SetConditions(device::GpuConditions conditions) {
    const std::lock_guard lock(mutex_);
    conditions_ = std::move(conditions);
  }

  std::optional<int> locked() const {
    const std::lock_guard lock(mutex_);
    return locked_;
  }
  // In the order in which they began: "lock 900", "release", "energy", "conditions".
  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  // Only those that change the clock.
  std::vector<std::string> changes() const {
    std::vector<std::string> changes;
    for (const std::string& call : calls()) {
      if (call != "energy" && call != "conditions") changes.push_back(call);
    }
    return changes;
  }
  std::vector<Clock::time_point> call_times() const {
    const std::lock_guard lock(mutex_);
    return times_;
  }

  // Waits until so many calls have begun; false: not within 20 seconds.
  bool WaitForCalls(std::size_t count) {
    Guard guard(mutex_);
    return changed_.wait_for(guard, kPatience, [&] { return calls_.size() >= count; });
  }
  // Waits until the clock is locked at `mhz`, or, with none, given back.
  bool WaitForLocked(std::optional<int> mhz) {
    Guard guard(mutex_);
    return changed_.wait_for(guard, kPatience, [&] { return locked_ == mhz; });
  }

 private:
  using Guard = std::unique_lock<std::mutex>;
  static constexpr auto kPatience = std::chrono::seconds(20);

  void Begin(const std::string& call, Guard* guard) {
    calls_.push_back(call);
    times_.push_back(Clock::now());
    changed_.notify_all();
    changed_.wait(*guard, [this] { return !hangs_; });
  }

  Result<void> Change(std::optional<int> mhz, const std::string& call) {
    Guard guard(mutex_);
    Begin(call, &guard);
    if (failures_left_ > 0) {
      --failures_left_;
      return MakeError(ErrorCode::kIo, "the fake refuses");
    }
    locked_ = mhz;
    changed_.notify_all();
    return {};
  }

  device::GpuInfo info_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<int> locked_;
  std::vector<std::string> calls_;
  std::vector<Clock::time_point> times_;
  int failures_left_ = 0;
  int late_clock_reads_ = 0;
  int clock_reads_ = 0;
  bool hangs_ = false;
  double joules_ = 0;
  device::GpuConditions conditions_;
};

class FakeDriver : public device::Driver {
 public:
  explicit FakeDriver(int gpus) {
    for (int i = 0; i < gpus; ++i) gpus_.push_back(std::make_unique<FakeGpu>(i));
  }

  std::string_view kind() const override { return "fake"; }
  const std::vector<std::unique_ptr<device::Gpu>>& gpus() const override { return gpus_; }
  Result<bool> MaySetClocks() override { return may_set_; }

  FakeGpu& gpu(std::size_t index) { return static_cast<FakeGpu&>(*gpus_[index]); }
  void ForbidClocks() { may_set_ = false; }

 private:
  std::vector<std::unique_ptr<device::Gpu>> gpus_;
  bool may_set_ = true;
};

}  // namespace perseus::agent

#endif  // PERSEUS_TESTS_AGENT_FAKE_GPU_H_
