// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/simulated/simulated_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/word_hash.h"

namespace perseus::device {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double StallLeft(const ModelState& state) {
  return std::max(0.0, state.stalled_until_seconds - state.at_seconds);
}

double SecondsLeft(const ModelKernel& kernel, const ModelState& state) {
  const auto clock = static_cast<std::size_t>(state.clock);
  return StallLeft(state) + (1 - state.kernel_progress) * kernel.seconds[clock] * state.slowdown;
}

void ApplySettledClocks(ModelState* state) {
  int settled = 0;
  while (settled < state->pending_count &&
         state->pending[static_cast<std::size_t>(settled)].at_seconds <= state->at_seconds) {
    state->clock = state->pending[static_cast<std::size_t>(settled)].clock;
    ++settled;
  }
  std::copy(state->pending.begin() + settled, state->pending.begin() + state->pending_count,
            state->pending.begin());
  state->pending_count -= settled;
}

void FinishKernel(ModelState* state) {
  state->busy = 0;
  state->kernel_progress = 1;
  state->finished[state->kernel_id % kKeptKernels] = {state->kernel_id, state->kernel_begin_seconds,
                                                      state->at_seconds,
                                                      state->joules - state->kernel_begin_joules};
}

// The energy counter takes its nth count at n periods, less the lag, and shows it a lag later.
double CountSeconds(const ModelGpu& gpu, std::int64_t count) {
  return static_cast<double>(count) * gpu.counter_period_seconds - gpu.counter_lag_seconds;
}

// The last count that was taken by then.
std::int64_t LastCount(const ModelGpu& gpu, double seconds) {
  const double counts = (seconds + gpu.counter_lag_seconds) / gpu.counter_period_seconds;
  auto count = static_cast<std::int64_t>(std::floor(counts));
  // The quotient may be rounded.
  if (CountSeconds(gpu, count) > seconds) --count;
  if (CountSeconds(gpu, count + 1) <= seconds) ++count;
  return count;
}

std::int64_t ShownCount(const ModelGpu& gpu, double seconds) {
  return LastCount(gpu, seconds - gpu.counter_lag_seconds);
}

// How long the counter looked until then.
double LookedSeconds(const ModelGpu& gpu, double seconds) {
  const double period = gpu.counter_period_seconds;
  const double passed = seconds + gpu.counter_lag_seconds;
  const double whole = std::floor(passed / period);
  const double looks = gpu.counter_duty * period;
  return whole * looks + std::max(0.0, passed - whole * period - (period - looks));
}

// The share of the energy between two times that the counter counts, when the power is constant.
double CountedShare(const ModelGpu& gpu, double from_seconds, double to_seconds) {
  if (gpu.counter_duty >= 1 || to_seconds <= from_seconds) return 1;
  return (LookedSeconds(gpu, to_seconds) - LookedSeconds(gpu, from_seconds)) /
         (gpu.counter_duty * (to_seconds - from_seconds));
}

double& CountOf(ModelState* state, std::int64_t count) {
  return state->counts[static_cast<std::size_t>(count % kKeptCounts)];
}

}  // namespace

double ModelWatts(const ModelGpu& gpu, const ModelKernel& kernel, const ModelState& state) {
  if (state.busy == 0) return gpu.idle_watts;
  const auto clock = static_cast<std::size_t>(state.clock);
  return kernel.joules[clock] / (kernel.seconds[clock] * state.slowdown);
}

void AdvanceModel(const ModelGpu& gpu, const ModelKernel& kernel, double to_seconds,
                  ModelState* state) {
  // Each turn ends with an event, and there are few: a settled clock, the end
  // of the kernel, the counter's step, `to_seconds`.
  ApplySettledClocks(state);
  const bool counts = gpu.counter_period_seconds > 0;
  // Of those that are shown before `to_seconds`, the last only.
  const std::int64_t last = counts ? LastCount(gpu, to_seconds) : 0;
  std::int64_t count =
      counts ? std::max(LastCount(gpu, state->at_seconds) + 1, ShownCount(gpu, to_seconds)) : 1;
  while (state->at_seconds < to_seconds) {
    const double step = count <= last ? CountSeconds(gpu, count) : kNever;
    double next = std::min(to_seconds, step);
    const double stall = state->busy != 0 ? StallLeft(*state) : 0;
    if (stall > 0) next = std::min(next, state->stalled_until_seconds);
    if (state->pending_count > 0) next = std::min(next, state->pending[0].at_seconds);
    const double left = state->busy != 0 ? SecondsLeft(kernel, *state) : kNever;
    const bool finishes = state->at_seconds + left <= next;
    if (finishes) next = state->at_seconds + left;
    const double passed = next - state->at_seconds;
    const double joules = ModelWatts(gpu, kernel, *state) * passed;
    state->joules += joules;
    state->counted_joules += joules * CountedShare(gpu, state->at_seconds, next);
    if (state->busy != 0 && !finishes && stall <= 0) {
      state->kernel_progress += (1 - state->kernel_progress) * (passed / left);
    }
    state->at_seconds = next;
    if (finishes) FinishKernel(state);
    if (next >= step) CountOf(state, count++) = state->counted_joules;
    ApplySettledClocks(state);
  }
  state->counter_joules =
      counts ? CountOf(state, ShownCount(gpu, state->at_seconds)) : state->counted_joules;
}

double RequestClock(const ModelGpu& gpu, int clock, ModelState* state, double free_seconds) {
  const double end =
      std::max({state->at_seconds, state->calls_end_seconds, free_seconds}) + gpu.call_seconds;
  state->calls_end_seconds = end;
  state->locked = clock;
  const int target = clock < 0 ? gpu.default_clock() : clock;
  const double draw = WordHash(gpu.seed).With(++state->calls).StandardDraw();
  const double settles =
      end + std::max(0.0, gpu.SettleSecondsOf(target) + gpu.settle_spread_seconds * draw);
  // Drop earlier calls that would take effect later.
  while (state->pending_count > 0 &&
         state->pending[static_cast<std::size_t>(state->pending_count - 1)].at_seconds > settles) {
    --state->pending_count;
  }
  // Replace the last pending clock by the newest if there is no room for more.
  state->pending_count = std::min(state->pending_count + 1, kMaxPendingClocks);
  state->pending[static_cast<std::size_t>(state->pending_count - 1)] = {settles, target};
  state->stalled_until_seconds =
      std::max(state->stalled_until_seconds, state->at_seconds) + gpu.call_stall_seconds;
  return end;
}

std::uint64_t BeginModelKernel(int slot, ModelState* state) {
  state->busy = 1;
  state->kernel_slot = slot;
  state->kernel_progress = 0;
  state->kernel_begin_seconds = state->at_seconds;
  state->kernel_begin_joules = state->joules;
  return ++state->kernel_id;
}

double KernelEndSeconds(const ModelGpu& gpu, const ModelKernel& kernel, ModelState state) {
  ApplySettledClocks(&state);
  while (state.busy != 0 && state.pending_count > 0 &&
         state.at_seconds + SecondsLeft(kernel, state) > state.pending[0].at_seconds) {
    AdvanceModel(gpu, kernel, state.pending[0].at_seconds, &state);
  }
  return state.busy != 0 ? state.at_seconds + SecondsLeft(kernel, state) : state.at_seconds;
}

}  // namespace perseus::device
