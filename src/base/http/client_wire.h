// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_CLIENT_WIRE_H_
#define PERSEUS_HTTP_CLIENT_WIRE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/file_descriptor.h"
#include "http/message_parser.h"
#include "http/tls.h"
#include "http/transport.h"
#include "perseus/result.h"

// The blocking side of connections: what a client waits for ends with an answer, a
// deadline or a cancellation.
namespace perseus::http {

using Deadline = std::chrono::steady_clock::time_point;

// `seconds` from now.
Deadline DeadlineIn(double seconds);

// Wakes whoever waits. Set() from any thread, for good.
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

// Where a URL leads.
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
// For `events` of poll(2) on a descriptor; -1: for the deadline alone.
Waited WaitFor(int descriptor, short events, Deadline deadline, const CancelSignal& cancel);

// A connection. One thread at a time.
class ClientWire {
 public:
  // `tls` where the endpoint wants it.
  static Result<ClientWire> Connect(const Endpoint& endpoint, const TlsContext* tls,
                                    Deadline deadline, const CancelSignal* cancel);

  // Sends a request, as far as the server takes it: one that answers before it read
  // all is listened to.
  Result<void> Send(std::string_view head, std::string_view body, Deadline deadline);

  // Reads until `parser` has its next step; what it left unread is kept for the next
  // call. kMore: the other side closed. Fails at the deadline and so on.
  Result<MessageParser::Step> Read(MessageParser* parser, Deadline deadline);

  // After a complete answer: whether the server closed meanwhile, or says more than it
  // was asked.
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

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_CLIENT_WIRE_H_
