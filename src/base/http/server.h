// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_SERVER_H_
#define PERSEUS_HTTP_SERVER_H_

#include <atomic>
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

// An HTTP/1.1 server that knows nothing of jobs. It has routes, roles, TLS, limits, long polls and
// server-sent events. A few IO threads read and write and never block. Handlers run on a pool of
// worker threads and may block for a short time (for a database). A request that waits for news
// occupies no thread. docs/reference/http.md explains the limits.
namespace perseus::http {

class Connection;
class Exchange;  // One request and its answer; private to the engine.
class ServerCore;

// Server-sent events (the HTML standard, 9.2) to one client. The stream ends when the last pointer
// to it is destroyed, on Close(), and when the server stops; clients then reconnect. Thread-safe.
class EventStream {
 public:
  EventStream(std::weak_ptr<ServerCore> core, std::weak_ptr<Connection> connection,
              std::size_t max_queued_bytes);
  ~EventStream() { Close(); }
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  // Queues one event; never blocks. False: the client has disconnected, or the server now closes
  // the stream because the client reads too slowly (over ServerOptions::max_stream_bytes waiting).
  bool Send(std::string_view event_name, std::string_view data, std::string_view id = {});

  // The same for a text that Format() made, which many streams can share.
  bool Send(std::shared_ptr<const std::string> formatted);
  // The same for an event at the beginning of the stream. These events do not count for
  // max_stream_bytes, because the client has had no time to read them.
  bool SendFirst(std::string_view event_name, std::string_view data, std::string_view id = {});
  // Line ends in `data` are kept; those in `event_name` and `id` become spaces.
  static std::string Format(std::string_view event_name, std::string_view data,
                            std::string_view id = {});

  void Close();
  bool alive() const { return alive_.load(std::memory_order_relaxed); }
  // As Responder::OnGone.
  void OnGone(std::function<void()> gone);

 private:
  friend class Connection;
  // To be called by the connection: the stream has ended; `bytes` were sent.
  void MarkGone() { alive_.store(false, std::memory_order_relaxed); }
  void MarkSent(std::size_t bytes) { queued_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::weak_ptr<ServerCore> core_;
  std::weak_ptr<Connection> connection_;
  std::atomic<std::size_t> max_queued_bytes_;
  std::atomic<std::size_t> queued_bytes_ = 0;
  std::atomic<bool> alive_ = true;
};

// Answers one request, from any thread, at once or (for a long poll) later. Copies answer the same
// request. If the last copy is destroyed without an answer, the client gets 500. No function blocks
// or calls back into the caller, so callers may hold locks.
class Responder {
 public:
  explicit Responder(std::shared_ptr<Exchange> exchange);

  // Only the first answer is sent. False: there was one before, or the client has disconnected.
  bool Send(Response response) const;  // NOLINT(performance-unnecessary-value-param)

  // Parks the request: `response` is sent if there is no other answer within `seconds` (accurate to
  // a quarter of a second), and at once if the server stops. A parked request needs no thread and
  // no timer; docs/reference/http.md has its memory. If called again, the last call counts. Keep a
  // copy of the responder; without one the client gets 500.
  void AnswerAfter(double seconds, Response response) const;

  // Answers 200 with a stream of events. Null: it was answered before, or the client has
  // disconnected. An idle stream sends a comment every ServerOptions::heartbeat_seconds.
  std::shared_ptr<EventStream> StartEvents() const;

  // False once it is known that the client has disconnected.
  bool alive() const;

  // Whether a requested change should still be made. Call it right before the change. False: the
  // client closed its connection or its sending side, the request was answered, or this process was
  // stopped (SIGSTOP) after the request was sent, so that the client may have given up. Makes a
  // system call, which takes a microsecond. Thread-safe.
  bool wanted() const;

  // Calls `gone` once, on a worker, if the client disconnects before it is answered. A request has
  // one such function; a later call replaces it.
  void OnGone(std::function<void()> gone) const;

 private:
  std::shared_ptr<Exchange> exchange_;
};

// Handles a request. Called on worker threads, several at a time. `request` and `parameters` live
// until it returns. `parameters` has the values for the {names} of the pattern, in order and
// percent-decoded: valid UTF-8, never empty, never "." or "..", without '/' and control characters.
// That of {name*} is several such segments, joined by '/'; each may be empty.
// An exception gives 500. If this process was stopped (SIGSTOP) after a client sent a change (any
// method but GET), the handler is not called and the client gets 503.
using Handler = std::function<void(
    const Request& request, const std::vector<std::string>& parameters, Responder responder)>;

struct Route {
  std::string method;   // "GET" (answers HEAD, too), "POST", ...
  std::string pattern;  // "/api/v1/jobs/{id}/plan"; fixed segments win over {names}, these
                        // over a last {name*}, which takes one segment or more.
  Role at_least = Role::kOperate;             // kNone: without a token.
  std::optional<std::size_t> max_body_bytes;  // None: ServerOptions::max_body_bytes.
  // The answer may take long. A client that closes its sending side then counts as disconnected.
  bool long_poll = false;
  Handler handle;
  // The handler runs on the IO thread, before requests that wait for a worker, and must not block.
  // For health checks, which must succeed on a busy server.
  bool is_instant = false;
  // The handler itself checks tokens that are bound to jobs. Without this, such tokens are refused.
  bool takes_bound_tokens = false;
};

// One answered request, for a log. `path`: as requested (percent-encoded, cut to 200 bytes).
// `pattern`: that of the route; "" if there is none. `seconds`: from the last byte of the request
// to the last byte of the answer.
struct AccessRecord {
  std::string_view peer, method, path, pattern, token_name;
  int status = 0;
  std::uint64_t request_bytes = 0;   // Of the body.
  std::uint64_t response_bytes = 0;  // Head and body, as many bytes as were sent.
  double seconds = 0;
};

struct ServerOptions {
  // "127.0.0.1:7787", "[::1]:0" (a port that the system chooses), "localhost:7787",
  // "0.0.0.0:7787" or "unix:/run/perseus/server.sock".
  std::string listen = "127.0.0.1:7787";
  // For a Unix socket: the permissions of its file, and a function that decides who may connect.
  // `admit_peer` is called on an IO thread for each accepted socket and must not block. The server
  // keeps its result as long as the connection lives, so that admit_peer can count connections. If
  // it returns an error, the first request is answered with that message (kDenied: 403, others:
  // 503). Null: the file's permissions decide.
  int unix_mode = 0600;
  std::function<Result<std::shared_ptr<void>>(int socket)> admit_peer;
  std::string token_file;  // "": no tokens; only for loopback and Unix sockets.
  std::string tls_certificate_file, tls_key_file;  // PEM; both or none.

  // Limits. A request over a limit gets the given status, or its connection is closed.
  std::size_t max_connections = 12000;       // Beyond: 503 and closed.
  std::size_t max_header_bytes = 16 << 10;   // 431.
  std::size_t max_body_bytes = 1 << 20;      // 413; Route::max_body_bytes overrides it.
  std::size_t max_bodies_bytes = 128 << 20;  // Of all request bodies in memory. Beyond: 503.
  std::size_t max_stream_bytes = 256 << 10;  // Of events that wait for one client.
  double idle_seconds = 75;                  // Between requests on one connection.
  // Limits each of: the wait for the first byte of a new connection, the time from the first byte
  // of a request to the end of its headers, and the TLS handshake.
  double header_seconds = 10;
  double body_seconds = 30;  // For receiving a body.
  // A client must take a response or an event within write_seconds, plus the time that its bytes
  // take at this rate.
  double write_seconds = 30;
  double min_write_bytes_per_second = 128 << 10;
  double heartbeat_seconds = 15;  // Of event streams.

  // If set: until SetRoutes() is called, unknown paths are answered with this.
  std::function<Response()> starting;

  int io_threads = 1;
  int worker_threads = 4;

  // Called on IO threads, several at a time if io_threads > 1. Must not block.
  std::function<void(const AccessRecord&)> on_access;
  // For the log: gets one sentence about a handler that threw, connections that the system refuses,
  // and so on. Called from any thread, at most a few times a second.
  std::function<void(const std::string& sentence)> on_problem;
};

// Counts since the start, except those that end with `_now`.
struct Counters {
  std::uint64_t connections_now = 0, parked_now = 0, streams_now = 0;
  std::uint64_t body_bytes_now = 0;  // In memory.
  std::uint64_t accepted = 0, refused_connections = 0;
  std::uint64_t requests = 0, status_2xx = 0, status_3xx = 0, status_4xx = 0, status_5xx = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t timed_out = 0;        // Connections closed because the client was too slow.
  std::uint64_t dropped_streams = 0;  // Streams closed because the client read too slowly.
  std::uint64_t failed_handshakes = 0;
  std::uint64_t outdated = 0;  // Changes refused because the process was stopped meanwhile.
};

// The server. It raises the soft limit of open files (RLIMIT_NOFILE) as far as max_connections
// requires and the hard limit allows. Thread-safe, except Serve() and the destructor.
class Server {
 public:
  // Checks options, files and routes, and starts to listen. Connections wait in the system's queue
  // until Serve(). Refuses an address that other machines can reach if TLS or tokens are missing.
  static Result<std::unique_ptr<Server>> Open(ServerOptions options, std::vector<Route> routes);
  // Calls Stop(0).
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Starts to answer; returns at once. Call it once.
  void Serve();

  // Replaces the routes. Requests that were already matched to an old route still go there.
  Result<void> SetRoutes(std::vector<Route> routes);

  int port() const;         // 0 for a Unix socket.
  std::string url() const;  // "http://127.0.0.1:40112", "unix:/run/...": for ClientOptions.
  // As in the options, or less if the limit of open files is too low.
  std::size_t max_connections() const;

  // Reads the token file and the certificate again (for SIGHUP). On an error the old ones stay in
  // use. Open connections and streams are kept.
  Result<void> Reload();

  // Accepts no more connections; open ones continue.
  void StopAccepting();
  // Answers parked requests with the response of AnswerAfter(), ends streams, closes idle
  // connections, and waits up to `grace_seconds` for running requests and answers. Then closes the
  // remaining connections and joins all threads; that waits for running handlers. Must not be
  // called from a handler. Later calls do nothing.
  void Stop(double grace_seconds);

  // Runs `f` on a worker, soon or after `seconds`. Stop() drops functions that still wait.
  void Post(std::function<void()> f);
  void After(double seconds, std::function<void()> f);

  Counters counters() const;
  // When the TLS certificate expires, in seconds since 1970. None: it has none.
  std::optional<double> certificate_expires_at_seconds() const;

 private:
  explicit Server(std::shared_ptr<ServerCore> core);
  std::shared_ptr<ServerCore> core_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_SERVER_H_
