// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "client/client_handle.h"
#include "client/settings.h"
#include "client/step_plan.h"
#include "common/tree.h"
#include "perseus/client.h"
#include "perseus/computation.h"

// The borders of the library: nothing is thrown across them, and every pointer
// of the caller is copied before it returns.
namespace {

using perseus::ErrorCode;
using perseus::InvalidInput;
using perseus::Result;
using perseus::client::ClientSettings;
using perseus::client::Event;
using perseus::client::EventKind;

static_assert(static_cast<int>(perseus::ComputationType::kForward) == PERSEUS_FORWARD);
static_assert(static_cast<int>(perseus::ComputationType::kBackward) == PERSEUS_BACKWARD);
static_assert(static_cast<int>(perseus::ComputationType::kBackwardInput) == PERSEUS_BACKWARD_INPUT);
static_assert(static_cast<int>(perseus::ComputationType::kBackwardWeight) ==
              PERSEUS_BACKWARD_WEIGHT);
static_assert(static_cast<int>(perseus::client::Level::kOff) == PERSEUS_LEVEL_OFF);

constexpr std::uint32_t kKnownFlags =
    PERSEUS_SHADOW | PERSEUS_PROFILE | PERSEUS_STRICT | PERSEUS_NO_AHEAD;
constexpr double kDefaultOpenSeconds = 30;
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

// 0 stands for the default.
Result<double> NumberOption(const char* name, double value, double otherwise, double most) {
  if (!(value >= 0) || value > most) {
    return InvalidInput(std::string(name) + " must be 0 (the default) to " + std::to_string(most));
  }
  return value == 0 ? otherwise : value;
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
  settings.shadow = (options.flags & PERSEUS_SHADOW) != 0;
  settings.profile = (options.flags & PERSEUS_PROFILE) != 0;
  settings.follower.ahead = (options.flags & PERSEUS_NO_AHEAD) == 0;
  settings.sweep.iterations = options.profile_iterations > 0 ? options.profile_iterations : 5;
  settings.sweep.settling = options.profile_settling > 0 ? options.profile_settling : 1;
  settings.sweep.order.stride = options.profile_stride > 0 ? options.profile_stride : 1;
  settings.sweep.order.least_mhz = options.min_profile_mhz;
  settings.sweep.order.coarse = options.profile_coarse != 0;
  settings.sweep.order.shuffle = options.profile_seed != 0;
  settings.sweep.order.seed = static_cast<std::uint64_t>(options.profile_seed);

  const auto interval =
      NumberOption("min_interval_seconds", options.min_interval_seconds, 0.010, kMostSeconds);
  if (!interval) return tl::unexpected(interval.error());
  settings.follower.min_interval_ns = std::llround(*interval * 1e9);
  const auto loss = NumberOption("max_early_loss", options.max_early_loss, 0.05, 1);
  if (!loss) return tl::unexpected(loss.error());
  settings.follower.max_early_loss = *loss;
  const auto overhead = NumberOption("max_overhead", options.max_overhead, 0.01, 1);
  if (!overhead) return tl::unexpected(overhead.error());
  settings.follower.max_overhead = *overhead;
  const auto report =
      NumberOption("report_interval_seconds", options.report_interval_seconds, 5, kMostSeconds);
  if (!report) return tl::unexpected(report.error());
  settings.report_interval_seconds = *report;
  const auto close =
      NumberOption("close_timeout_seconds", options.close_timeout_seconds, 2, kMostSeconds);
  if (!close) return tl::unexpected(close.error());
  settings.close_timeout_seconds = *close;
  if (const auto job = CheckJob(settings); !job) return tl::unexpected(job.error());
  return settings;
}

Result<std::unique_ptr<perseus_client>> OpenClient(const perseus_client_options& options) {
  Result<ClientSettings> settings = ReadOptions(options);
  if (!settings) return tl::unexpected(settings.error());
  const auto patience = NumberOption("open_timeout_seconds", options.open_timeout_seconds,
                                     kDefaultOpenSeconds, kMostSeconds);
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

bool IsInstruction(perseus_instruction type) {
  return static_cast<unsigned>(type) < perseus::kNumComputationTypes;
}

// Seconds since a step's begin; a little before it where two clocks are compared.
bool IsTime(double seconds) { return seconds > -kMostSeconds && seconds < kMostSeconds; }

void Push(perseus_client* client, EventKind kind, perseus_instruction type, std::int32_t stage,
          std::int32_t microbatch) {
  if (!IsAlive(client) || !IsInstruction(type)) return;
  client->page->ring.Push({.kind = kind,
                           .type = static_cast<perseus::ComputationType>(type),
                           .stage = stage,
                           .microbatch = microbatch,
                           .value = 0,
                           .ticks = client->ticks.Now()});
}

}  // namespace

int perseus_client_abi_version(void) { return PERSEUS_CLIENT_ABI_VERSION; }

void perseus_client_options_init(perseus_client_options* options, size_t struct_size) {
  if (options == nullptr || struct_size < sizeof(options->struct_size)) return;
  std::memset(options, 0, struct_size);
  options->struct_size = static_cast<std::uint32_t>(struct_size);
}

perseus_status perseus_client_open(const perseus_client_options* options, perseus_client** client,
                                   char* message, size_t message_size) {
  if (client == nullptr) return PERSEUS_INVALID;
  *client = nullptr;
  CopyText("", message, message_size);
  if (options == nullptr || options->struct_size < sizeof(options->struct_size)) {
    CopyText("options are missing, or were not made by perseus_client_options_init()", message,
             message_size);
    return PERSEUS_INVALID;
  }
  return Guarded(PERSEUS_NO_MEMORY, [&] {
    perseus_client_options known = {};
    std::memcpy(&known, options, std::min<std::size_t>(options->struct_size, sizeof(known)));
    Result<std::unique_ptr<perseus_client>> opened = OpenClient(known);
    if (!opened) {
      CopyText(opened.error().message, message, message_size);
      return opened.error().code == ErrorCode::kInvalidInput ? PERSEUS_INVALID
                                                             : PERSEUS_UNAVAILABLE;
    }
    *client = opened->release();
    return PERSEUS_OK;
  });
}

void perseus_step_begin(perseus_client* client, int64_t iteration) {
  if (!IsAlive(client)) return;
  Event event;
  event.kind = EventKind::kStepBegin;
  event.value = iteration;
  event.ticks = client->ticks.Now();
  client->page->PushAndWake(event);
}

void perseus_step_end(perseus_client* client, int64_t tokens) {
  if (!IsAlive(client)) return;
  Event event;
  event.kind = EventKind::kStepEnd;
  event.value = tokens;
  event.ticks = client->ticks.Now();
  client->page->ring.Push(event);
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
  if (!IsAlive(client) || !IsInstruction(type) || !(seconds >= 0) || seconds > kMostSeconds) return;
  Event event;
  event.kind = EventKind::kBusy;
  event.type = static_cast<perseus::ComputationType>(type);
  event.value = static_cast<std::int64_t>(seconds * 1e9);
  event.ticks = client->ticks.Now();
  client->page->ring.Push(event);
}

void perseus_instruction_work(perseus_client* client, double work) {
  if (!IsAlive(client)) return;
  Event event;
  event.kind = EventKind::kWork;
  event.value = std::bit_cast<std::int64_t>(work > 0 && std::isfinite(work) ? work : 0.0);
  event.ticks = client->ticks.Now();
  client->page->ring.Push(event);
}

void perseus_step_abandon(perseus_client* client) {
  if (!IsAlive(client)) return;
  Event event;
  event.kind = EventKind::kStepAbandon;
  event.ticks = client->ticks.Now();
  client->page->ring.Push(event);
}

void perseus_step_times(perseus_client* client, int64_t iteration, const double* begin_seconds,
                        const double* end_seconds, size_t count) {
  if (!IsAlive(client) || count > perseus::client::kMostStepTimes) return;
  if (count > 0 && (begin_seconds == nullptr || end_seconds == nullptr)) return;
  Guarded(0, [&] {
    perseus::client::StepTimes times;
    times.iteration = iteration;
    times.computations.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (!IsTime(begin_seconds[i]) || !IsTime(end_seconds[i])) return 0;
      times.computations.push_back(
          {std::llround(begin_seconds[i] * 1e9), std::llround(end_seconds[i] * 1e9)});
    }
    client->state->AddStepTimes(std::move(times));
    return 0;
  });
}

perseus_status perseus_step_plan(perseus_client* client, int64_t iteration,
                                 const perseus_step_row* rows, size_t count) {
  if (!IsAlive(client)) return PERSEUS_CLOSED;
  return Guarded(PERSEUS_NO_MEMORY, [&] {
    auto plan = perseus::client::StepPlanOf(iteration, rows, count);
    if (!plan) return PERSEUS_INVALID;
    client->state->AddStepPlan(std::move(plan));
    return PERSEUS_OK;
  });
}

perseus_status perseus_straggler_set(perseus_client* client, int32_t rank, double delay_seconds,
                                     double degree) {
  if (!IsAlive(client)) return PERSEUS_CLOSED;
  if (rank < 0 || !(delay_seconds >= 0) || !std::isfinite(delay_seconds) || !(degree > 0) ||
      !std::isfinite(degree)) {
    return PERSEUS_INVALID;
  }
  return Guarded(PERSEUS_NO_MEMORY, [&] {
    client->state->outbox().Add(perseus::client::StragglerNotice{
        .rank = rank, .delay_seconds = delay_seconds, .degree = degree});
    return PERSEUS_OK;
  });
}

perseus_status perseus_straggler_clear(perseus_client* client, int32_t rank) {
  return perseus_straggler_set(client, rank, 0, 1);
}

perseus_status perseus_client_get_stats(perseus_client* client, perseus_client_stats* stats) {
  if (!IsAlive(client)) return PERSEUS_CLOSED;
  if (stats == nullptr || stats->struct_size < sizeof(stats->struct_size)) return PERSEUS_INVALID;
  return Guarded(PERSEUS_NO_MEMORY, [&] {
    const std::uint32_t size = stats->struct_size;
    const perseus_client_stats now = client->state->stats();
    std::memcpy(stats, &now, std::min<std::size_t>(size, sizeof(now)));
    stats->struct_size = size;
    return PERSEUS_OK;
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
