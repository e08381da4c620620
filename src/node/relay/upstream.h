// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_UPSTREAM_H_
#define PERSEUS_RELAY_UPSTREAM_H_

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "http/client.h"
#include "http/message.h"
#include "http/server.h"
#include "perseus/result.h"

// The relay's connections to the server.
namespace perseus::relay {

inline constexpr double kConnectSeconds = 5;
// A restart of the server is over by then.
inline constexpr std::chrono::seconds kAwayAfter{3};
inline constexpr std::chrono::seconds kFailFast{1};
// Above the length of a long poll, so that relays with ranks never ask for this alone.
inline constexpr std::chrono::seconds kProbeAfter{90};
inline constexpr int kFailuresForFast = 2;

inline bool IsForRanks(const std::pair<std::string, std::string>& header) {
  return http::FindHeader({header}, "Retry-After") != nullptr ||
         http::FindHeader({header}, "Location") != nullptr ||
         http::FindHeader({header}, "ETag") != nullptr;
}

inline constexpr double kLeastSeconds = 0.2;  // For a call; less is not worth beginning.

// Writes one event to the log. Called from any thread.
using LogSink =
    std::function<void(bool is_error, std::string_view event, const std::string& message)>;

struct ServerAddress {
  std::string url;         // As http::ClientOptions.
  std::string token_file;  // Holds one token; "": none.
  std::string ca_file;     // "": the system's certificates.
};

// Whether the server answers, according to all connections to it. Thread-safe.
class ServerHealth {
 public:
  explicit ServerHealth(LogSink log) : log_(std::move(log)) {}

  void Answered() {
    bool is_back = false;
    {
      const MutexLock lock(mutex_);
      failures_ = 0;
      last_answer_ = Clock::now();
      is_back = std::exchange(told_, false);
    }
    if (is_back && log_) log_(false, "server_back", "the server answers again");
  }

  void Failed(const std::string& why) {
    bool tell = false;
    {
      const MutexLock lock(mutex_);
      last_failure_ = Clock::now();
      if (failures_++ == 0) first_failure_ = last_failure_;
      why_ = why;
      tell = IsAwayAt(last_failure_) && !std::exchange(told_, true);
    }
    if (tell && log_) log_(true, "server_away", why);
  }

  // Whether the server has not answered since a failure some seconds ago, which is too long for a
  // restart.
  bool is_away() const {
    const MutexLock lock(mutex_);
    return IsAwayAt(Clock::now());
  }

  // Whether the relay should probe the server because no request has been sent for long. So the log
  // shows when the server goes away or comes back, even if no rank sends requests.
  bool wants_probe() const {
    const MutexLock lock(mutex_);
    return failures_ > 0 || Clock::now() - last_answer_ > kProbeAfter;
  }

  // Whether calls failed until just now, so that a new call may fail without being tried.
  bool fails_fast() const {
    const MutexLock lock(mutex_);
    return failures_ >= kFailuresForFast && Clock::now() - last_failure_ < kFailFast;
  }

  std::string why() const {
    const MutexLock lock(mutex_);
    return why_;
  }

  // None: it has not answered yet.
  std::optional<double> seconds_since_answer() const {
    const MutexLock lock(mutex_);
    if (last_answer_ == Clock::time_point()) return std::nullopt;
    return std::chrono::duration<double>(Clock::now() - last_answer_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool IsAwayAt(Clock::time_point now) const PERSEUS_REQUIRES(mutex_) {
    return failures_ > 0 && now - first_failure_ >= kAwayAfter;
  }

  const LogSink log_;
  mutable Mutex mutex_;
  int failures_ PERSEUS_GUARDED_BY(mutex_) = 0;  // In a row.
  Clock::time_point first_failure_ PERSEUS_GUARDED_BY(mutex_);
  Clock::time_point last_failure_ PERSEUS_GUARDED_BY(mutex_);
  Clock::time_point last_answer_ PERSEUS_GUARDED_BY(mutex_);
  std::string why_ PERSEUS_GUARDED_BY(mutex_);
  bool told_ PERSEUS_GUARDED_BY(mutex_) = false;
};

// One kept connection to the server. Not thread-safe, except Cancel().
class ServerLine {
 public:
  // Both must outlive this object.
  ServerLine(const ServerAddress* address, ServerHealth* health)
      : address_(address), health_(health) {}

  // Returns the answer without headers about the connection. kIo: no answer, or the server refuses
  // the relay's token (a rank must not see that answer). kCancelled: Cancel() was called.
  Result<http::Response> Call(std::string_view method, std::string_view target,
                              std::string_view body, double deadline_seconds,
                              http::Headers headers = {}) {
    const Result<std::shared_ptr<http::Client>> client = Open();
    http::CallOptions options;
    options.deadline_seconds = deadline_seconds;
    options.headers = std::move(headers);
    Result<http::Response> response =
        client ? (*client)->Call(method, target, body, options) : tl::unexpected(client.error());
    if (!response) {
      if (response.error().code == ErrorCode::kCancelled) return response;
      health_->Failed(response.error().message);
      return MakeError(ErrorCode::kIo, response.error().message);
    }
    // Whom they concern is the relay, not the rank that asked.
    if (response->status == 401 || response->status == 403) {
      Close();
      const std::string why = fmt::format(
          "The server refuses the relay (status {}): it needs a token of the role train "
          "(--token-file).",
          response->status);
      health_->Failed(why);
      return MakeError(ErrorCode::kIo, why);
    }
    health_->Answered();
    std::erase_if(response->headers, [](const auto& header) { return !IsForRanks(header); });
    return response;
  }

  // Closes the connection. The next call opens a new one and reads the token file again.
  void Close() {
    const MutexLock lock(mutex_);
    client_.reset();
  }

  bool is_open() const {
    const MutexLock lock(mutex_);
    return client_ != nullptr;
  }

  // Makes a waiting call and all later calls fail. May be called from any thread.
  void Cancel() {
    std::shared_ptr<http::Client> client;
    {
      const MutexLock lock(mutex_);
      cancelled_ = true;
      client = client_;
    }
    if (client != nullptr) client->Cancel();
  }

 private:
  Result<std::shared_ptr<http::Client>> Open() {
    {
      const MutexLock lock(mutex_);
      if (client_ != nullptr) return client_;
    }
    Result<std::string> token = http::ReadTokenFile(address_->token_file);
    if (!token) return tl::unexpected(token.error());
    http::ClientOptions options;
    options.url = address_->url;
    options.token = *std::move(token);
    options.ca_file = address_->ca_file;
    options.connect_seconds = kConnectSeconds;
    Result<http::Client> made = http::Client::Create(std::move(options));
    if (!made) return tl::unexpected(made.error());
    auto client = std::make_shared<http::Client>(*std::move(made));
    const MutexLock lock(mutex_);
    if (cancelled_) return MakeError(ErrorCode::kCancelled, "The relay stops.");
    client_ = std::move(client);
    return client_;
  }

  const ServerAddress* address_;
  ServerHealth* health_;
  mutable Mutex mutex_;
  std::shared_ptr<http::Client> client_ PERSEUS_GUARDED_BY(mutex_);
  bool cancelled_ PERSEUS_GUARDED_BY(mutex_) = false;
};

struct ForwarderOptions {
  int lines = 2;
  std::size_t max_waiting = 512;
  std::size_t max_waiting_bytes = std::size_t{48} << 20;
  double deadline_seconds = 8;  // Less than clients wait for (10).
  std::chrono::milliseconds idle = std::chrono::seconds(5);
};

// Sends requests to the server in the order in which they came, over a few kept connections.
// Usually one is enough; others are closed after a while without work. The number, bytes and time
// of waiting requests are limited. Thread-safe.
class Forwarder {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::string body;
    http::Headers headers = {};
  };
  // Called once, on a thread of the forwarder, with the answer or (kIo, kCancelled) why
  // there is none.
  using Callback = std::function<void(const Result<http::Response>&)>;

  // Both must outlive this object.
  Forwarder(const ServerAddress* address, ServerHealth* health, ForwarderOptions options)
      : options_(options), health_(health) {
    idle_.reserve(static_cast<std::size_t>(options_.lines));
    for (int i = 0; i < options_.lines; ++i) {
      workers_.push_back(std::make_unique<Worker>(address, health));
    }
    try {
      for (const std::unique_ptr<Worker>& worker : workers_) {
        worker->thread = std::thread([this, worker = worker.get()] { Run(worker); });
      }
    } catch (...) {  // No thread; those that run have to be joined.
      Stop();
      throw;
    }
  }

  ~Forwarder() { Stop(); }
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  // Never blocks. False: too many requests wait, or it has stopped; `callback` is then not called.
  bool Send(Request request, Callback callback) {
    const MutexLock lock(mutex_);
    const std::size_t bytes = request.body.size();
    const bool fits = queue_.size() < options_.max_waiting &&
                      (queue_.empty() || queued_bytes_ + bytes <= options_.max_waiting_bytes);
    if (!fits) ++counts_.refused;
    if (stopped_ || !fits) return false;
    const auto patience = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(options_.deadline_seconds));
    queue_.push_back({std::move(request), std::move(callback), Clock::now() + patience});
    queued_bytes_ += bytes;
    if (!idle_.empty()) {
      idle_.back()->is_woken = true;
      idle_.back()->wake.NotifyOne();
      idle_.pop_back();
    }
    return true;
  }

  struct Counts {
    std::size_t waiting = 0, limit = 0;  // Requests.
    std::uint64_t sent = 0;              // To the server, since the start,
    std::uint64_t unanswered = 0;        // and those of them that it did not answer.
    std::uint64_t refused = 0;           // As too many waited.
  };
  Counts counts() {
    const MutexLock lock(mutex_);
    Counts counts = counts_;
    counts.waiting = queue_.size();
    counts.limit = options_.max_waiting;
    return counts;
  }

  // Ends running and waiting requests with kCancelled. Must not be called from a callback.
  void Stop() {
    std::deque<Item> left;
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
      left.swap(queue_);
      for (const std::unique_ptr<Worker>& worker : workers_) worker->wake.NotifyOne();
    }
    for (const std::unique_ptr<Worker>& worker : workers_) worker->line.Cancel();
    for (const std::unique_ptr<Worker>& worker : workers_) {
      if (worker->thread.joinable()) worker->thread.join();
    }
    for (const Item& item : left) {
      item.callback(MakeError(ErrorCode::kCancelled, "the relay stops"));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Item {
    Request request;
    Callback callback;
    Clock::time_point deadline;
  };
  struct Worker {
    explicit Worker(const ServerAddress* address, ServerHealth* health) : line(address, health) {}
    ServerLine line;
    ConditionVariable wake;
    bool is_woken = false;  // With mutex_.
    std::thread thread;
  };

  void Run(Worker* worker) {
    Item item;
    while (Next(worker, &item)) {
      try {
        const Result<http::Response> answer = Ask(worker, item);
        Count(answer);
        item.callback(answer);
      } catch (const std::exception&) {  // No memory: who waits is answered by the engine.
      }
      item = Item();  // What it holds is not kept until the next.
    }
  }

  bool Next(Worker* worker, Item* item) {
    const MutexLock lock(mutex_);
    while (queue_.empty() && !stopped_) {
      worker->is_woken = false;
      idle_.push_back(worker);
      const Clock::time_point until = Clock::now() + options_.idle;
      bool is_idle = !worker->line.is_open();
      while (!worker->is_woken && !stopped_) {
        if (is_idle) {
          worker->wake.Wait(mutex_);
        } else if (!worker->wake.WaitUntil(mutex_, until)) {
          is_idle = true;
          const MutexUnlock open_again(mutex_);
          worker->line.Close();
        }
      }
    }
    if (stopped_) return false;
    *item = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= item->request.body.size();
    return true;
  }

  void Count(const Result<http::Response>& answer) {
    const MutexLock lock(mutex_);
    ++counts_.sent;
    if (!answer) ++counts_.unanswered;
  }

  Result<http::Response> Ask(Worker* worker, const Item& item) {
    const double left = std::chrono::duration<double>(item.deadline - Clock::now()).count();
    if (left < kLeastSeconds) {
      return MakeError(ErrorCode::kIo, "the server takes too long to answer earlier requests");
    }
    if (health_->fails_fast()) return MakeError(ErrorCode::kIo, health_->why());
    const Request& request = item.request;
    try {
      return worker->line.Call(request.method, request.target, request.body, left, request.headers);
    } catch (const std::exception& exception) {  // No memory, or no thread to look a name up.
      return MakeError(ErrorCode::kIo, exception.what());
    }
  }

  const ForwarderOptions options_;
  ServerHealth* const health_;
  Mutex mutex_;
  std::deque<Item> queue_ PERSEUS_GUARDED_BY(mutex_);
  std::size_t queued_bytes_ PERSEUS_GUARDED_BY(mutex_) = 0;
  // The one that worked last is the last.
  std::vector<Worker*> idle_ PERSEUS_GUARDED_BY(mutex_);
  Counts counts_ PERSEUS_GUARDED_BY(mutex_);  // Without `waiting` and `limit`.
  bool stopped_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// The answer (503) to a rank if the server gave none.
inline http::Response UnavailableResponse(const Error& error) {
  return http::TryAgainResponse(fmt::format("The relay has no answer: {}", error.message));
}

// 503: too much waits.
inline http::Response TooManyRequests() {
  return http::TryAgainResponse("The relay has too many requests at once; try again soon.");
}

// Sends `request` and answers with the server's response, or with 503.
inline void Forward(Forwarder* forwarder, Forwarder::Request request,
                    const http::Responder& responder) {
  const bool is_sent =
      forwarder->Send(std::move(request), [responder](const Result<http::Response>& result) {
        responder.Send(result ? *result : UnavailableResponse(result.error()));
      });
  if (!is_sent) responder.Send(TooManyRequests());
}

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_UPSTREAM_H_
