// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_CONNECTION_H_
#define PERSEUS_HTTP_CONNECTION_H_

#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/mutex.h"
#include "http/admission.h"
#include "http/message.h"
#include "http/message_parser.h"
#include "http/server_core.h"
#include "http/transport.h"

namespace perseus::http {

class Connection;
class EventStream;
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

// One client's connection. It reads a request, passes it to a worker, writes the answer, and reads
// the next. All this runs on the thread of its loop. A waiting connection needs little memory: it
// has no read buffer, parser or timer (OnTick checks `deadline_`).
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // Properties of a connection when it is accepted.
  struct Origin {
    std::string peer;
    std::unique_ptr<Response> refusal;  // Send this and close. Null: the connection is accepted.
    std::shared_ptr<void> held;         // Kept until the connection is closed.
    std::uint64_t stops = 0;            // At least this many stops were before it was made.
    std::optional<std::uint32_t> peer_uid;
  };
  Connection(ServerCore* core, IoLoop* loop, std::unique_ptr<Transport> transport, Origin origin);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  boost::asio::io_context& context() { return loop_->context; }

  // To be called by the loop.
  void Start();
  void OnTick(SteadyClock::time_point now);
  void BeginStop();
  // `stops`: how many stops of the process StopDetector has counted.
  void LookAfterStop(std::uint64_t stops);
  void Close();

  // To be called by an Exchange. No effect unless `serial` is that of the present request.
  void Answer(std::uint64_t serial, Response response);
  void Park(std::uint64_t serial, SteadyClock::time_point deadline, Response response);
  void StartEvents(std::uint64_t serial, const std::shared_ptr<EventStream>& stream);
  void SetGone(std::uint64_t serial, std::function<void()> gone);

  // To be called by an EventStream.
  void QueueEvent(std::shared_ptr<const std::string> formatted);
  void EndStream();
  void DropStream();
  void SetStreamGone(std::function<void()> gone);

 private:
  enum class State : std::uint8_t {
    kHandshake,
    kHead,       // Waits for a request, or reads its head.
    kBody,       // Reads the body of a request.
    kWorking,    // A worker handles the request, or it is parked.
    kWriting,    // Writes the answer.
    kStreaming,  // Answers with events.
    kLingering,  // The answer is written. Drops what the client still sends for a while: closing a
                 // socket with unread bytes could destroy the answer on its way.
    kClosed,
  };
  // Bytes of a body in memory, counted for all connections together.
  class BodyCharge {
   public:
    explicit BodyCharge(ServerCore* core) : core_(core) {}
    BodyCharge(BodyCharge&& other) noexcept
        : core_(other.core_), bytes_(std::exchange(other.bytes_, 0)) {}
    BodyCharge& operator=(BodyCharge&& other) noexcept {
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~BodyCharge() { Set(0); }
    bool Set(std::size_t bytes);  // False: over the limit of all connections together.

   private:
    ServerCore* core_;
    std::size_t bytes_ = 0;
  };
  struct Job;

  void OnHandshake();
  void OnReadable();
  void ArmRead();
  void ReadSoon();
  bool WantsInput() const;
  void OnPeerEnd();
  void Consume(std::string_view fresh);
  bool ReadStep(std::string_view* unread);
  void OnHead();
  void ContinueBody();
  void Dispatch();
  static void Run(ServerCore* core, const Job& job);
  void Refuse(int status, std::string_view message);

  void ArmWrite();
  void OnWritable();
  void Respond(Response response, bool keep_alive);
  void Flush();
  void OnWritten();
  void FinishAnswer();
  void NextRequest();
  void Linger();
  void WriteEvents();
  void LogAnswer();
  void EndExchange(bool client_is_gone);

  void SetDeadline(double seconds) { deadline_ = DeadlineIn(seconds); }

  ServerCore* core_;
  IoLoop* loop_;
  std::unique_ptr<Transport> transport_;
  boost::asio::posix::stream_descriptor waiter_;
  Origin origin_;
  std::size_t index_ = 0;  // In the loop's list.
  State state_ = State::kHandshake;
  bool read_armed_ = false, write_armed_ = false;
  bool write_wants_read_ = false;  // TLS.
  bool peer_ended_ = false;
  bool in_consume_ = false;
  SteadyClock::time_point deadline_;
  std::uint64_t stops_at_empty_;  // Count of stops when last no unread input was waiting.

  // The request.
  std::string input_;  // Bytes that were read but not parsed yet.
  std::optional<MessageParser> parser_;
  std::unique_ptr<Admission> admission_;
  BodyCharge charge_;
  std::uint64_t serial_ = 0;
  std::uint64_t stops_before_ = 0;  // Count of stops before the request was sent.
  const Route* route_ = nullptr;
  bool is_head_ = false, is_http_1_1_ = true, keep_alive_ = false;
  std::string method_, path_, token_name_;  // For the log.
  std::uint64_t request_bytes_ = 0;
  SteadyClock::time_point begun_;

  // At work.
  std::weak_ptr<Exchange> exchange_;
  std::unique_ptr<Response> parked_answer_;
  std::function<void()> gone_;

  // The answer.
  std::string out_head_;
  std::shared_ptr<const std::string> out_body_;
  std::size_t out_offset_ = 0;
  int status_ = 0;
  std::uint64_t sent_bytes_ = 0;

  std::weak_ptr<EventStream> stream_;
  bool has_stream_ = false;
  std::deque<std::shared_ptr<const std::string>> events_;
  std::size_t batch_bytes_ = 0;
  bool is_chunked_ = false, stream_ends_ = false;
  SteadyClock::time_point heartbeat_;

  friend class ServerCore;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_CONNECTION_H_
