// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/agent_device.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "agent/protocol.h"
#include "client/ticks.h"
#include "common/file_descriptor.h"
#include "common/mutex.h"
#include "common/unix_socket.h"

namespace perseus::client {
namespace {

constexpr std::int64_t kAnswerNs = 10'000'000'000;
// Until the agent takes a connection, or what is sent to it.
constexpr timeval kTakenWithin = {.tv_sec = 2, .tv_usec = 0};

Error AgentError(const std::string& socket, const std::string& what) {
  return {ErrorCode::kIo, fmt::format("the agent at {}: {}", socket, what)};
}

Result<FileDescriptor> ConnectTo(const std::string& socket) {
  auto fd =
      ConnectUnixSocket(socket, std::chrono::seconds(kTakenWithin.tv_sec), SocketMode::kBlocking);
  int error = fd ? 0 : fd.error();
  if (fd &&
      ::setsockopt(fd->get(), SOL_SOCKET, SO_SNDTIMEO, &kTakenWithin, sizeof(kTakenWithin)) != 0) {
    error = errno;
  }
  if (error == 0) return *std::move(fd);
  if (error == EINVAL || error == ENAMETOOLONG) {
    return InvalidInput(
        fmt::format("'{}' is no path of a socket: {}", socket, SystemMessage(error)));
  }
  return tl::unexpected(AgentError(socket, error == EAGAIN
                                               ? "it takes no connection; does it hang?"
                                               : SystemMessage(error) + "; is it running?"));
}

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
      // Who never set a clock, or lost it with the connection, has none to give back.
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
    Result<FileDescriptor> fd = ConnectTo(socket_);
    if (!fd) return tl::unexpected(fd.error());
    fd_ = std::move(*fd);
    agent::Request request;
    request.operation = agent::Operation::kHello;
    request.client = name_.substr(0, agent::kMaxNameBytes);
    const Result<agent::Answer> answer = Ask(std::move(request));
    if (!answer) return tl::unexpected(answer.error());
    if (const auto* hello = std::get_if<agent::HelloAnswer>(&answer->body)) return *hello;
    return Fail("it did not say what it has");
  }

  Result<void> Reopen() PERSEUS_REQUIRES(mutex_) {
    if (fd_.valid()) return {};
    const Result<agent::HelloAnswer> hello = Greet();
    if (!hello) return tl::unexpected(hello.error());
    return {};
  }

  Result<agent::Answer> Ask(agent::Request request) PERSEUS_REQUIRES(mutex_) {
    not_leased_ = false;
    request.id = ++last_id_;
    const std::string line = agent::FormatRequest(request);
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t wrote = ::send(fd_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return Fail(SystemMessage(errno));
      sent += static_cast<std::size_t>(wrote);
    }
    const std::int64_t deadline_ns = MonotonicNs() + kAnswerNs;
    while (true) {
      const Result<std::string> text = ReadLine(deadline_ns);
      if (!text) return tl::unexpected(text.error());
      Result<agent::Answer> answer = agent::ParseAnswer(*text);
      if (!answer) return Fail(answer.error().message);
      if (answer->id && *answer->id != request.id) continue;  // Of a question we gave up.
      if (const auto* refused = std::get_if<agent::Refused>(&answer->body)) {
        not_leased_ = refused->code == agent::Refusal::kNotLeased;
        const bool denied = not_leased_ || refused->code == agent::Refusal::kHeld ||
                            refused->code == agent::Refusal::kDenied;
        return MakeError(denied ? ErrorCode::kDenied : ErrorCode::kIo, refused->message);
      }
      return answer;
    }
  }

  Result<std::string> ReadLine(std::int64_t deadline_ns) PERSEUS_REQUIRES(mutex_) {
    while (true) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end + 1);
        buffer_.erase(0, end + 1);
        return line;
      }
      if (buffer_.size() > agent::kMaxAnswerBytes) return Fail("its answer is too long");
      const std::int64_t left_ns = deadline_ns - MonotonicNs();
      pollfd ready = {.fd = fd_.get(), .events = POLLIN, .revents = 0};
      const int count =
          left_ns > 0 ? ::poll(&ready, 1, static_cast<int>(left_ns / 1'000'000) + 1) : 0;
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return Fail("no answer within 10 s");
      char chunk[4096];
      const ssize_t got = ::recv(fd_.get(), chunk, sizeof(chunk), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return Fail(got == 0 ? "it closed the connection" : SystemMessage(errno));
      buffer_.append(chunk, static_cast<std::size_t>(got));
    }
  }

  tl::unexpected<Error> Fail(const std::string& what) PERSEUS_REQUIRES(mutex_) {
    Close();
    return tl::unexpected(AgentError(socket_, what));
  }

  void Close() PERSEUS_REQUIRES(mutex_) {
    if (fd_.valid()) {
      // A forked child may hold a copy: without this the agent would not see the end.
      ::shutdown(fd_.get(), SHUT_RDWR);
      losses_.fetch_add(1, std::memory_order_relaxed);
    }
    fd_ = FileDescriptor();
    buffer_.clear();
    leased_.clear();
  }

  const std::string socket_;
  const std::string name_;
  std::atomic<std::uint64_t> losses_ = 0;
  Mutex mutex_;
  FileDescriptor fd_ PERSEUS_GUARDED_BY(mutex_);
  std::string buffer_ PERSEUS_GUARDED_BY(mutex_);
  std::int64_t last_id_ PERSEUS_GUARDED_BY(mutex_) = 0;
  bool not_leased_ PERSEUS_GUARDED_BY(mutex_) = false;  // The last refusal: the lease is gone.
  std::set<std::string> leased_ PERSEUS_GUARDED_BY(mutex_);
  std::set<std::string> lost_ PERSEUS_GUARDED_BY(mutex_);
};

class AgentGpu : public device::Gpu {
 public:
  AgentGpu(Connection* connection, device::GpuInfo info)
      : connection_(connection), info_(std::move(info)) {}

  const device::GpuInfo& info() const override { return info_; }

  Result<void> LockClock(int mhz) override {
    agent::Request request = About(agent::Operation::kSet);
    request.mhz = mhz;
    const Result<agent::Answer> answer = connection_->OfOwner(std::move(request));
    if (!answer) return tl::unexpected(answer.error());
    return {};
  }

  Result<void> ReleaseClock() override {
    const Result<agent::Answer> answer = connection_->OfOwner(About(agent::Operation::kRelease));
    if (!answer) return tl::unexpected(answer.error());
    return {};
  }

  Result<int> ClockMhz() override {
    return MakeError(ErrorCode::kIo, "the agent does not say the clock of now");
  }

  Result<double> EnergyJoules() override {
    const Result<agent::Answer> answer = connection_->Read(About(agent::Operation::kEnergy));
    if (!answer) return tl::unexpected(answer.error());
    const auto* energy = std::get_if<agent::EnergyAnswer>(&answer->body);
    if (energy == nullptr) return MakeError(ErrorCode::kIo, "the agent did not say the energy");
    return energy->joules;
  }

  Result<double> PowerWatts() override {
    return MakeError(ErrorCode::kIo, "the agent does not say the power of now");
  }

  Result<device::GpuConditions> Conditions() override {
    const Result<agent::Answer> answer = connection_->Read(About(agent::Operation::kConditions));
    if (!answer) return tl::unexpected(answer.error());
    const auto* conditions = std::get_if<agent::ConditionsAnswer>(&answer->body);
    if (conditions == nullptr) {
      return MakeError(ErrorCode::kIo, "the agent did not say the conditions");
    }
    return conditions->conditions;
  }

 private:
  agent::Request About(agent::Operation operation) const {
    agent::Request request;
    request.operation = operation;
    request.gpu = info_.uuid;
    return request;
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
    const Result<agent::Answer> answer = connection_.Read(std::move(request));
    if (!answer) return tl::unexpected(answer.error());
    return {};
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

}  // namespace perseus::client
