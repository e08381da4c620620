// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/client_handle.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/clock_thread.h"
#include "client/plan_poller.h"
#include "client/reporter.h"
#include "common/signal_hold.h"

namespace {

using perseus::Result;
using perseus::client::ClientSettings;
using perseus::client::SharedState;

// What the network threads get at least to leave, beside what the driver took.
constexpr std::int64_t kLeastLeaveNs = 500'000'000;

Result<std::shared_ptr<perseus::http::Client>> MakeHttp(const ClientSettings& settings) {
  perseus::http::ClientOptions options;
  options.url = settings.server;
  options.token = settings.token;
  options.ca_file = settings.ca_file;
  auto client = perseus::http::Client::Create(std::move(options));
  if (!client) return tl::unexpected(client.error());
  return std::make_shared<perseus::http::Client>(std::move(*client));
}

}  // namespace

perseus_client::perseus_client(std::shared_ptr<SharedState> shared)
    : page(&shared->page()), ticks(shared->ticks()), state(std::move(shared)) {}

perseus_client::Thread perseus_client::Start(const char* name, std::function<void()> run) {
  std::packaged_task<void()> task(std::move(run));
  Thread started;
  started.finished = task.get_future();
  started.thread = std::thread(std::move(task));
  pthread_setname_np(started.thread.native_handle(), name);
  return started;
}

void perseus_client::Finish(Thread* thread, std::int64_t deadline_ns) {
  if (!thread->thread.joinable()) return;
  const auto left =
      std::chrono::nanoseconds(std::max<std::int64_t>(0, deadline_ns - perseus::MonotonicNs()));
  if (thread->finished.wait_for(left) == std::future_status::ready) {
    thread->thread.join();
  } else {
    thread->thread.detach();  // It owns what it uses.
  }
}

Result<std::unique_ptr<perseus_client>> perseus_client::Open(ClientSettings settings) {
  Result<perseus::client::HotPagePointer> page = perseus::client::MapHotPage();
  if (!page) return tl::unexpected(page.error());
  std::shared_ptr<perseus::http::Client> poll_http;
  std::shared_ptr<perseus::http::Client> report_http;
  if (!settings.server.empty()) {
    auto first = MakeHttp(settings);
    if (!first) return tl::unexpected(first.error());
    auto second = MakeHttp(settings);
    if (!second) return tl::unexpected(second.error());
    poll_http = std::move(*first);
    report_http = std::move(*second);
  }
  auto state = std::make_shared<SharedState>(std::move(settings), std::move(*page));
  state->page().alive.store(perseus::client::kPageAlive, std::memory_order_relaxed);
  std::unique_ptr<perseus_client> client(new perseus_client(state));
  client->poll_http_ = poll_http;
  client->report_http_ = report_http;
  const perseus::SignalsBlocked blocked;
  client->clock_ =
      Start("perseus-clock", [state] { perseus::client::ClockThread(state.get()).Run(); });
  if (poll_http) {
    client->poller_ = Start("perseus-poll", [state, poll_http] {
      perseus::client::PlanPoller(state.get(), poll_http.get()).Run();
    });
    client->reporter_ = Start("perseus-report", [state, report_http] {
      perseus::client::Reporter(state.get(), report_http.get()).Run();
    });
  }
  return client;
}

void perseus_client::Stop() {
  std::uint32_t expected = perseus::client::kPageAlive;
  if (!page->alive.compare_exchange_strong(expected, perseus::client::kPageStopped)) return;
  const std::int64_t begin_ns = perseus::MonotonicNs();
  const std::int64_t deadline_ns =
      begin_ns + static_cast<std::int64_t>(state->settings().close_timeout_seconds * 1e9);
  state->StopClock();
  Finish(&clock_, deadline_ns);
  state->Stop();
  if (poll_http_) poll_http_->Cancel();
  const std::int64_t leave_ns = std::max(deadline_ns, perseus::MonotonicNs() + kLeastLeaveNs);
  Finish(&poller_, leave_ns);
  Finish(&reporter_, leave_ns);
  if (report_http_) report_http_->Cancel();
}
