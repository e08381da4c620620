// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_CLIENT_WIRE_H_
#define PERSEUS_HTTP_CLIENT_WIRE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/file_descriptor.h"
#include "http/client.h"
#include "http/message_parser.h"
#include "http/transport.h"
#include "perseus/result.h"

// Blocking connections for clients. Each wait ends with an answer, at a deadline, or by
// cancellation.
namespace perseus::http {

// Wakes all threads that wait, permanently. Set() may be called from any thread.
class CancelSignal {
 public:
  static Result<std::unique_ptr<CancelSignal>> Make();
  void Set();
  bool is_set() const { return set_.load(); }
  int descriptor() const { return event_.get(); }

 private:
  explicit CancelSignal(FileDescriptor event) : event_(std::move(event)) {}
  FileDescriptor event_;
  std::atomic<bool> set_ = false;
};

// The address in a URL.
struct Endpoint {
  std::string url;  // As it was given, for messages.
  bool is_tls = false;
  std::string host;
  int port = 0;
  std::string unix_path;    // "": TCP.
  std::string prefix;       // Before every target: "/perseus".
  std::string host_header;  // "host:port".
};
Result<Endpoint> ParseEndpoint(std::string_view url);

enum class Waited { kReady, kDeadline, kCancelled };
// Waits for `events` of poll(2) on a descriptor; -1: only for the deadline.
Waited WaitFor(int descriptor, short events, Deadline deadline, const CancelSignal& cancel);

// A connection. One thread at a time.
class ClientWire {
 public:
  // `tls`: null unless the endpoint uses TLS.
  static Result<ClientWire> Connect(const Endpoint& endpoint, const TlsContext* tls,
                                    Deadline deadline, const CancelSignal* cancel);

  // Sends a request. Stops early if the server answers before it has read all of it.
  Result<void> Send(std::string_view head, std::string_view body, Deadline deadline);

  // Reads until `parser` completes its next step, and keeps the bytes after that for the next call.
  // kMore: the other side closed the connection. Fails at the deadline, on cancellation, and if the
  // connection breaks.
  Result<MessageParser::Step> Read(MessageParser* parser, Deadline deadline);

  // After a complete answer: whether the connection cannot be used again, because the server closed
  // it or sent bytes that do not belong to an answer.
  bool is_stale();
  void set_cancel(const CancelSignal* cancel) { cancel_ = cancel; }
  bool has_received() const { return received_bytes_ > 0; }  // Since the last Send.
  bool deadline_passed() const { return deadline_passed_; }  // By the last call.

 private:
  ClientWire(const Endpoint& endpoint, std::unique_ptr<Transport> transport,
             const CancelSignal* cancel);
  Result<void> Handshake(Deadline deadline);
  Result<void> Wait(short events, Deadline deadline);
  tl::unexpected<Error> TooLate() const;
  tl::unexpected<Error> Broken(std::string_view what) const;

  std::string url_;
  bool is_tls_;
  std::unique_ptr<Transport> transport_;
  const CancelSignal* cancel_;
  std::string unread_;
  std::size_t received_bytes_ = 0;
  bool deadline_passed_ = false;
};

// Opens a non-blocking socket to an endpoint, trying each address of its name in turn.
// A name is looked up by a thread that may outlive a deadline, as the system's resolver
// cannot be interrupted; numbers and Unix sockets need none.
Result<FileDescriptor> ConnectSocket(const Endpoint& endpoint, Deadline deadline,
                                     const CancelSignal& cancel);

// Reads server-sent events (the HTML standard, 9.2.6) from the pieces in which they
// arrive. `retry` fields are skipped: the caller decides when it connects again.
class EventParser {
 public:
  // False: an event is longer than 16 MiB; the stream cannot be read any further.
  bool Feed(std::string_view bytes);

  // Sets the id that events have until the server sends one.
  void set_last_id(std::string_view id) { next_.id = id; }

  // The complete events; take them from the front.
  std::deque<Event>& events() { return events_; }

 private:
  void EndLine();

  std::string line_;
  bool after_return_ = false;  // The last byte was a '\r', whose '\n' may follow.
  bool is_first_line_ = true;
  Event next_;
  bool has_data_ = false;
  std::deque<Event> events_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_CLIENT_WIRE_H_
