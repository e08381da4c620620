// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_CONNECTION_H_
#define PERSEUS_HTTP_CONNECTION_H_

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

#include "http/admission.h"
#include "http/message_parser.h"
#include "http/response_head.h"
#include "http/server_core.h"
#include "http/transport.h"

namespace perseus::http {

class Exchange;
class EventStreamCore;

// One client's connection: reads a request, hands it to a worker, writes the answer,
// and so on, one request at a time. All is done on the thread of its loop. What waits
// holds little: no read buffer, no parser, no timer (OnTick looks at `deadline_`).
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // What is known of a connection when it is accepted.
  struct Origin {
    std::string peer;
    std::unique_ptr<Response> refusal;  // It is told so and closed. Null: it is welcome.
    std::shared_ptr<void> held;         // Until it is closed.
    std::uint64_t stops = 0;            // That there were before it came, at least.
    std::optional<std::uint32_t> peer_uid;
  };
  Connection(ServerCore* core, IoLoop* loop, std::unique_ptr<Transport> transport, Origin origin);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  boost::asio::io_context& context() { return loop_->context; }

  // Of the loop.
  void Start();
  void OnTick(SteadyClock::time_point now);
  void BeginStop();
  // There were `stops` of the process until now.
  void LookAfterStop(std::uint64_t stops);
  void Close();

  // Of an Exchange; without effect unless `serial` is that of the request at work.
  void Answer(std::uint64_t serial, Response response);
  void Park(std::uint64_t serial, SteadyClock::time_point deadline, Response response);
  void StartEvents(std::uint64_t serial, std::shared_ptr<EventStreamCore> stream);
  void SetGone(std::uint64_t serial, std::function<void()> gone);

  // Of an EventStreamCore.
  void QueueEvent(std::shared_ptr<const std::string> formatted);
  void EndStream();
  void DropStream();
  void SetStreamGone(std::function<void()> gone);

 private:
  enum class State : std::uint8_t {
    kHandshake,
    kHead,       // Waits for a request, or reads its head.
    kBody,       // Reads its body.
    kWorking,    // A worker has it, or it is parked.
    kWriting,    // Its answer is on its way.
    kStreaming,  // It is answered by events.
    kLingering,  // All is said; what the client still sends is thrown away for a while,
                 // as a socket that is closed over unread bytes loses what it wrote.
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
    bool Set(std::size_t bytes);  // False: too much altogether.

   private:
    ServerCore* core_;
    std::size_t bytes_ = 0;
  };
  struct Job;

  // Reading: connection.cc.
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

  // Writing: connection_write.cc.
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

  void SetDeadline(double seconds);

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
  std::uint64_t stops_at_empty_;  // There were so many when nothing waited to be read.

  // The request.
  std::string input_;  // Read, but not consumed.
  std::optional<MessageParser> parser_;
  std::unique_ptr<Admission> admission_;
  BodyCharge charge_;
  std::uint64_t serial_ = 0;
  std::uint64_t stops_before_ = 0;  // It was sent.
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

  // Events.
  std::shared_ptr<EventStreamCore> stream_;
  std::deque<std::shared_ptr<const std::string>> events_;
  std::size_t batch_bytes_ = 0;
  bool is_chunked_ = false, stream_ends_ = false;
  SteadyClock::time_point heartbeat_;

  friend class ServerCore;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_CONNECTION_H_
