// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_CLIENT_HANDLE_H_
#define PERSEUS_CLIENT_CLIENT_HANDLE_H_

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "client/settings.h"
#include "client/shared_state.h"
#include "client/ticks.h"
#include "http/client.h"
#include "perseus/client.h"
#include "perseus/result.h"

// The handle that a caller of perseus/client.h holds: two pointers for the hot path, and the
// background threads. The threads share ownership of the state, so that a thread that hangs in a
// driver can be left behind.
struct perseus_client {  // NOLINT(readability-identifier-naming): a name of C.
 public:
  static perseus::Result<std::unique_ptr<perseus_client>> Open(
      perseus::client::ClientSettings settings);
  ~perseus_client() { Stop(); }
  // Stops the threads and waits for them, at most for settings().close_timeout_seconds. The memory
  // that the hot path uses stays valid until the destructor. Later calls do nothing.
  void Stop();
  perseus_client(const perseus_client&) = delete;
  perseus_client& operator=(const perseus_client&) = delete;

  // False: stopped, or this is a forked child of the process that opened the client.
  bool alive() const {
    return page->alive.load(std::memory_order_relaxed) == perseus::client::kPageAlive;
  }
  bool in_child() const { return page->alive.load(std::memory_order_relaxed) == 0; }

  perseus::client::HotPage* const page;  // Of `state`.
  const perseus::client::TickSource ticks;
  const std::shared_ptr<perseus::client::SharedState> state;

 private:
  struct Thread {
    std::thread thread;
    std::future<void> finished;
  };

  explicit perseus_client(std::shared_ptr<perseus::client::SharedState> shared);
  static Thread Start(const char* name, std::function<void()> run);
  static void Finish(Thread* thread, std::int64_t deadline_ns);

  // Shared with the threads.
  std::shared_ptr<perseus::http::Client> poll_http_;
  std::shared_ptr<perseus::http::Client> report_http_;
  Thread clock_;
  Thread poller_;
  Thread reporter_;
};

#endif  // PERSEUS_CLIENT_CLIENT_HANDLE_H_
