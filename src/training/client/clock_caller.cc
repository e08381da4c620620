// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/clock_caller.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "client/agent_device.h"
#include "client/ticks.h"

namespace perseus::client {
namespace {

constexpr std::int64_t kFirstRestNs = 30'000'000'000;
constexpr std::int64_t kLongestRestNs = 600'000'000'000;
constexpr std::int64_t kSettlingLimitNs = 100'000'000;
constexpr std::int64_t kLookNs = 500'000;

void SleepNs(std::int64_t nanoseconds) {
  const timespec time = {.tv_sec = 0, .tv_nsec = nanoseconds};
  nanosleep(&time, nullptr);
}

}  // namespace

Result<std::unique_ptr<device::Driver>> OpenClientDriver(const std::string& spec,
                                                         const std::string& name) {
  const std::optional<std::string> socket = AgentSocketOf(spec);
  if (!socket) return device::OpenDriver(spec);
  Result<std::unique_ptr<AgentDriver>> agent = AgentDriver::Connect(*socket, name);
  if (!agent) return tl::unexpected(agent.error());
  return std::move(*agent);
}

Result<void> CheckDeviceSpec(const std::string& spec) {
  if (spec.empty()) return {};
  if (const std::optional<std::string> socket = AgentSocketOf(spec)) {
    if (!socket->empty()) return {};
    return InvalidInput("the device 'agent:' names no socket; give agent:SOCKET");
  }
  auto known = device::CheckDriverSpec(spec);
  if (known) return {};
  known.error().message += "; or agent:SOCKET";
  return tl::unexpected(known.error());
}

Result<void> ClockCaller::Open(const std::string& spec, const std::string& name,
                               const std::string& uuid, int index) {
  Result<std::unique_ptr<device::Driver>> driver = OpenClientDriver(spec, name);
  if (!driver) return tl::unexpected(driver.error());
  const auto& gpus = (*driver)->gpus();
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const auto& gpu) {
    return uuid.empty() ? gpu->info().index == index : gpu->info().uuid == uuid;
  });
  if (found == gpus.end()) {
    return InvalidInput(uuid.empty()
                            ? fmt::format("{} has no GPU {}; it has {}", spec, index, gpus.size())
                            : fmt::format("{} has no GPU {}", spec, uuid));
  }
  driver_ = std::move(*driver);
  gpu_ = found->get();
  agent_ = dynamic_cast<AgentDriver*>(driver_.get());
  if (agent_ != nullptr) {
    max_silence_seconds_ = agent_->max_silence_seconds();
    seen_losses_ = agent_->losses();
  }
  last_said_ns_ = MonotonicNs();
  return {};
}

// When the clock really changed, where the device tells: not for every call, as
// asking costs the driver's time, too.
void ClockCaller::MeasureSettling(int mhz) {
  if (never_settled_of_all_ >= kMostNeverSettled || never_settled_[mhz] >= kNeverSettledOfClock ||
      latency_.Settlings(mhz) >= kSettlingsOfClock) {
    return;
  }
  const std::int64_t begin_ns = MonotonicNs();
  while (true) {
    const Result<int> now = gpu_->ClockMhz();
    const std::int64_t passed_ns = MonotonicNs() - begin_ns;
    if (now && *now == mhz && passed_ns <= kSettlingLimitNs) {
      latency_.AddSettling(mhz, passed_ns);
      return;
    }
    // An idle GPU may never reach it, a hot one stay below, an agent be away: no measurement.
    if (!now || passed_ns > kSettlingLimitNs) {
      ++never_settled_[mhz];
      ++never_settled_of_all_;
      return;
    }
    SleepNs(kLookNs);
  }
}

ClockCaller::Outcome ClockCaller::Call(int mhz, std::atomic<std::int64_t>* in_driver_since) {
  Outcome outcome;
  outcome.begin_ns = MonotonicNs();
  if (shadow_) {
    outcome.ok = true;
    outcome.effective_ns = outcome.begin_ns + latency_.MedianNs();
    ++calls_;
    return outcome;
  }
  in_driver_since->store(outcome.begin_ns, std::memory_order_relaxed);
  const Result<void> called = mhz == 0 ? gpu_->ReleaseClock() : gpu_->LockClock(mhz);
  in_driver_since->store(0, std::memory_order_relaxed);
  const std::int64_t end_ns = MonotonicNs();
  last_said_ns_ = end_ns;
  if (called) {  // Whatever was before, it is set now.
    clock_lost_ = false;
    if (agent_ != nullptr) seen_losses_ = agent_->losses();
  }
  ++calls_;
  call_seconds_ += static_cast<double>(end_ns - outcome.begin_ns) * 1e-9;
  outcome.effective_ns = end_ns;
  if (!called) {
    outcome.error = called.error().message;
    ++refused_;
    if (mhz == 0) return outcome;  // Asked for again and again: no reason to set none for longer.
    if (++refusals_in_a_row_ >= kRefusalsToRest || called.error().code == ErrorCode::kDenied) {
      rest_ns_ = std::clamp(2 * rest_ns_, kFirstRestNs, kLongestRestNs);
      rest_until_ns_ = end_ns + rest_ns_;
    }
    return outcome;
  }
  outcome.ok = true;
  if (refusals_in_a_row_ > 0) energy_failures_ = 0;  // An agent that came back, say.
  refusals_in_a_row_ = 0;
  rest_ns_ = 0;
  if (mhz != 0) {
    latency_.AddCall(mhz, end_ns - outcome.begin_ns);
    MeasureSettling(mhz);
    outcome.effective_ns += latency_.SettlingNs(mhz);
  }
  return outcome;
}

std::optional<double> ClockCaller::EnergyJoules() {
  if (gpu_ == nullptr || energy_failures_ >= kMaxEnergyFailures) return std::nullopt;
  Speak(MonotonicNs());
  const Result<double> joules = gpu_->EnergyJoules();
  last_said_ns_ = MonotonicNs();
  if (!joules) {
    ++energy_failures_;
    return std::nullopt;
  }
  energy_failures_ = 0;
  return *joules;
}

std::optional<int> ClockCaller::ClockMhz() {
  if (gpu_ == nullptr) return std::nullopt;
  Speak(MonotonicNs());
  const Result<int> mhz = gpu_->ClockMhz();
  last_said_ns_ = MonotonicNs();
  if (!mhz) return std::nullopt;
  return *mhz;
}

std::optional<device::GpuConditions> ClockCaller::Conditions() {
  if (gpu_ == nullptr) return std::nullopt;
  Speak(MonotonicNs());
  Result<device::GpuConditions> conditions = gpu_->Conditions();
  last_said_ns_ = MonotonicNs();
  if (!conditions) return std::nullopt;
  return std::move(*conditions);
}

void ClockCaller::KeepAlive(std::int64_t now_ns) {
  if (agent_ == nullptr || max_silence_seconds_ <= 0) return;
  const auto quiet_ns = static_cast<std::int64_t>(max_silence_seconds_ / 3 * 1e9);
  if (now_ns - last_said_ns_ < quiet_ns) return;
  Speak(now_ns);
  static_cast<void>(agent_->Renew());  // Where it fails the next clock call says why.
}

void ClockCaller::Speak(std::int64_t now_ns) {
  // Half of it: the agent's clock began to run before ours.
  if (max_silence_seconds_ > 0 &&
      static_cast<double>(now_ns - last_said_ns_) * 1e-9 > max_silence_seconds_ / 2) {
    clock_lost_ = true;
  }
  last_said_ns_ = now_ns;
}

bool ClockCaller::TakeClockLost() {
  if (agent_ == nullptr || shadow_) return false;
  const std::uint64_t losses = agent_->losses();
  const bool anew = std::exchange(seen_losses_, losses) != losses;
  return std::exchange(clock_lost_, false) || anew;
}

}  // namespace perseus::client
