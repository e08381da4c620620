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

// A small blocking HTTP/1.1 client for one server, or for several of which one is active. It keeps
// one connection between calls. It ignores proxy variables of the environment, follows no
// redirects, and raises no SIGPIPE.
namespace perseus::http {

struct ClientOptions {
  // "http://127.0.0.1:7787", "https://host:7787", "http://[::1]:80/prefix" (before
  // every target) or "unix:/run/perseus/server.sock". Several, with commas between them: a request
  // that a server did not take, since it cannot be reached or stands by, goes to the next.
  std::string url;
  std::string token;                          // For "Authorization: Bearer"; "": none. Refused
                                              // with http:// to another machine.
  std::string ca_file;                        // PEM, of https; "": the system's certificates.
  double connect_seconds = 5;                 // Name, connection, TLS; within a call's deadline.
  std::size_t max_response_bytes = 64 << 20;  // A longer one is an error.
};

// The header of an answer of a server that stands by: nothing was done. Its value is the address of
// the active one; empty: it is not known.
inline constexpr std::string_view kActiveHeader = "Perseus-Active";

// Reads a token from a file that holds nothing else except white space. Returns "" if `path` is
// empty.
Result<std::string> ReadTokenFile(const std::string& path);

// How often a call is tried, and with which pauses. It is tried again if no answer came (no
// connection, or it broke) or if the status is 429, 502, 503 or 504. The server may have carried
// out a request whose answer was lost, so use this only if doing it twice is harmless. Pauses
// double from `pause_seconds` to `max_pause_seconds`, each shortened at random by up to a half. A
// longer Retry-After of the server is obeyed. The call's deadline covers all attempts.
struct Retry {
  int attempts = 1;
  double pause_seconds = 0.2;
  double max_pause_seconds = 5;
};

struct CallOptions {
  double deadline_seconds = 10;  // For connecting, sending, waiting and reading together.
  std::string content_type = "application/json";  // Of the body.
  Headers headers;
  Retry retry;
};

// One server-sent event.
struct Event {
  std::string name = "message";
  std::string data;
  std::string id;  // The last id that the stream gave.
};

// An open stream of server-sent events. One thread at a time, but for Cancel().
class EventReader {
 public:
  EventReader(EventReader&&) noexcept;
  EventReader& operator=(EventReader&&) noexcept;
  ~EventReader();

  // Waits for the next event. None: `deadline_seconds` passed without one; the stream is still open
  // (heartbeats are not events). kIo: the stream ended or broke; call OpenEvents() again.
  // kCancelled: Cancel() was called.
  Result<std::optional<Event>> Next(double deadline_seconds);

  // Time since the last byte arrived, heartbeats included. Shows whether the server is alive.
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

  // `target`: path and query, percent-encoded (see http/target.h). A response of any status is a
  // success. kIo: no response came; the message says why (for example, the deadline passed).
  // kCancelled: Cancel() was called. If the server had closed the kept connection before it sent a
  // byte, GET, HEAD, PUT and DELETE are sent once more on a new one. Nothing else is repeated
  // unless `options.retry` says so.
  Result<Response> Call(std::string_view method, std::string_view target,
                        std::string_view body = {}, const CallOptions& options = {});

  // Opens a new connection and asks for a stream of events. Fails also if the status is not 200,
  // with the message of the response. `last_event_id` is sent as Last-Event-ID; "": not sent.
  Result<EventReader> OpenEvents(std::string_view target, double deadline_seconds,
                                 std::string_view last_event_id = {});

  // Makes a waiting call and all later calls fail with kCancelled. May be called from any thread;
  // does not block. Does not cancel event readers that this client opened.
  void Cancel();

 private:
  struct State;
  explicit Client(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_CLIENT_H_
