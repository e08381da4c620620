// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_EXCHANGE_H_
#define PERSEUS_HTTP_EXCHANGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/mutex.h"
#include "http/message.h"

namespace perseus::http {

class Connection;
class EventStream;
class EventStreamCore;
class ServerCore;

// Passes the answer to one request from other threads to the IO thread of its connection. Answers
// 500 if it is destroyed without an answer. Thread-safe.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  struct Origin {
    std::uint64_t serial;  // Of the request on its connection.
    int socket;
    std::uint64_t stops_before;  // Count of stops of the process before the request was sent.
  };
  Exchange(std::weak_ptr<ServerCore> core, std::weak_ptr<Connection> connection, Origin origin);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool Send(Response response);
  void AnswerAfter(double seconds, Response response);
  std::shared_ptr<EventStream> StartEvents();
  void OnGone(std::function<void()> gone);

  bool alive() const { return alive_.load(std::memory_order_relaxed); }
  bool wanted();
  // To be called by the connection. MarkGone(): the client has disconnected. MarkAnswered(): the
  // connection has answered without this object. The socket may be closed after that.
  void MarkGone();
  void MarkAnswered();

 private:
  std::weak_ptr<ServerCore> core_;
  std::weak_ptr<Connection> connection_;
  const std::uint64_t serial_;
  const std::uint64_t stops_before_;
  Mutex mutex_;                            // The socket is open while it is held.
  int socket_ PERSEUS_GUARDED_BY(mutex_);  // -1: no longer known.
  std::atomic<bool> answered_ = false;
  std::atomic<bool> alive_ = true;
};

// The same for an event stream. The memory for events that wait for the client is limited.
class EventStreamCore {
 public:
  EventStreamCore(std::weak_ptr<ServerCore> core, std::weak_ptr<Connection> connection,
                  std::size_t max_queued_bytes);

  bool Send(std::shared_ptr<const std::string> formatted);
  bool SendFirst(std::shared_ptr<const std::string> formatted);
  void Close();
  void OnGone(std::function<void()> gone);

  bool alive() const { return alive_.load(std::memory_order_relaxed); }
  // To be called by the connection: the stream has ended; `bytes` were sent.
  void MarkGone() { alive_.store(false, std::memory_order_relaxed); }
  void MarkSent(std::size_t bytes) { queued_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::weak_ptr<ServerCore> core_;
  std::weak_ptr<Connection> connection_;
  std::atomic<std::size_t> max_queued_bytes_;
  std::atomic<std::size_t> queued_bytes_ = 0;
  std::atomic<bool> alive_ = true;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_EXCHANGE_H_
