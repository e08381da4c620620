// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_SIMULATED_SIMULATED_CONFIG_H_
#define PERSEUS_DEVICE_SIMULATED_SIMULATED_CONFIG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "device/nvml/nvml.h"
#include "perseus/result.h"

namespace perseus::device {

// The model of a simulated GPU over time, as pure functions of the time: no clock is read here,
// nothing sleeps. All types are plain bytes, to be kept in a file that processes share. Time is in
// seconds since the file was made.

inline constexpr int kMaxSimulatedClocks = 256;
// The clocks that can be locked, and the one at which the card runs while none is.
inline constexpr int kMaxModelClocks = kMaxSimulatedClocks + 1;
inline constexpr int kMaxPendingClocks = 16;
inline constexpr int kKeptKernels = 16;
inline constexpr int kKeptCounts = 64;  // Readings of the counter that are not shown yet.

// The constants of a GPU.
struct ModelGpu {
  std::int32_t clock_count = 0;
  std::array<std::int32_t, kMaxSimulatedClocks> clocks_mhz = {};  // Ascending.
  std::array<double, kMaxSimulatedClocks> busy_watts = {};        // At each clock.
  double idle_watts = 0;
  double call_seconds = 0;  // How long a call that sets a clock blocks.
  // From its end until the clock at this index is in effect, on average.
  std::array<double, kMaxSimulatedClocks> settle_seconds = {};
  double settle_spread_seconds = 0;  // Its standard deviation, drawn for each call.
  std::uint64_t seed = 0;            // Of these draws.
  // While no clock is locked, kernels run at this one; 0: at the highest that can be locked.
  std::int32_t boost_mhz = 0;
  double call_stall_seconds = 0;      // Each call stops kernels for so long.
  double counter_period_seconds = 0;  // 0: the energy counter is continuous.
  double counter_lag_seconds = 0;     // It shows the energy of so long ago.
  double counter_duty = 1;            // The share of each period, its end, in which it looks.

  int highest() const { return clock_count - 1; }
  // The index of the clock at which it runs while none is locked. One beyond the others if it is
  // none of them.
  int default_clock() const { return boost_mhz == 0 ? highest() : clock_count; }
  int MhzOf(int clock) const {
    return clock == clock_count ? boost_mhz : clocks_mhz[static_cast<std::size_t>(clock)];
  }
  double SettleSecondsOf(int clock) const {
    return settle_seconds[static_cast<std::size_t>(clock == clock_count ? highest() : clock)];
  }
};

// A computation on one GPU: what the whole of it takes at each clock.
struct ModelKernel {
  std::array<double, kMaxModelClocks> seconds = {};
  std::array<double, kMaxModelClocks> joules = {};
  std::array<std::int32_t, kMaxModelClocks> mhz = {};  // At which the card runs it, by its cap.
};

struct PendingClock {
  double at_seconds = 0;
  std::int32_t clock = 0;
};

struct FinishedKernel {
  std::uint64_t id = 0;
  double begin_seconds = 0;
  double end_seconds = 0;
  double joules = 0;
};

// Everything that changes. Account for time with AdvanceModel before a change.
struct ModelState {
  double at_seconds = 0;  // All below is as of this time.
  double joules = 0;
  double counted_joules = 0;  // As the counter counts them: those while it looks, scaled up.
  double counter_joules = 0;  // What it shows.
  std::array<double, kKeptCounts> counts = {};  // `counted_joules` at its steps, by their number.
  std::int32_t clock = 0;                       // In effect; see ModelGpu::MhzOf.
  std::int32_t locked = -1;                     // The last that was asked for; -1: released.
  std::int32_t pending_count = 0;
  std::array<PendingClock, kMaxPendingClocks> pending = {};  // Ascending in time.
  double calls_end_seconds = 0;  // Set calls wait for each other until then.
  std::uint64_t calls = 0;       // So far.

  std::uint64_t kernel_id = 0;       // Of the kernel that began last.
  std::int32_t busy = 0;             // It still runs.
  std::int32_t kernel_slot = 0;      // Which of the two kernels in the file it is.
  double kernel_progress = 0;        // 0 to 1.
  double stalled_until_seconds = 0;  // It makes no progress until then.
  double kernel_begin_seconds = 0;
  double kernel_begin_joules = 0;
  std::array<FinishedKernel, kKeptKernels> finished = {};  // By id modulo the size.

  double slowdown = 1;  // Kernels take so many times their seconds.
};

// Brings `state` to the time `to_seconds`; earlier times change nothing.
// Advancing in one step or in many gives the same up to rounding.
void AdvanceModel(const ModelGpu& gpu, const ModelKernel& kernel, double to_seconds,
                  ModelState* state);

// A call at state->at_seconds that locks the clock at this index (-1: releases
// it). The driver takes it up at `free_seconds` at the earliest. Returns when the call ends; the
// clock is in effect settle_seconds later.
double RequestClock(const ModelGpu& gpu, int clock, ModelState* state, double free_seconds = 0);

// Begins a kernel at state->at_seconds on a GPU that is not busy. The kernel is
// in `slot` of the file. Returns its id.
std::uint64_t BeginModelKernel(int slot, ModelState* state);

// When the running kernel ends if nobody asks for another clock.
double KernelEndSeconds(const ModelGpu& gpu, const ModelKernel& kernel, ModelState state);

double ModelWatts(const ModelGpu& gpu, const ModelKernel& kernel, const ModelState& state);

inline constexpr int kMaxSimulatedGpus = 256;
// Below the highest clock a busy GPU draws idle + (busy - idle) x (clock / highest)^2.2:
// about what the published curves of A100 and H100 do. Above it, where it boosts, the same.
inline constexpr double kPowerExponent = 2.2;
inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// Calls in which an error can be injected.
enum class SimulatedCall : std::uint8_t {
  kSetClock,
  kResetClock,
  kClock,
  kEnergy,
  kPower,
  kConditions,
};
inline constexpr int kSimulatedCalls = 6;

// Every nth call of a kind fails.
struct InjectedError {
  std::int32_t every = 0;  // 0: never.
  nvml::Return code = nvml::kSuccess;
};

// One GPU as configured, in plain bytes.
struct SimulatedGpuConfig {
  ModelGpu model;
  std::array<char, 64> uuid = {};  // Ends with a NUL, as `name` does.
  std::array<char, 96> name = {};
  double power_limit_watts = 400;  // At first.
  double default_power_limit_watts = 400;
  double temperature_celsius = 45;
  double power_floor_watts = kNoValue;  // NaN: no power smoothing.
  std::uint64_t throttle_reasons = 0;
  std::int32_t capped = 0;  // Kernels run slower where they would draw more than the power limit.
  nvml::Mask255 power_profiles;
  std::int32_t mig = 0;
  // As it begins; can change.
  std::int32_t refuse_sets = 0;
  std::int32_t lost = 0;
  double slowdown = 1;
  std::array<InjectedError, kSimulatedCalls> errors = {};
};

struct SimulatedConfig {
  double time_scale = 1;
  bool serial_calls = false;  // Calls that set a clock wait for those of other GPUs.
  std::vector<SimulatedGpuConfig> gpus;
};

// Reads a configuration (docs/how-to/simulated-gpus.md). `uuid_stem` goes into the uuids
// that it does not give. Errors: kInvalidInput, with the place.
Result<SimulatedConfig> ParseSimulatedConfig(std::string_view text, const std::string& name,
                                             std::string_view uuid_stem);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_SIMULATED_SIMULATED_CONFIG_H_
