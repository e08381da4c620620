// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "client/clock_caller.h"
#include "client/rank_plan.h"
#include "client/shared_state.h"
#include "common/c_boundary.h"
#include "common/signal_hold.h"
#include "common/tree.h"
#include "http/client.h"
#include "perseus/client.h"
#include "perseus/computation.h"
#include "perseus/result.h"

// The borders of the library: nothing is thrown across them, and every pointer
// of the caller is copied before it returns.
namespace {

namespace c_boundary = perseus::c_boundary;
namespace measure = perseus::measure;
using perseus::InvalidInput;
using perseus::Result;
using perseus::client::ClientSettings;
using perseus::client::Event;
using perseus::client::EventKind;

// The least time for the network threads to end, after the clock thread.
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

// The handle that a caller of perseus/client.h holds: two pointers for the hot path, and the
// background threads. The threads share ownership of the state, so that a thread that hangs in a
// driver can be left behind.
struct perseus_client {  // NOLINT(readability-identifier-naming): a name of C.
 public:
  static perseus::Result<std::unique_ptr<perseus_client>> Open(
      perseus::client::ClientSettings settings) {
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
    auto state =
        std::make_shared<perseus::client::SharedState>(std::move(settings), std::move(*page));
    state->page().alive.store(perseus::client::kPageAlive, std::memory_order_relaxed);
    std::unique_ptr<perseus_client> client(new perseus_client(state));
    client->poll_http_ = poll_http;
    client->report_http_ = report_http;
    const perseus::SignalsBlocked blocked;
    client->clock_ =
        Start("perseus-clock", [state] { perseus::client::RunClockThread(state.get()); });
    if (poll_http) {
      client->poller_ = Start("perseus-poll", [state, poll_http] {
        perseus::client::RunPlanPoller(state.get(), poll_http.get());
      });
      client->reporter_ = Start("perseus-report", [state, report_http] {
        perseus::client::RunReporter(state.get(), report_http.get());
      });
    }
    return client;
  }

  ~perseus_client() { Stop(); }
  // Stops the threads and waits for them, at most for settings().close_timeout_seconds. The memory
  // that the hot path uses stays valid until the destructor. Later calls do nothing.
  void Stop() {
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

  explicit perseus_client(std::shared_ptr<perseus::client::SharedState> shared)
      : page(&shared->page()), ticks(shared->ticks()), state(std::move(shared)) {}

  static Thread Start(const char* name, std::function<void()> run) {
    std::packaged_task<void()> task(std::move(run));
    Thread started;
    started.finished = task.get_future();
    started.thread = std::thread(std::move(task));
    pthread_setname_np(started.thread.native_handle(), name);
    return started;
  }

  static void Finish(Thread* thread, std::int64_t deadline_ns) {
    if (!thread->thread.joinable()) return;
    const auto left =
        std::chrono::nanoseconds(std::max<std::int64_t>(0, deadline_ns - perseus::MonotonicNs()));
    if (thread->finished.wait_for(left) == std::future_status::ready) {
      thread->thread.join();
    } else {
      thread->thread.detach();  // It owns what it uses.
    }
  }

  // Shared with the threads.
  std::shared_ptr<perseus::http::Client> poll_http_;
  std::shared_ptr<perseus::http::Client> report_http_;
  Thread clock_;
  Thread poller_;
  Thread reporter_;
};

namespace {

static_assert(static_cast<int>(perseus::ComputationType::kForward) == PERSEUS_FORWARD);
static_assert(static_cast<int>(perseus::ComputationType::kBackward) == PERSEUS_BACKWARD);
static_assert(static_cast<int>(perseus::ComputationType::kBackwardInput) == PERSEUS_BACKWARD_INPUT);
static_assert(static_cast<int>(perseus::ComputationType::kBackwardWeight) ==
              PERSEUS_BACKWARD_WEIGHT);
static_assert(static_cast<int>(perseus::ComputationType::kRecompute) == PERSEUS_RECOMPUTE);
static_assert(static_cast<int>(perseus::client::Level::kOff) == PERSEUS_LEVEL_OFF);

constexpr std::uint32_t kKnownFlags =
    PERSEUS_SHADOW | PERSEUS_PROFILE | PERSEUS_STRICT | PERSEUS_NO_AHEAD;
constexpr double kMostSeconds = 86'400;

std::string Text(const char* text) { return text == nullptr ? std::string() : text; }

// As snprintf: what fits, with its end, and the full length.
std::size_t CopyText(std::string_view text, char* to, std::size_t size) {
  if (to != nullptr && size > 0) {
    const std::size_t length = std::min(text.size(), size - 1);
    std::memcpy(to, text.data(), length);
    to[length] = '\0';
  }
  return text.size();
}

std::string HostName() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// Another one each time, on whichever machine.
std::string RandomId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

Result<double> NumberOption(const char* name, double value, double most) {
  if (value >= 0 && value <= most) return value;
  return InvalidInput(fmt::format("{} is {}; expected a number from 0 to {}", name, value, most));
}

Result<int> CountOption(const char* name, std::int32_t value, std::int32_t least) {
  if (value >= least) return value;
  return InvalidInput(fmt::format(
      "{} is {}; expected at least {} (perseus_client_options_init() sets the defaults)", name,
      value, least));
}

perseus_client_options Defaults() {
  perseus_client_options options;
  PERSEUS_INIT(&options);
  options.profile_iterations = 5;
  options.min_interval_seconds = 0.010;
  options.max_early_loss = 0.05;
  options.max_overhead = 0.01;
  options.report_interval_seconds = 5;
  options.open_timeout_seconds = 30;
  options.close_timeout_seconds = 2;
  options.profile_stride = 1;
  options.profile_settling = 1;
  return options;
}

Result<void> CheckJob(const ClientSettings& settings) {
  if (settings.server.empty()) return {};
  if (settings.job_id.empty() == settings.job_json.empty()) {
    return InvalidInput("give either job_id or job_json with a server");
  }
  if (settings.job_json.empty()) return {};
  const Result<perseus::TreeNode> job = perseus::ParseJsonTree(settings.job_json, "job_json");
  if (!job) return tl::unexpected(job.error());
  return {};
}

Result<ClientSettings> ReadOptions(const perseus_client_options& options) {
  if ((options.flags & ~kKnownFlags) != 0) return InvalidInput("unknown bits in flags");
  ClientSettings settings;
  settings.server = Text(options.server);
  settings.token = Text(options.token);
  settings.ca_file = Text(options.ca_file);
  settings.job_id = Text(options.job_id);
  settings.job_json = Text(options.job_json);
  settings.rank = options.rank;
  settings.dp_rank = options.dp_rank;
  settings.pp_rank = options.pp_rank;
  settings.tp_rank = options.tp_rank;
  for (const int rank : {options.rank, options.dp_rank, options.pp_rank, options.tp_rank}) {
    if (rank < 0) return InvalidInput("ranks count from 0");
  }
  settings.device = Text(options.device);
  settings.gpu_uuid = Text(options.gpu_uuid);
  settings.gpu_index = options.gpu_index;
  settings.node = options.node == nullptr ? HostName() : options.node;
  settings.client_id = RandomId();
  settings.process = fmt::format("process {} on {}", getpid(), settings.node);
  settings.shadow = (options.flags & PERSEUS_SHADOW) != 0;
  settings.profile = (options.flags & PERSEUS_PROFILE) != 0;
  settings.follower.ahead = (options.flags & PERSEUS_NO_AHEAD) == 0;
  settings.sweep.order.coarse = options.profile_coarse != 0;
  settings.sweep.order.shuffle = options.profile_seed != 0;
  settings.sweep.order.seed = static_cast<std::uint64_t>(options.profile_seed);
  const auto count = [&](const char* name, std::int32_t value, int least, int* to) -> Result<void> {
    const auto good = CountOption(name, value, least);
    if (!good) return tl::unexpected(good.error());
    *to = *good;
    return {};
  };
  const auto number = [&](const char* name, double value, double most, double* to) -> Result<void> {
    const auto good = NumberOption(name, value, most);
    if (!good) return tl::unexpected(good.error());
    *to = *good;
    return {};
  };
  measure::SweepSettings& sweep = settings.sweep;
  double interval = 0;
  for (const Result<void>& good :
       {count("profile_iterations", options.profile_iterations, 1, &sweep.iterations),
        count("profile_settling", options.profile_settling, 1, &sweep.settling),
        count("profile_stride", options.profile_stride, 1, &sweep.order.stride),
        count("min_profile_mhz", options.min_profile_mhz, 0, &sweep.order.least_mhz),
        count("gpu_index", options.gpu_index, 0, &settings.gpu_index),
        number("min_interval_seconds", options.min_interval_seconds, kMostSeconds, &interval),
        number("max_early_loss", options.max_early_loss, 1, &settings.follower.max_early_loss),
        number("max_overhead", options.max_overhead, 1, &settings.follower.max_overhead),
        number("report_interval_seconds", options.report_interval_seconds, kMostSeconds,
               &settings.report_interval_seconds),
        number("close_timeout_seconds", options.close_timeout_seconds, kMostSeconds,
               &settings.close_timeout_seconds)}) {
    if (!good) return tl::unexpected(good.error());
  }
  settings.follower.min_interval_ns = std::llround(interval * 1e9);
  if (auto good = perseus::client::CheckDeviceSpec(settings.device); !good) {
    return tl::unexpected(good.error());
  }
  if (const auto job = CheckJob(settings); !job) return tl::unexpected(job.error());
  return settings;
}

Result<std::unique_ptr<perseus_client>> OpenClient(const perseus_client_options& options) {
  Result<ClientSettings> settings = ReadOptions(options);
  if (!settings) return tl::unexpected(settings.error());
  const auto patience =
      NumberOption("open_timeout_seconds", options.open_timeout_seconds, kMostSeconds);
  if (!patience) return tl::unexpected(patience.error());
  Result<std::unique_ptr<perseus_client>> client = perseus_client::Open(std::move(*settings));
  if (!client || (options.flags & PERSEUS_STRICT) == 0) return client;
  if (const Result<void> ready = (*client)->state->WaitUntilReady(*patience); !ready) {
    return tl::unexpected(ready.error());
  }
  return client;
}

bool IsAlive(const perseus_client* client) { return client != nullptr && client->alive(); }

// `work` with nothing thrown out of it.
template <typename Work, typename Otherwise>
auto Guarded(Otherwise otherwise, Work work) noexcept -> Otherwise {
  try {
    return work();
  } catch (...) {
    return otherwise;
  }
}

perseus_status Closed(char** message) {
  static_cast<void>(c_boundary::FailInvalid(
      "there is no client, it is closed, or it is of the parent process", message));
  return PERSEUS_CLOSED;
}

// Refuses a call that returns no status: last_error() says why.
int Refuse(perseus_client* client, const std::string& sentence) {
  client->state->Complain(sentence);
  return 0;
}

bool IsInstruction(perseus_client* client, perseus_instruction type) {
  if (static_cast<unsigned>(type) < perseus::kNumComputationTypes) return true;
  Guarded(0, [&] {
    return Refuse(client, fmt::format("there is no instruction {}: expected PERSEUS_FORWARD (0) to "
                                      "PERSEUS_RECOMPUTE (4)",
                                      static_cast<int>(type)));
  });
  return false;
}

// Seconds since a step's begin; a little before it where two clocks are compared.
bool IsTime(double seconds) { return seconds > -kMostSeconds && seconds < kMostSeconds; }

Event EventOf(const perseus_client* client, EventKind kind, std::int64_t value = 0) {
  return {.kind = kind, .value = value, .ticks = client->ticks.Now()};
}

void Push(perseus_client* client, EventKind kind, perseus_instruction type, std::int32_t stage,
          std::int32_t microbatch) {
  if (!IsAlive(client) || !IsInstruction(client, type)) return;
  client->page->ring.Push({.kind = kind,
                           .type = static_cast<perseus::ComputationType>(type),
                           .stage = stage,
                           .microbatch = microbatch,
                           .ticks = client->ticks.Now()});
}

}  // namespace

int perseus_client_abi_version(void) { return PERSEUS_CLIENT_ABI_VERSION; }

void perseus_client_free_text(char* text) { std::free(text); }

void perseus_client_options_init(perseus_client_options* options, size_t struct_size) {
  if (options == nullptr || struct_size < sizeof(options->struct_size)) return;
  perseus_client_options known = Defaults();
  known.struct_size = static_cast<std::uint32_t>(struct_size);
  std::memset(options, 0, struct_size);
  std::memcpy(options, &known, std::min(struct_size, sizeof(known)));
}

perseus_status perseus_client_open(const perseus_client_options* options, perseus_client** client,
                                   char** message) {
  return c_boundary::Guarded(message, [&] {
    if (client == nullptr) {
      return c_boundary::FailInvalid("there is no place for the client", message);
    }
    *client = nullptr;
    const auto known = c_boundary::CopyIn("perseus_client_options", options, Defaults());
    if (!known) return c_boundary::Fail(known.error(), message);
    Result<std::unique_ptr<perseus_client>> opened = OpenClient(*known);
    if (!opened) {
      const perseus_status status = c_boundary::Fail(opened.error(), message);
      return status == PERSEUS_INVALID ? PERSEUS_INVALID : PERSEUS_UNAVAILABLE;
    }
    *client = opened->release();
    return PERSEUS_OK;
  });
}

void perseus_step_begin(perseus_client* client, int64_t iteration) {
  if (!IsAlive(client)) return;
  if (iteration < 0) {
    Guarded(0, [&] {
      return Refuse(client, fmt::format("perseus_step_begin: the iteration is {}; count from 0, or "
                                        "from any number above",
                                        iteration));
    });
    // Later events belong to no iteration.
    perseus_step_abandon(client);
    return;
  }
  Event event;
  event.kind = EventKind::kStepBegin;
  // Before the trainer asks: what it is told is at least as new.
  if (client->page->listens.load(std::memory_order_relaxed) == 0) {
    event.stage = perseus::client::kUnheard;
  }
  event.value = iteration;
  event.ticks = client->ticks.Now();
  client->page->PushAndWake(event);
}

void perseus_step_end(perseus_client* client, int64_t tokens) {
  if (!IsAlive(client)) return;
  client->page->ring.Push(EventOf(client, EventKind::kStepEnd, tokens));
}

void perseus_instruction_begin(perseus_client* client, perseus_instruction type, int32_t stage,
                               int32_t microbatch) {
  Push(client, EventKind::kBegin, type, stage, microbatch);
}

void perseus_instruction_end(perseus_client* client, perseus_instruction type, int32_t stage,
                             int32_t microbatch) {
  Push(client, EventKind::kEnd, type, stage, microbatch);
}

void perseus_step_busy(perseus_client* client, perseus_instruction type, double seconds) {
  if (!IsAlive(client) || !IsInstruction(client, type)) return;
  if (!(seconds >= 0) || seconds > kMostSeconds) return;
  Event event = EventOf(client, EventKind::kBusy, static_cast<std::int64_t>(seconds * 1e9));
  event.type = static_cast<perseus::ComputationType>(type);
  client->page->ring.Push(event);
}

void perseus_instruction_work(perseus_client* client, double work) {
  if (!IsAlive(client)) return;
  const double known = work > 0 && std::isfinite(work) ? work : 0.0;
  client->page->ring.Push(EventOf(client, EventKind::kWork, std::bit_cast<std::int64_t>(known)));
}

void perseus_step_abandon(perseus_client* client) {
  if (!IsAlive(client)) return;
  client->page->ring.Push(EventOf(client, EventKind::kStepAbandon));
}

void perseus_step_times(perseus_client* client, int64_t iteration, const double* begin_seconds,
                        const double* end_seconds, size_t count) {
  if (!IsAlive(client)) return;
  Guarded(0, [&] {
    if (count > perseus::client::kMostStepTimes) {
      return Refuse(client, fmt::format("perseus_step_times: {} computations; at most {} are taken",
                                        count, perseus::client::kMostStepTimes));
    }
    if (count > 0 && (begin_seconds == nullptr || end_seconds == nullptr)) {
      return Refuse(client, "perseus_step_times: begins or ends are missing");
    }
    perseus::client::StepTimes times;
    times.iteration = iteration;
    times.computations.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (!IsTime(begin_seconds[i]) || !IsTime(end_seconds[i])) {
        return Refuse(client, fmt::format("perseus_step_times: computation {} is from {} to {} s, "
                                          "which are no times of a step",
                                          i, begin_seconds[i], end_seconds[i]));
      }
      times.computations.push_back(
          {std::llround(begin_seconds[i] * 1e9), std::llround(end_seconds[i] * 1e9)});
    }
    client->state->AddStepTimes(std::move(times));
    return 0;
  });
}

perseus_status perseus_step_plan(perseus_client* client, int64_t iteration,
                                 const perseus_step_row* rows, size_t row_size, size_t count,
                                 char** message) {
  return c_boundary::Guarded(message, [&] {
    if (!IsAlive(client)) return Closed(message);
    auto plan = perseus::client::StepPlanOf(iteration, rows, row_size, count);
    if (!plan) return c_boundary::Fail(plan.error(), message);
    client->state->AddStepPlan(*std::move(plan));
    return PERSEUS_OK;
  });
}

perseus_status perseus_straggler_set(perseus_client* client, int32_t rank, double delay_seconds,
                                     double degree, char** message) {
  return c_boundary::Guarded(message, [&] {
    if (!IsAlive(client)) return Closed(message);
    if (rank < 0) {
      return c_boundary::FailInvalid(fmt::format("rank {}: ranks count from 0", rank), message);
    }
    if (!(delay_seconds >= 0) || !std::isfinite(delay_seconds) || !(degree > 0) ||
        !std::isfinite(degree)) {
      return c_boundary::FailInvalid(
          fmt::format(
              "a straggler in {} s, {} times as slow; expected numbers, and a degree above 0",
              delay_seconds, degree),
          message);
    }
    client->state->outbox().Add(perseus::client::StragglerNotice{
        .rank = rank, .delay_seconds = delay_seconds, .degree = degree});
    return PERSEUS_OK;
  });
}

perseus_status perseus_straggler_clear(perseus_client* client, int32_t rank, char** message) {
  return perseus_straggler_set(client, rank, 0, 1, message);
}

perseus_status perseus_client_get_stats(perseus_client* client, perseus_client_stats* stats,
                                        char** message) {
  return c_boundary::Guarded(message, [&] {
    if (!IsAlive(client)) return Closed(message);
    const auto given = c_boundary::CopyOut("perseus_client_stats", client->state->stats(), stats);
    return given ? PERSEUS_OK : c_boundary::Fail(given.error(), message);
  });
}

perseus_state perseus_client_get_state(perseus_client* client) {
  if (!IsAlive(client)) return PERSEUS_STATE_CLOSED;
  return Guarded(PERSEUS_STATE_CLOSED,
                 [&] { return static_cast<perseus_state>(client->state->stats().state); });
}

int perseus_client_listens(perseus_client* client) {
  return IsAlive(client) ? static_cast<int>(client->page->listens.load(std::memory_order_relaxed))
                         : 0;
}

uint32_t perseus_client_problems(perseus_client* client) {
  return IsAlive(client) ? client->page->problems.load(std::memory_order_relaxed) : 0;
}

int64_t perseus_client_plan_version(perseus_client* client) {
  if (!IsAlive(client)) return -1;
  return Guarded(std::int64_t{-1}, [&] { return client->state->stats().plan_version; });
}

size_t perseus_client_job_id(perseus_client* client, char* text, size_t size) {
  CopyText("", text, size);
  if (!IsAlive(client)) return 0;
  return Guarded(std::size_t{0}, [&] { return CopyText(client->state->job_id(), text, size); });
}

size_t perseus_client_last_error(perseus_client* client, char* text, size_t size) {
  CopyText("", text, size);
  if (!IsAlive(client)) return 0;
  return Guarded(std::size_t{0}, [&] { return CopyText(client->state->last_error(), text, size); });
}

void perseus_client_stop(perseus_client* client) {
  if (!IsAlive(client)) return;
  Guarded(0, [&] {
    client->Stop();
    return 0;
  });
}

void perseus_client_close(perseus_client* client) {
  // In a child the threads that the destructor would wait for do not exist.
  if (client == nullptr || client->in_child()) return;
  Guarded(0, [&] {
    delete client;  // NOLINT(cppcoreguidelines-owning-memory): handed out as C does.
    return 0;
  });
}
