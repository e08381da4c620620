// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/clock_caller.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "agent/protocol.h"
#include "common/clocks.h"
#include "common/mutex.h"
#include "common/numbers.h"

namespace perseus::client {

namespace {

constexpr std::chrono::seconds kAnswer(10);
// Until the agent takes a connection, or what is sent to it.
constexpr std::chrono::seconds kTaken(2);

// One connection, which asks one thing at a time.
class Connection {
 public:
  Connection(std::string socket, std::string name)
      : socket_(std::move(socket)), name_(std::move(name)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { Close(); }

  std::uint64_t losses() const { return losses_.load(std::memory_order_relaxed); }

  Result<agent::HelloAnswer> Hello() {
    const MutexLock lock(mutex_);
    return Greet();
  }

  // Sets or gives back the clock of a GPU, with its lease.
  Result<agent::Answer> OfOwner(agent::Request request) {
    const MutexLock lock(mutex_);
    if (const Result<void> open = Reopen(); !open) return tl::unexpected(open.error());
    if (!leased_.contains(request.gpu)) {
      // A client without a lease has no clock to give back.
      if (request.operation == agent::Operation::kRelease) return agent::Answer{};
      if (lost_.contains(request.gpu)) {
        return MakeError(ErrorCode::kDenied,
                         "an operator took this GPU's clock away from this process");
      }
      agent::Request lease;
      lease.operation = agent::Operation::kLease;
      lease.gpu = request.gpu;
      if (const auto answer = Ask(lease); !answer) return tl::unexpected(answer.error());
      leased_.insert(request.gpu);
    }
    const std::string gpu = request.gpu;
    Result<agent::Answer> answer = Ask(std::move(request));
    if (!answer && not_leased_) {
      leased_.erase(gpu);
      lost_.insert(gpu);
    }
    return answer;
  }

  Result<agent::Answer> Read(agent::Request request) {
    const MutexLock lock(mutex_);
    if (const Result<void> open = Reopen(); !open) return tl::unexpected(open.error());
    return Ask(std::move(request));
  }

 private:
  Result<agent::HelloAnswer> Greet() PERSEUS_REQUIRES(mutex_) {
    Close();
    auto control =
        agent::Control::Connect(socket_, name_.substr(0, agent::kMaxNameBytes), kTaken, kAnswer);
    if (!control) return tl::unexpected(control.error());
    control_ = *std::move(control);
    return control_->hello();
  }

  Result<void> Reopen() PERSEUS_REQUIRES(mutex_) {
    if (control_) return {};
    const Result<agent::HelloAnswer> hello = Greet();
    if (!hello) return tl::unexpected(hello.error());
    return {};
  }

  Result<agent::Answer> Ask(agent::Request request) PERSEUS_REQUIRES(mutex_) {
    not_leased_ = false;
    Result<agent::Answer> answer = control_->Ask(std::move(request));
    if (!answer) {
      Close();
      return answer;
    }
    if (const auto* refused = std::get_if<agent::Refused>(&answer->body)) {
      not_leased_ = refused->code == agent::Refusal::kNotLeased;
      const bool denied = not_leased_ || refused->code == agent::Refusal::kHeld ||
                          refused->code == agent::Refusal::kDenied;
      return MakeError(denied ? ErrorCode::kDenied : ErrorCode::kIo, refused->message);
    }
    return answer;
  }

  void Close() PERSEUS_REQUIRES(mutex_) {
    if (control_) {
      // A forked child may hold a copy: without this the agent would not see the end.
      ::shutdown(control_->descriptor(), SHUT_RDWR);
      losses_.fetch_add(1, std::memory_order_relaxed);
    }
    control_.reset();
    leased_.clear();
  }

  const std::string socket_;
  const std::string name_;
  std::atomic<std::uint64_t> losses_ = 0;
  Mutex mutex_;
  std::optional<agent::Control> control_ PERSEUS_GUARDED_BY(mutex_);
  bool not_leased_ PERSEUS_GUARDED_BY(mutex_) = false;  // The last refusal: the lease is gone.
  std::set<std::string> leased_ PERSEUS_GUARDED_BY(mutex_);
  std::set<std::string> lost_ PERSEUS_GUARDED_BY(mutex_);
};

// The answer of the kind that was asked for.
template <typename Body>
Result<Body> BodyIn(const Result<agent::Answer>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  if (const auto* body = std::get_if<Body>(&answer->body)) return *body;
  const auto* refused = std::get_if<agent::Refused>(&answer->body);
  return MakeError(ErrorCode::kIo,
                   refused != nullptr ? refused->message : "the agent gave another answer");
}

Result<void> Succeeded(const Result<agent::Answer>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

agent::Request RequestAbout(agent::Operation operation, const std::string& gpu) {
  agent::Request request;
  request.operation = operation;
  request.gpu = gpu;
  return request;
}

class AgentGpu : public device::Gpu {
 public:
  AgentGpu(Connection* connection, device::GpuInfo info)
      : connection_(connection), info_(std::move(info)) {}

  const device::GpuInfo& info() const override { return info_; }

  Result<void> LockClock(int mhz) override {
    agent::Request request = About(agent::Operation::kSet);
    request.mhz = mhz;
    return Succeeded(connection_->OfOwner(std::move(request)));
  }

  Result<void> ReleaseClock() override {
    return Succeeded(connection_->OfOwner(About(agent::Operation::kRelease)));
  }

  Result<int> ClockMhz() override {
    return BodyIn<agent::ClockAnswer>(connection_->Read(About(agent::Operation::kClock)))
        .map([](const agent::ClockAnswer& clock) { return clock.mhz; });
  }

  Result<double> EnergyJoules() override {
    return BodyIn<agent::EnergyAnswer>(connection_->Read(About(agent::Operation::kEnergy)))
        .map([](const agent::EnergyAnswer& energy) { return energy.joules; });
  }

  Result<double> PowerWatts() override {
    return MakeError(ErrorCode::kIo, "the agent does not say the power of now");
  }

  Result<device::GpuConditions> Conditions() override {
    return BodyIn<agent::ConditionsAnswer>(connection_->Read(About(agent::Operation::kConditions)))
        .map([](agent::ConditionsAnswer answer) { return std::move(answer.conditions); });
  }

 private:
  agent::Request About(agent::Operation operation) const {
    return RequestAbout(operation, info_.uuid);
  }

  Connection* connection_;  // Of the driver, which outlives its GPUs.
  device::GpuInfo info_;
};

class ConnectedDriver : public AgentDriver {
 public:
  ConnectedDriver(const std::string& socket, const std::string& name) : connection_(socket, name) {}

  Result<void> Start() {
    const Result<agent::HelloAnswer> hello = connection_.Hello();
    if (!hello) return tl::unexpected(hello.error());
    observes_ = hello->observe;
    max_silence_seconds_ = hello->max_silence_seconds;
    for (const agent::GpuSummary& gpu : hello->gpus) {
      gpus_.push_back(
          std::make_unique<AgentGpu>(&connection_, device::GpuInfo{.uuid = gpu.uuid,
                                                                   .name = gpu.name,
                                                                   .index = gpu.index,
                                                                   .clocks_mhz = gpu.clocks_mhz}));
    }
    return {};
  }

  std::string_view kind() const override { return "agent"; }
  const std::vector<std::unique_ptr<device::Gpu>>& gpus() const override { return gpus_; }
  Result<bool> MaySetClocks() override { return !observes_; }
  double max_silence_seconds() const override { return max_silence_seconds_; }
  std::uint64_t losses() const override { return connection_.losses(); }
  Result<void> Renew() override {
    agent::Request request;
    request.operation = agent::Operation::kRenew;
    return Succeeded(connection_.Read(std::move(request)));
  }

 private:
  Connection connection_;
  bool observes_ = false;
  double max_silence_seconds_ = 0;
  std::vector<std::unique_ptr<device::Gpu>> gpus_;
};

}  // namespace

Result<std::unique_ptr<AgentDriver>> AgentDriver::Connect(const std::string& socket,
                                                          const std::string& name) {
  auto driver = std::make_unique<ConnectedDriver>(socket, name);
  if (const Result<void> started = driver->Start(); !started) {
    return tl::unexpected(started.error());
  }
  return driver;
}

std::optional<std::string> AgentSocketOf(const std::string& device) {
  constexpr std::string_view kAgent = "agent:";
  if (!device.starts_with(kAgent)) return std::nullopt;
  return device.substr(kAgent.size());
}

Result<AgentWord> AskAgent(const std::string& socket, const std::string& name,
                           const std::string& gpu) {
  auto control = agent::Control::Connect(socket, name.substr(0, agent::kMaxNameBytes), kTaken);
  if (!control) return tl::unexpected(control.error());
  auto answer = BodyIn<agent::ConditionsAnswer>(
      control->Ask(RequestAbout(agent::Operation::kConditions, gpu)));
  if (!answer) return tl::unexpected(answer.error());
  return AgentWord{control->hello().program_version, std::move(answer->conflicts)};
}

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

namespace {

// The GPU with this UUID, or else with this index. The UUID "cuda:N" is the N-th GPU in CUDA's own
// order (CUDA C++ Programming Guide, CUDA_DEVICE_ORDER): the fastest first, which is the driver's
// order only where all are of one model.
Result<device::Gpu*> FindGpu(const device::Driver& driver, const std::string& spec,
                             const std::string& uuid, int index) {
  constexpr std::string_view kCuda = "cuda:";
  const auto& gpus = driver.gpus();
  const bool is_cudas = uuid.starts_with(kCuda);
  if (is_cudas) {
    const std::optional<int> number =
        ParseInteger<int>(std::string_view(uuid).substr(kCuda.size()));
    if (!number) return InvalidInput(fmt::format("expected cuda:N, not '{}'", uuid));
    index = *number;
    const auto other = std::find_if(gpus.begin(), gpus.end(), [&](const auto& gpu) {
      return gpu->info().name != gpus.front()->info().name;
    });
    if (other != gpus.end()) {
      return InvalidInput(
          fmt::format("which GPU is CUDA's {} is not sure, as this node has a {} and a {}: set "
                      "CUDA_DEVICE_ORDER=PCI_BUS_ID, or pass gpu_uuid=",
                      index, gpus.front()->info().name, (*other)->info().name));
    }
  }
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const auto& gpu) {
    return uuid.empty() || is_cudas ? gpu->info().index == index : gpu->info().uuid == uuid;
  });
  if (found == gpus.end()) {
    return InvalidInput(uuid.empty() || is_cudas
                            ? fmt::format("{} has no GPU {}; it has {}. gpu_uuid= or gpu_index= "
                                          "says which one it is",
                                          spec, index, gpus.size())
                            : fmt::format("{} has no GPU {}", spec, uuid));
  }
  // What is not known is no reason to refuse.
  const Result<device::GpuConditions> conditions = (*found)->Conditions();
  if (conditions && conditions->mig) {
    return InvalidInput(
        fmt::format("GPU {} is split into MIG instances, and a clock is that of the "
                    "whole GPU, so Perseus sets none for it",
                    (*found)->info().uuid));
  }
  return found->get();
}

}  // namespace

Result<void> ClockCaller::Open(const std::string& spec, const std::string& name,
                               const std::string& uuid, int index) {
  Result<std::unique_ptr<device::Driver>> driver = OpenClientDriver(spec, name);
  if (!driver) return tl::unexpected(driver.error());
  Result<device::Gpu*> gpu = FindGpu(**driver, spec, uuid, index);
  if (!gpu) return tl::unexpected(gpu.error());
  driver_ = std::move(*driver);
  gpu_ = *gpu;
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
