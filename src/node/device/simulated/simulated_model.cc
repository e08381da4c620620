// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/simulated/simulated_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace perseus::device {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double SecondsLeft(const ModelKernel& kernel, const ModelState& state) {
  const auto clock = static_cast<std::size_t>(state.clock);
  return (1 - state.kernel_progress) * kernel.seconds[clock] * state.slowdown;
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

// Where the energy counter steps for the last time in (state.at_seconds, to]; kNever: nowhere.
double LastStep(const ModelGpu& gpu, const ModelState& state, double to_seconds) {
  const double period = gpu.counter_period_seconds;
  if (period <= 0) return kNever;
  // The quotient may be rounded up to the next step.
  const double step = std::min(std::floor(to_seconds / period) * period, to_seconds);
  return step > state.at_seconds ? step : kNever;
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
  double step = LastStep(gpu, *state, to_seconds);
  while (state->at_seconds < to_seconds) {
    double next = std::min(to_seconds, step);
    if (state->pending_count > 0) next = std::min(next, state->pending[0].at_seconds);
    const double left = state->busy != 0 ? SecondsLeft(kernel, *state) : kNever;
    const bool finishes = state->at_seconds + left <= next;
    if (finishes) next = state->at_seconds + left;
    const double passed = next - state->at_seconds;
    state->joules += ModelWatts(gpu, kernel, *state) * passed;
    if (state->busy != 0 && !finishes) {
      state->kernel_progress += (1 - state->kernel_progress) * (passed / left);
    }
    state->at_seconds = next;
    if (finishes) FinishKernel(state);
    if (next >= step) {
      state->counter_joules = state->joules;
      step = kNever;
    }
    ApplySettledClocks(state);
  }
  if (gpu.counter_period_seconds <= 0) state->counter_joules = state->joules;
}

double RequestClock(const ModelGpu& gpu, int clock, ModelState* state) {
  const double end = std::max(state->at_seconds, state->calls_end_seconds) + gpu.call_seconds;
  state->calls_end_seconds = end;
  state->locked = clock;
  // Where more are on their way than fit, the newest takes the place of the last.
  state->pending_count = std::min(state->pending_count + 1, kMaxPendingClocks);
  state->pending[static_cast<std::size_t>(state->pending_count - 1)] = {
      end + gpu.settle_seconds, clock < 0 ? gpu.highest() : clock};
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
