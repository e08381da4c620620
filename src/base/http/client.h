// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_CLIENT_H_
#define PERSEUS_HTTP_CLIENT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"
#include "perseus/result.h"

// A small blocking HTTP/1.1 client: one server, one connection, kept between calls.
// No environment variable (proxies) and no redirect changes where it goes, and it
// raises no SIGPIPE.
namespace perseus::http {

struct ClientOptions {
  // "http://127.0.0.1:7787", "https://host:7787", "http://[::1]:80/prefix" (before
  // every target) or "unix:/run/perseus/server.sock".
  std::string url;
  std::string token;                          // For "Authorization: Bearer"; "": none. Refused
                                              // with http:// to another machine.
  std::string ca_file;                        // PEM, of https; "": the system's certificates.
  double connect_seconds = 5;                 // Name, connection, TLS; within a call's deadline.
  std::size_t max_response_bytes = 64 << 20;  // A longer one is an error.
};

// The token in a file that holds nothing else but space and line ends around it. "":
// no file is named.
Result<std::string> ReadTokenFile(const std::string& path);

// How often, and when again. A call is tried again where no answer came (no
// connection, a connection that broke) or where the status is 429, 502, 503 or 504;
// the answer may have been lost, not the request: ask for it only where doing twice
// is harmless. Pauses double from `pause_seconds` to `max_pause_seconds`, each
// shortened by a random part of up to a half; a longer Retry-After is kept to. All
// of it is within the call's deadline.
struct Retry {
  int attempts = 1;
  double pause_seconds = 0.2;
  double max_pause_seconds = 5;
};

struct CallOptions {
  double deadline_seconds = 10;  // For all of it: connecting, sending, waiting, reading.
  std::string content_type = "application/json";  // Of the body.
  Headers headers;
  Retry retry;
};

// One server-sent event.
struct Event {
  std::string name = "message";
  std::string data;
  std::string id;  // The last that was said.
};

// An open stream of server-sent events. One thread at a time, but for Cancel().
class EventReader {
 public:
  EventReader(EventReader&&) noexcept;
  EventReader& operator=(EventReader&&) noexcept;
  ~EventReader();

  // The next event; none: `deadline_seconds` passed without one (the stream lives
  // on; heartbeats are no events). kIo: the stream ended, or broke; OpenEvents()
  // again. kCancelled: Cancel() was called.
  Result<std::optional<Event>> Next(double deadline_seconds);

  // Since the last byte came, a heartbeat's too: tells a quiet server from a dead one.
  double silent_seconds() const;

  // Ends a Next() that waits, and every later one. Any thread.
  void Cancel();

 private:
  friend class Client;
  struct State;
  explicit EventReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One thread at a time, but for Cancel(). Not to be used by a child after fork().
class Client {
 public:
  // Checks the options and reads the CA file; connects to nobody yet.
  static Result<Client> Create(ClientOptions options);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // `target` is path and query, percent-encoded (see http/target.h). Any status is a
  // response, not an error. kIo: no answer, the message says why ("the deadline
  // passed" among them); kCancelled: Cancel(). Where the server had closed a kept
  // connection before it sent a byte, GET, HEAD, PUT and DELETE are sent once more on
  // a new one; nothing else is repeated unless `options.retry` says so.
  Result<Response> Call(std::string_view method, std::string_view target,
                        std::string_view body = {}, const CallOptions& options = {});

  // Connects anew and asks for a stream of events; an error also for a status other
  // than 200, whose message has that of the response. `last_event_id` as the standard
  // says, "": none.
  Result<EventReader> OpenEvents(std::string_view target, double deadline_seconds,
                                 std::string_view last_event_id = {});

  // Ends a call that waits, with kCancelled, and every later one. Any thread; does
  // not block. Event readers that it opened are not cancelled by it.
  void Cancel();

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_CLIENT_H_
