// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/simulated/simulated_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/nearest_name.h"
#include "common/tree.h"
#include "common/word_hash.h"
#include "device/nvml/nvml.h"

namespace perseus::device {
namespace {

constexpr int kMostMhz = 10'000;
constexpr double kMostWatts = 100'000;
constexpr NumberRange kTime = {.least = 0, .most = 600'000};  // Milliseconds.

constexpr NumberRange kWatts = {.least = 0, .most = kMostWatts};

// Keys of a [[gpus]] table that are a number or a bool each, with their range, what they are where
// they are not given, and the member that keeps them, in units of 1 / `divisor`.
struct NumberKey {
  std::string_view name;
  NumberRange range;
  double otherwise;
  double divisor;
  double ModelGpu::*of_model;
  double SimulatedGpuConfig::*of_gpu = nullptr;
};
constexpr NumberKey kNumberKeys[] = {
    {"idle_watts", kWatts, 85, 1, &ModelGpu::idle_watts},
    {"call_ms", kTime, 15, 1e3, &ModelGpu::call_seconds},
    {"settle_spread_ms", kTime, 0, 1e3, &ModelGpu::settle_spread_seconds},
    {"call_stall_ms", kTime, 0, 1e3, &ModelGpu::call_stall_seconds},
    {"counter_period_ms", kTime, 20, 1e3, &ModelGpu::counter_period_seconds},
    {"counter_lag_ms", kTime, 0, 1e3, &ModelGpu::counter_lag_seconds},
    {"counter_duty", {.least = 0, .most = 1, .above_least = true}, 1, 1, &ModelGpu::counter_duty},
    {"power_floor_watts", kWatts, kNoValue, 1, nullptr, &SimulatedGpuConfig::power_floor_watts},
    {"temperature_celsius",
     {.least = -50, .most = 200},
     45,
     1,
     nullptr,
     &SimulatedGpuConfig::temperature_celsius},
    {"slowdown", {.least = 1e-3, .most = 1e3}, 1, 1, nullptr, &SimulatedGpuConfig::slowdown},
};
struct BoolKey {
  std::string_view name;
  std::int32_t SimulatedGpuConfig::*member;
};
constexpr BoolKey kBoolKeys[] = {
    {"power_cap", &SimulatedGpuConfig::capped},
    {"mig", &SimulatedGpuConfig::mig},
    {"refuse_sets", &SimulatedGpuConfig::refuse_sets},
    {"lost", &SimulatedGpuConfig::lost},
};
constexpr std::string_view kOtherKeys[] = {"count",
                                           "uuid",
                                           "name",
                                           "clocks_mhz",
                                           "min_clock_mhz",
                                           "max_clock_mhz",
                                           "clock_step_mhz",
                                           "boost_mhz",
                                           "busy_watts",
                                           "settle_ms",
                                           "seed",
                                           "power_limit_watts",
                                           "default_power_limit_watts",
                                           "throttle_reasons",
                                           "power_profiles",
                                           "errors"};

constexpr std::string_view kCallNames[kSimulatedCalls] = {"set_clock", "reset_clock", "clock",
                                                          "energy",    "power",       "conditions"};

template <std::size_t kSize>
void CopyText(const TreeCursor& value, std::array<char, kSize>* target) {
  const std::string text = value.String();
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (text.empty() || text.size() >= kSize || !printable) {
    value.FailExpected(fmt::format("1 to {} printable ASCII characters", kSize - 1));
    return;
  }
  target->fill('\0');
  std::copy(text.begin(), text.end(), target->begin());
}

void SetText(std::string_view text, std::array<char, 64>* target) {
  target->fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), target->size() - 1), target->begin());
}

double NumberOr(const TreeCursor& gpu, std::string_view key, NumberRange range, double otherwise) {
  const std::optional<TreeCursor> value = gpu.Find(key);
  return value ? value->Number(range) : otherwise;
}

int IntegerOr(const TreeCursor& gpu, std::string_view key, int least, int most, int otherwise) {
  const std::optional<TreeCursor> value = gpu.Find(key);
  return value ? value->Integer(least, most) : otherwise;
}

bool BoolOr(const TreeCursor& gpu, std::string_view key, bool otherwise) {
  const std::optional<TreeCursor> value = gpu.Find(key);
  return value ? value->Bool() : otherwise;
}

void ReadClocks(const TreeCursor& gpu, ModelGpu* model) {
  std::vector<int> clocks;
  if (const auto list = gpu.Find("clocks_mhz")) {
    for (const char* key : {"min_clock_mhz", "max_clock_mhz", "clock_step_mhz"}) {
      if (const auto other = gpu.Find(key)) other->Fail("is one too many beside clocks_mhz");
    }
    const std::size_t size = std::min(list->Size(), std::size_t{kMaxSimulatedClocks} + 1);
    for (std::size_t i = 0; i < size; ++i) clocks.push_back(list->At(i).Integer(1, kMostMhz));
    if (clocks.empty() || clocks.size() > kMaxSimulatedClocks) {
      list->FailExpected(fmt::format("1 to {} clocks", kMaxSimulatedClocks));
      return;
    }
    for (std::size_t i = 1; i < clocks.size(); ++i) {
      if (clocks[i] <= clocks[i - 1]) list->At(i).Fail("is not above the clock before it");
    }
  } else {
    const int least = IntegerOr(gpu, "min_clock_mhz", 1, kMostMhz, 210);
    const int most = IntegerOr(gpu, "max_clock_mhz", least, kMostMhz, std::max(least, 1410));
    const int step = IntegerOr(gpu, "clock_step_mhz", 1, kMostMhz, 15);
    // From the highest down: it is always among them.
    for (int mhz = most; mhz >= least && step > 0; mhz -= step) clocks.push_back(mhz);
    std::reverse(clocks.begin(), clocks.end());
    if (clocks.size() > kMaxSimulatedClocks) {
      gpu.Fail(fmt::format("has {} clocks, more than {}: take a larger clock_step_mhz",
                           clocks.size(), kMaxSimulatedClocks));
      return;
    }
  }
  model->clock_count = static_cast<std::int32_t>(clocks.size());
  std::copy(clocks.begin(), clocks.end(), model->clocks_mhz.begin());
  model->boost_mhz = IntegerOr(gpu, "boost_mhz", 1, kMostMhz, 0);
}

void ReadWatts(const TreeCursor& gpu, ModelGpu* model) {
  const auto count = static_cast<std::size_t>(model->clock_count);
  if (count == 0) return;  // After an error.
  const auto busy = gpu.Find("busy_watts");
  if (busy && busy->IsList()) {
    if (busy->Size() != count) {
      busy->Fail(fmt::format("has {} numbers for {} clocks", busy->Size(), count));
      return;
    }
    for (std::size_t i = 0; i < count; ++i) model->busy_watts[i] = busy->At(i).Number(kWatts);
    return;
  }
  const double most = busy ? busy->Number({.least = model->idle_watts, .most = kMostWatts})
                           : std::max(380.0, model->idle_watts);
  for (std::size_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(model->clocks_mhz[i]) / model->clocks_mhz[count - 1];
    model->busy_watts[i] =
        model->idle_watts + (most - model->idle_watts) * std::pow(share, kPowerExponent);
  }
}

// A list, one for each clock, or a number for all.
void ReadSettling(const TreeCursor& gpu, ModelGpu* model) {
  // No draw is further away; a clock that were in effect before its call has ended would be odd.
  constexpr double kMostSpreads = 3.47;
  const auto count = static_cast<std::size_t>(model->clock_count);
  if (count == 0) return;  // After an error.
  const auto settle = gpu.Find("settle_ms");
  double least = 0;
  if (settle && settle->IsList()) {
    if (settle->Size() != count) {
      settle->Fail(fmt::format("has {} numbers for {} clocks", settle->Size(), count));
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      model->settle_seconds[i] = settle->At(i).Number(kTime) / 1e3;
    }
    least = *std::min_element(model->settle_seconds.begin(),
                              model->settle_seconds.begin() + model->clock_count);
  } else {
    least = NumberOr(gpu, "settle_ms", kTime, 5) / 1e3;
    model->settle_seconds.fill(least);
  }
  if (kMostSpreads * model->settle_spread_seconds > least) {
    gpu.Get("settle_spread_ms")
        .Fail(fmt::format("is too large: at most settle_ms / {} (here {:.3g}), so that no clock is "
                          "in effect before its call has ended",
                          kMostSpreads, 1e3 * least / kMostSpreads));
  }
  model->seed =
      static_cast<std::uint64_t>(IntegerOr(gpu, "seed", 0, std::numeric_limits<int>::max(), 0));
}

void CheckCounter(const TreeCursor& gpu, const ModelGpu& model) {
  const double most_lag = (kKeptCounts - 2) * model.counter_period_seconds;
  if (model.counter_lag_seconds > most_lag) {
    gpu.Get("counter_lag_ms")
        .Fail(fmt::format("is more than {} times counter_period_ms", kKeptCounts - 2));
  }
  if (model.counter_duty < 1 && model.counter_period_seconds <= 0) {
    gpu.Get("counter_duty").Fail("needs a counter_period_ms above 0, of which it is a share");
  }
}

void ReadProfiles(const TreeCursor& gpu, nvml::Mask255* mask) {
  const auto list = gpu.Find("power_profiles");
  if (!list) return;
  const std::size_t size = std::min(list->Size(), std::size_t{nvml::kPowerProfiles});
  for (std::size_t i = 0; i < size; ++i) {
    const TreeCursor item = list->At(i);
    const std::string name = item.String();
    const std::optional<unsigned> profile = PowerProfileByName(name);
    if (profile) {
      mask->Add(*profile);
    } else {
      item.FailExpected("a profile by NVML's name, as LLM_TRAINING or MAX_Q");
    }
  }
}

void ReadErrors(const TreeCursor& gpu, std::array<InjectedError, kSimulatedCalls>* errors) {
  const auto list = gpu.Find("errors");
  if (!list) return;
  const std::size_t size = std::min(list->Size(), std::size_t{64});
  for (std::size_t i = 0; i < size; ++i) {
    const TreeCursor item = list->At(i);
    constexpr std::string_view kKeys[] = {"call", "every", "code"};
    item.AllowOnly(kKeys);
    const TreeCursor call = item.Get("call");
    const std::string name = call.String();
    const auto* found = std::find(std::begin(kCallNames), std::end(kCallNames), name);
    if (found == std::end(kCallNames)) {
      call.FailExpected(fmt::format("one of {}", fmt::join(kCallNames, ", ")));
      return;
    }
    InjectedError& error = (*errors)[static_cast<std::size_t>(found - std::begin(kCallNames))];
    error.every = item.Get("every").Integer(1);
    const TreeCursor code = item.Get("code");
    const std::optional<nvml::Return> known = NvmlErrorByName(code.String());
    if (!known) code.FailExpected(fmt::format("one of {}", fmt::join(NvmlErrorNames(), ", ")));
    error.code = known.value_or(nvml::kUnknown);
  }
}

SimulatedGpuConfig ReadGpu(const TreeCursor& gpu) {
  std::vector<std::string_view> keys(std::begin(kOtherKeys), std::end(kOtherKeys));
  for (const NumberKey& key : kNumberKeys) keys.push_back(key.name);
  for (const BoolKey& key : kBoolKeys) keys.push_back(key.name);
  gpu.AllowOnly(keys);
  SimulatedGpuConfig config;
  constexpr std::string_view kName = "Simulated GPU";
  std::copy(kName.begin(), kName.end(), config.name.begin());
  for (const NumberKey& key : kNumberKeys) {
    const double value = NumberOr(gpu, key.name, key.range, key.otherwise) / key.divisor;
    (key.of_model != nullptr ? config.model.*key.of_model : config.*key.of_gpu) = value;
  }
  for (const BoolKey& key : kBoolKeys) {
    config.*key.member = BoolOr(gpu, key.name, false) ? 1 : 0;
  }
  if (const auto name = gpu.Find("name")) CopyText(*name, &config.name);
  if (const auto uuid = gpu.Find("uuid")) CopyText(*uuid, &config.uuid);
  ReadClocks(gpu, &config.model);
  ReadWatts(gpu, &config.model);
  ReadSettling(gpu, &config.model);
  CheckCounter(gpu, config.model);
  config.default_power_limit_watts = NumberOr(gpu, "default_power_limit_watts", kWatts,
                                              NumberOr(gpu, "power_limit_watts", kWatts, 400));
  config.power_limit_watts =
      NumberOr(gpu, "power_limit_watts", kWatts, config.default_power_limit_watts);
  config.throttle_reasons =
      static_cast<std::uint64_t>(IntegerOr(gpu, "throttle_reasons", 0, 0xFFF, 0));
  ReadProfiles(gpu, &config.power_profiles);
  ReadErrors(gpu, &config.errors);
  return config;
}

void ReadGpus(const TreeCursor& root, std::string_view uuid_stem, SimulatedConfig* config) {
  const TreeCursor list = root.Get("gpus");
  const std::size_t size = std::min(list.Size(), std::size_t{kMaxSimulatedGpus});
  std::set<std::string> uuids;
  for (std::size_t i = 0; i < size; ++i) {
    const TreeCursor gpu = list.At(i);
    SimulatedGpuConfig one = ReadGpu(gpu);
    const int count = IntegerOr(gpu, "count", 1, kMaxSimulatedGpus, 1);
    const auto uuid = gpu.Find("uuid");
    if (uuid && count > 1) uuid->Fail("names one GPU; leave out `count`, or the uuid");
    for (int copy = 0; copy < count; ++copy) {
      if (!uuid)
        SetText(fmt::format("GPU-sim-{}-{:04}", uuid_stem, config->gpus.size()), &one.uuid);
      if (!uuids.insert(one.uuid.data()).second) gpu.Fail("has the uuid of a GPU before it");
      config->gpus.push_back(one);
      // Equal GPUs draw differently.
      config->gpus.back().model.seed = WordHash(one.model.seed).With(config->gpus.size()).value();
    }
  }
  if (config->gpus.empty() || config->gpus.size() > kMaxSimulatedGpus) {
    list.FailExpected(fmt::format("1 to {} GPUs", kMaxSimulatedGpus));
  }
}

}  // namespace

Result<SimulatedConfig> ParseSimulatedConfig(std::string_view text, const std::string& name,
                                             std::string_view uuid_stem) {
  const Result<TreeNode> tree = ParseTomlTree(text, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  constexpr std::string_view kKeys[] = {"time_scale", "serial_calls", "gpus"};
  root.AllowOnly(kKeys);
  SimulatedConfig config;
  config.serial_calls = BoolOr(root, "serial_calls", false);
  config.time_scale = NumberOr(root, "time_scale", {.least = 1e-3, .most = 1e4}, 1);
  ReadGpus(root, uuid_stem, &config);
  if (reader.failed()) return tl::unexpected(*reader.error());
  return config;
}

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
