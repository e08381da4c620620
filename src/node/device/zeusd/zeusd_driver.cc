// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/zeusd/zeusd_driver.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/file_descriptor.h"
#include "common/mutex.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "common/tree.h"
#include "common/unix_socket.h"
#include "device/nvml/nvml.h"

namespace perseus::device {
namespace {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

constexpr std::size_t kMostBytes = std::size_t{64} << 10;

class Exchange {
 public:
  using Clock = std::chrono::steady_clock;

  Exchange(const std::string& path, double deadline_seconds)
      : path_(path),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(deadline_seconds))) {}

  Result<HttpAnswer> Run(std::string_view request) {
    Result<void> done = Connect();
    if (!done) return tl::unexpected(done.error());
    done = Send(request);
    if (!done) return tl::unexpected(done.error());
    const Result<std::string> bytes = ReceiveAll();
    if (!bytes) return tl::unexpected(bytes.error());
    return Parse(*bytes);
  }

 private:
  tl::unexpected<Error> Fail(int error) const {
    const bool denied = error == EACCES || error == EPERM;
    return MakeError(denied ? ErrorCode::kDenied : ErrorCode::kIo,
                     fmt::format("cannot reach {}: {}", Shown(path_), SystemMessage(error)));
  }
  tl::unexpected<Error> Refuse(std::string_view why) const {
    return MakeError(ErrorCode::kIo, fmt::format("{} {}", Shown(path_), why));
  }

  Result<void> Connect() {
    auto connected = ConnectUnixSocket(path_, deadline_ - Clock::now(), SocketMode::kNonBlocking);
    if (!connected) return Fail(connected.error());
    socket_ = *std::move(connected);
    return {};
  }

  // Waits for the socket until the deadline.
  Result<void> Wait(short events) {
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
      pollfd poll_socket = {socket_.get(), events, 0};
      const auto patience = std::clamp<std::int64_t>(left.count(), 0, 1'000'000);
      const int ready = poll(&poll_socket, 1, static_cast<int>(patience));
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return Fail(errno);
      if (Clock::now() >= deadline_) return Refuse("does not answer in time");
    }
  }

  Result<void> Send(std::string_view bytes) {
    while (!bytes.empty()) {
      Result<void> ready = Wait(POLLOUT);
      if (!ready) return ready;
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EINTR && errno != EAGAIN) return Fail(errno);
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
  }

  Result<std::string> ReceiveAll() {
    std::string bytes;
    std::array<char, 4096> buffer;
    while (true) {
      const Result<void> ready = Wait(POLLIN);
      if (!ready) return tl::unexpected(ready.error());
      const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (got == 0) return bytes;
      if (got < 0 && errno != EINTR && errno != EAGAIN) return Fail(errno);
      if (got > 0) bytes.append(buffer.data(), static_cast<std::size_t>(got));
      if (bytes.size() > kMostBytes) return Refuse("answers more than 64 KiB");
    }
  }

  // "HTTP/1.x NNN ...", headers, an empty line, the body.
  Result<HttpAnswer> Parse(const std::string& bytes) const {
    constexpr std::string_view kEnd = "\r\n\r\n";
    const std::size_t end = bytes.find(kEnd);
    const std::string_view text = bytes;
    constexpr std::size_t kStatusAt = 9;
    if (end == std::string::npos || !text.starts_with("HTTP/1.") || end < kStatusAt + 3) {
      return Refuse("does not answer in HTTP");
    }
    const std::optional<int> status = ParseInteger<int>(text.substr(kStatusAt, 3));
    if (!status || *status < 100) return Refuse("does not answer in HTTP");
    return HttpAnswer{*status, bytes.substr(end + kEnd.size())};
  }

  const std::string& path_;
  Clock::time_point deadline_;
  FileDescriptor socket_;
};

// One request to a server behind a Unix socket, on a connection of its own, and
// in HTTP/1.0: so the answer ends with the connection and needs no more of a
// parser than this. `method_and_target`: "GET /discover". `bearer` may be empty. An
// answer of more than 64 KiB, or one that is not complete `deadline_seconds` after
// the call, is an error (kIo; kDenied: no permission for the socket). Thread-safe.
Result<HttpAnswer> AskUnixHttp(const std::string& socket_path, const std::string& method_and_target,
                               const std::string& bearer, double deadline_seconds) {
  std::string request = fmt::format("{} HTTP/1.0\r\nHost: localhost\r\n", method_and_target);
  if (!bearer.empty()) request += fmt::format("Authorization: Bearer {}\r\n", bearer);
  request += "Content-Length: 0\r\n\r\n";
  return Exchange(socket_path, deadline_seconds).Run(request);
}

// The answer to /discover.
struct Discovery {
  std::vector<std::string> gpu_names;  // By zeusd's number.
  bool controls_gpus = false;
  bool needs_token = false;
};

class Zeusd {
 public:
  Zeusd(const std::string& path, double deadline_seconds)
      : path_(path.empty() ? "/run/zeusd/zeusd.sock" : path), deadline_seconds_(deadline_seconds) {
    if (const char* token = std::getenv("ZEUSD_TOKEN")) token_ = token;
  }

  const std::string& path() const { return path_; }
  bool has_token() const { return !token_.empty(); }

  // The body of a good answer. `doing`: "locking the clock of GPU 3".
  Result<std::string> Ask(const std::string& method_and_target, const std::string& doing) const {
    const bool clean = std::all_of(token_.begin(), token_.end(), [](char c) { return c > ' '; });
    if (!clean) return InvalidInput("the token in ZEUSD_TOKEN has spaces or control characters");
    Result<HttpAnswer> answer = AskUnixHttp(path_, method_and_target, token_, deadline_seconds_);
    if (!answer) {
      return MakeError(answer.error().code,
                       fmt::format("{} through zeusd failed: {}", doing, answer.error().message));
    }
    if (answer->status == 200) return std::move(answer->body);
    const bool denied = answer->status == 401 || answer->status == 403;
    return MakeError(denied ? ErrorCode::kDenied : ErrorCode::kIo,
                     fmt::format("{} through zeusd failed: it answers {} {}{}", doing,
                                 answer->status, Shown(answer->body),
                                 denied ? "; give a token with the scope of GPU control in "
                                          "ZEUSD_TOKEN"
                                        : ""));
  }

  Result<Discovery> Discover() const {
    const Result<std::string> body = Ask("GET /discover", "finding GPUs");
    if (!body) return tl::unexpected(body.error());
    const std::string name = fmt::format("the answer of zeusd at {}", Shown(path_));
    const Result<TreeNode> tree = ParseJsonTree(*body, name);
    if (!tree) return MakeError(ErrorCode::kIo, tree.error().message);
    TreeReader reader(*tree, name);
    const TreeCursor root = reader.Root();
    Discovery found;
    const TreeCursor gpus = root.Get("gpus");
    for (std::size_t i = 0; i < gpus.Size(); ++i) {
      const auto id = static_cast<std::size_t>(gpus.At(i).Get("id").Integer(0, 1023));
      found.gpu_names.resize(std::max(found.gpu_names.size(), id + 1));
      found.gpu_names[id] = gpus.At(i).Get("name").String();
    }
    const TreeCursor groups = root.Get("enabled_api_groups");
    for (std::size_t i = 0; i < groups.Size(); ++i) {
      found.controls_gpus = found.controls_gpus || groups.At(i).String() == "gpu-control";
    }
    found.needs_token = root.Get("auth_required").Bool();
    if (reader.failed()) return MakeError(ErrorCode::kIo, reader.error()->message);
    return found;
  }

 private:
  std::string path_;
  double deadline_seconds_;
  std::string token_;
};

class ZeusdGpu : public Gpu {
 public:
  ZeusdGpu(const Zeusd* zeusd, Gpu* reads) : zeusd_(zeusd), reads_(reads) {}

  const GpuInfo& info() const override { return reads_->info(); }

  Result<void> LockClock(int mhz) override {
    if (Result<void> known = CheckClock(info(), mhz); !known) return known;
    return Set("locking the clock",
               fmt::format("POST /gpu/set_gpu_locked_clocks?gpu_ids={}&min_clock_mhz={}&"
                           "max_clock_mhz={}&block=true",
                           info().index, mhz, mhz));
  }

  Result<void> ReleaseClock() override {
    return Set(
        "releasing the clock",
        fmt::format("POST /gpu/reset_gpu_locked_clocks?gpu_ids={}&block=true", info().index));
  }

  Result<int> ClockMhz() override { return reads_->ClockMhz(); }
  Result<double> EnergyJoules() override { return reads_->EnergyJoules(); }
  Result<double> PowerWatts() override { return reads_->PowerWatts(); }
  Result<GpuConditions> Conditions() override { return reads_->Conditions(); }

 private:
  Result<void> Set(const char* doing, const std::string& request) {
    const MutexLock lock(mutex_);
    const Result<std::string> done =
        zeusd_->Ask(request, fmt::format("{} of GPU {}", doing, info().index));
    if (!done) return tl::unexpected(done.error());
    return {};
  }

  const Zeusd* zeusd_;
  Gpu* reads_;
  Mutex mutex_;  // One change of this GPU's clock at a time.
};

class ZeusdDriver : public Driver {
 public:
  ZeusdDriver(Zeusd zeusd, std::unique_ptr<Driver> reads, bool may_set)
      : zeusd_(std::move(zeusd)), reads_(std::move(reads)), may_set_(may_set) {
    for (const auto& gpu : reads_->gpus()) {
      gpus_.push_back(std::make_unique<ZeusdGpu>(&zeusd_, gpu.get()));
    }
  }

  std::string_view kind() const override { return "zeusd"; }
  const std::vector<std::unique_ptr<Gpu>>& gpus() const override { return gpus_; }
  std::vector<std::string> faults() const override { return reads_->faults(); }
  Result<bool> MaySetClocks() override { return may_set_; }

 private:
  Zeusd zeusd_;
  std::unique_ptr<Driver> reads_;
  bool may_set_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
};

}  // namespace

Result<std::unique_ptr<Driver>> OpenZeusdDriver(const std::string& path, double deadline_seconds) {
  Zeusd zeusd(path, deadline_seconds);
  const Result<Discovery> found = zeusd.Discover();
  if (!found) return tl::unexpected(found.error());
  Result<std::unique_ptr<Driver>> reads = OpenNvmlDriver("");
  if (!reads) return reads;
  // zeusd knows GPUs by number alone. In a container, or under a batch system, the
  // numbers here may be others, and then we would set the clocks of somebody else.
  for (const auto& gpu : (*reads)->gpus()) {
    const auto index = static_cast<std::size_t>(gpu->info().index);
    const bool all_seen =
        (*reads)->gpus().size() + (*reads)->faults().size() == found->gpu_names.size();
    if (!all_seen || found->gpu_names[index] != gpu->info().name) {
      return MakeError(
          ErrorCode::kIo,
          fmt::format("zeusd at {} sees other GPUs than this process, and knows them by number "
                      "only: run where all GPUs of the node are seen, or use 'perseus agent'",
                      Shown(zeusd.path())));
    }
  }
  const bool may_set = found->controls_gpus && (!found->needs_token || zeusd.has_token());
  return std::make_unique<ZeusdDriver>(std::move(zeusd), *std::move(reads), may_set);
}

}  // namespace perseus::device
