// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_SERVER_H_
#define PERSEUS_HTTP_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"
#include "perseus/result.h"

// An HTTP/1.1 server that knows nothing of jobs: routes, roles, TLS, limits, long
// polls, server-sent events. Reading and writing is done by a few threads and never
// blocks; handlers run on a pool of workers and may block for a short while (a
// database). A request that waits for news holds no thread. docs/reference/http.md has the
// limits and what they defend against.
namespace perseus::http {

class Exchange;         // One request and its answer; private to the engine.
class EventStreamCore;  // Likewise, of a stream.
class ServerCore;

// Server-sent events (the HTML standard, 9.2) to one client. Thread-safe. The
// stream ends, as it should for a client that reconnects, when the last pointer to
// it is dropped, on Close() and when the server stops.
class EventStream {
 public:
  explicit EventStream(std::shared_ptr<EventStreamCore> core);
  ~EventStream();
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  // Queues one event; never blocks. False: the client is gone, or was dropped just
  // now as it reads too slowly (more than ServerOptions::max_stream_bytes wait).
  bool Send(std::string_view event_name, std::string_view data, std::string_view id = {});

  // Likewise, what Format() made: one text for many listeners.
  bool Send(std::shared_ptr<const std::string> formatted);
  // Likewise, an event that the stream begins with. The client may lag behind by all of these and
  // max_stream_bytes more: it has had no time to read them.
  bool SendFirst(std::string_view event_name, std::string_view data, std::string_view id = {});
  // Line ends in `data` are kept; those in `event_name` and `id` become spaces.
  static std::string Format(std::string_view event_name, std::string_view data,
                            std::string_view id = {});

  void Close();
  bool alive() const;
  // As Responder::OnGone.
  void OnGone(std::function<void()> gone);

 private:
  std::shared_ptr<EventStreamCore> core_;
};

// Answers one request, once, from any thread, now or (for a long poll) later. A
// handle: copies answer the same request. When the last copy is dropped without
// an answer, the client gets 500. Nothing here blocks or calls back into the
// caller, so all may be called under the caller's locks.
class Responder {
 public:
  explicit Responder(std::shared_ptr<Exchange> exchange);

  // The first answer counts. False: another one was first, or the client is gone.
  bool Send(Response response) const;  // NOLINT(performance-unnecessary-value-param)

  // Parks the request: this is the answer if none comes within `seconds` (to a
  // quarter of a second), and at once when the server stops. A parked request costs
  // no thread and no timer; see docs/reference/http.md for its memory. Called again, the last
  // call counts. Keep a copy of the responder, or the request is not parked but dropped.
  void AnswerAfter(double seconds, Response response) const;

  // Answers 200 with a stream of events. Null: answered before, or the client is gone.
  // Idle streams carry a comment every ServerOptions::heartbeat_seconds.
  std::shared_ptr<EventStream> StartEvents() const;

  // False once it is known that the client is gone.
  bool alive() const;

  // Whether a change that was asked for should still be made; to be asked right before it
  // is. False: the client closed its connection (or just its sending side: they look the
  // same), it was answered, or this process was stopped after the request was sent, so that
  // the client may long have given up. Thread-safe; asks the system, which takes a microsecond.
  bool wanted() const;

  // Calls `gone` once, on a worker, when the client goes away before it was answered,
  // at any time after this call; not after an answer. One function a request: a later
  // one replaces it.
  void OnGone(std::function<void()> gone) const;

 private:
  std::shared_ptr<Exchange> exchange_;
};

// Called on a worker; several at a time. A change (any method but GET) that was sent before
// this process was stopped for a while does not come: it is answered 503. `request` and
// `parameters` live until it returns. `parameters` are what stands for the {names} of the pattern,
// in order, percent-decoded: valid UTF-8, never empty, without '/' and control characters, never
// "." or "..". An exception becomes a 500.
using Handler = std::function<void(
    const Request& request, const std::vector<std::string>& parameters, Responder responder)>;

struct Route {
  std::string method;              // "GET" (answers HEAD, too), "POST", ...
  std::string pattern;             // "/api/v1/jobs/{id}/plan"; fixed segments win over {names}.
  Role at_least = Role::kOperate;  // kNone: without a token.
  std::optional<std::size_t> max_body_bytes;  // None: ServerOptions::max_body_bytes.
  // The answer may take long: a client that closes its sending side is taken to be gone.
  bool long_poll = false;
  Handler handle;
  // Runs on the IO thread instead, ahead of requests that wait for a worker; must not
  // block at all. For a health check: a busy server is alive.
  bool is_instant = false;
  // The handler keeps tokens that are bound to jobs to theirs; others are not let in.
  bool takes_bound_tokens = false;
};

// One answered request, for a log. `path` is as it was asked (percent-encoded, cut to
// 200 bytes), `pattern` that of its route ("" where none fits), `seconds` from the
// request's last byte to the answer's.
struct AccessRecord {
  std::string_view peer, method, path, pattern, token_name;
  int status = 0;
  std::uint64_t request_bytes = 0;   // Of the body.
  std::uint64_t response_bytes = 0;  // Head and body, as far as they were sent.
  double seconds = 0;
};

struct ServerOptions {
  // "127.0.0.1:7787", "[::1]:0" (a port that the system chooses), "localhost:7787",
  // "0.0.0.0:7787" or "unix:/run/perseus/server.sock".
  std::string listen = "127.0.0.1:7787";
  // Of a Unix socket: the mode of its file, and who may connect. `admit_peer` is asked
  // on an IO thread about each socket that was accepted, and must not block. What it
  // returns is kept as long as the connection, so that it can count. Its error refuses:
  // the first request is answered with that sentence (kDenied: 403, others: 503). Null:
  // whoever may open the file.
  int unix_mode = 0600;
  std::function<Result<std::shared_ptr<void>>(int socket)> admit_peer;
  std::string token_file;  // "": no tokens; only for loopback and Unix sockets.
  std::string tls_certificate_file, tls_key_file;  // PEM; both or none.

  // Limits. What is over one is answered with a sentence, or dropped.
  std::size_t max_connections = 12000;       // Beyond: 503 and closed.
  std::size_t max_header_bytes = 16 << 10;   // 431.
  std::size_t max_body_bytes = 1 << 20;      // 413; Route::max_body_bytes overrides it.
  std::size_t max_bodies_bytes = 128 << 20;  // Of all bodies in memory: 503 beyond.
  std::size_t max_stream_bytes = 256 << 10;  // That wait for one listener.
  double idle_seconds = 75;                  // Between requests on one connection.
  // For the first byte of a connection's first request; from the first byte of a request to
  // its headers' end; for TLS' handshake.
  double header_seconds = 10;
  double body_seconds = 30;                       // For the body.
  double write_seconds = 30;                      // For the client to take a response, or an event;
  double min_write_bytes_per_second = 128 << 10;  // plus its bytes at this speed.
  double heartbeat_seconds = 15;                  // Of event streams.

  // Not empty: until SetRoutes(), a path without a route is answered 503 with this sentence.
  std::string starting;

  int io_threads = 1;
  int worker_threads = 4;

  // Called on IO threads, several at a time where io_threads is above 1: must not block.
  std::function<void(const AccessRecord&)> on_access;
  // For the log: one sentence on a handler that threw, on connections that the system
  // refuses, and so on. From any thread, at most a few a second.
  std::function<void(const std::string& sentence)> on_problem;
};

// Since the start, but for those that say "now".
struct Counters {
  std::uint64_t connections_now = 0, parked_now = 0, streams_now = 0;
  std::uint64_t queued_now = 0;      // Requests that wait for a worker.
  std::uint64_t body_bytes_now = 0;  // In memory.
  std::uint64_t accepted = 0, refused_connections = 0;
  std::uint64_t requests = 0, status_2xx = 0, status_3xx = 0, status_4xx = 0, status_5xx = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t timed_out = 0;        // Closed as too slow in sending or reading.
  std::uint64_t dropped_streams = 0;  // Listeners that read too slowly.
  std::uint64_t failed_handshakes = 0;
  std::uint64_t outdated = 0;  // Changes refused as they were asked for before a stop.
};

// Thread-safe, but for Serve() and the destructor. It raises the soft limit of open
// files (RLIMIT_NOFILE) as far as max_connections needs it and the hard limit allows.
class Server {
 public:
  // Checks options, files and routes, and listens: connections wait in the system's
  // queue until Serve(). Refuses, with a sentence that says what to set, an address
  // that others can reach without TLS and tokens.
  static Result<std::unique_ptr<Server>> Open(ServerOptions options, std::vector<Route> routes);
  // As Stop(0).
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Starts to answer; returns at once. Call it once.
  void Serve();

  // Answers with these routes from now on. A request that was found to be another route's
  // goes there.
  Result<void> SetRoutes(std::vector<Route> routes);

  int port() const;         // 0 for a Unix socket.
  std::string url() const;  // "http://127.0.0.1:40112", "unix:/run/...": for ClientOptions.
  // As asked for, or fewer where the limit of open files allows no more.
  std::size_t max_connections() const;

  // Reads the token file and the certificate again, as on SIGHUP. On an error all
  // stays as it was. Connections and streams that are open are kept.
  Result<void> Reload();

  // Takes no more connections; those that are open go on.
  void StopAccepting();
  // Answers parked requests with AnswerAfter's answer, ends streams, closes idle
  // connections, waits up to `grace_seconds` for requests that run and answers that are
  // on their way, then closes what is left and joins all threads (a handler that still
  // runs is waited for). Not from a handler. Later calls do nothing.
  void Stop(double grace_seconds);

  // Runs `f` on a worker, soon or after `seconds`. What is still waiting at Stop()
  // is dropped.
  void Post(std::function<void()> f);
  void After(double seconds, std::function<void()> f);

  Counters counters() const;

 private:
  explicit Server(std::shared_ptr<ServerCore> core);
  std::shared_ptr<ServerCore> core_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_SERVER_H_
