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

// What a caller of perseus/client.h holds: the hot path's two pointers, and the
// background threads. The threads own the state together with it, so that one
// that hangs in a driver may be left behind.
struct perseus_client {  // NOLINT(readability-identifier-naming): a name of C.
 public:
  static perseus::Result<std::unique_ptr<perseus_client>> Open(
      perseus::client::ClientSettings settings);
  ~perseus_client() { Stop(); }
  // Waits for its threads for settings().close_timeout_seconds at most. What the hot
  // path touches stays until the destructor. Once only: later calls do nothing.
  void Stop();
  perseus_client(const perseus_client&) = delete;
  perseus_client& operator=(const perseus_client&) = delete;

  // False: stopped, or in a child of the process that opened it.
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

  // Shared with the threads that use them.
  std::shared_ptr<perseus::http::Client> poll_http_;
  std::shared_ptr<perseus::http::Client> report_http_;
  Thread clock_;
  Thread poller_;
  Thread reporter_;
};

#endif  // PERSEUS_CLIENT_CLIENT_HANDLE_H_
