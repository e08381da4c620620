// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A libcuda.so.1 over simulated GPUs: as much of CUDA's driver interface as
// timing one kernel takes. A kernel's one argument is a number of steps, each of
// kCyclesPerStep cycles of the SM clock, whatever its code says. C has no object
// that could own the state: CUDA's own ABI is one state per process.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "device/cuda_abi.h"
#include "device/simulated/simulated_gpu.h"

#define PERSEUS_FAKE_CUDA_API extern "C" __attribute__((visibility("default")))

namespace perseus::device::cuda {

struct Context {
  int gpu = 0;
};
struct Module {
  int unused = 0;
};
struct Function {
  int unused = 0;
};
struct Event {
  double seconds = 0;
};

namespace {

constexpr double kCyclesPerStep = 20;

struct State {
  std::unique_ptr<SimulatedGpus> gpus;
  Context context;
  Module module;
  Function function;
  double last_end_seconds = 0;
  bool ran = false;  // Since the last event.
};

State& Global() {
  static State state;
  return state;
}

// Sixteen bytes of "GPU-01234567-89ab-...": zeros where it is no such text.
Uuid UuidOf(std::string_view text) {
  Uuid uuid{};
  std::size_t digit = 0;
  for (const char c : text.substr(std::min<std::size_t>(4, text.size()))) {
    const bool is_digit = c >= '0' && c <= '9';
    const bool is_letter = c >= 'a' && c <= 'f';
    if ((!is_digit && !is_letter) || digit >= 32) continue;
    const int value = is_digit ? c - '0' : c - 'a' + 10;
    uuid.bytes[digit / 2] =
        static_cast<unsigned char>(uuid.bytes[digit / 2] | (digit % 2 == 0 ? value << 4 : value));
    ++digit;
  }
  return uuid;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of cuda.h.

PERSEUS_FAKE_CUDA_API Status cuInit(unsigned /*flags*/) {
  State& state = Global();
  if (state.gpus != nullptr) return kSuccess;
  const char* const path = std::getenv("PERSEUS_FAKE_NVML");
  if (path == nullptr) return kNoDevice;
  auto gpus = SimulatedGpus::Open(path);
  if (!gpus) return kNoDevice;
  state.gpus = *std::move(gpus);
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuGetErrorString(Status status, const char** text) {
  *text = status == kNoDevice ? "no CUDA-capable device is detected" : "unknown error";
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuDeviceGetCount(int* count) {
  if (Global().gpus == nullptr) return kNotInitialized;
  *count = Global().gpus->count();
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuDeviceGet(Device* device, int index) {
  if (Global().gpus == nullptr) return kNotInitialized;
  if (index < 0 || index >= Global().gpus->count()) return kInvalidValue;
  *device = index;
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  *uuid = UuidOf(Global().gpus->info(device).uuid);
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuDevicePrimaryCtxRetain(Context** context, Device device) {
  Global().context.gpu = device;
  *context = &Global().context;
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuDevicePrimaryCtxRelease_v2(Device /*device*/) { return kSuccess; }
PERSEUS_FAKE_CUDA_API Status cuCtxPushCurrent_v2(Context* /*context*/) { return kSuccess; }
PERSEUS_FAKE_CUDA_API Status cuCtxPopCurrent_v2(Context** context) {
  *context = &Global().context;
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuModuleLoadData(Module** module, const void* image) {
  if (std::strncmp(static_cast<const char*>(image), ".version", 8) != 0) return kInvalidValue;
  *module = &Global().module;
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuModuleUnload(Module* /*module*/) { return kSuccess; }
PERSEUS_FAKE_CUDA_API Status cuModuleGetFunction(Function** function, Module* /*module*/,
                                                 const char* /*name*/) {
  *function = &Global().function;
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuEventCreate(Event** event, unsigned /*flags*/) {
  *event = std::make_unique<Event>().release();
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuEventDestroy_v2(Event* event) {
  const std::unique_ptr<Event> owned(event);
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuEventRecord(Event* event, Stream* /*stream*/) {
  State& state = Global();
  event->seconds = state.ran ? state.last_end_seconds : state.gpus->NowSeconds();
  state.ran = false;
  return kSuccess;
}

PERSEUS_FAKE_CUDA_API Status cuEventSynchronize(Event* /*event*/) { return kSuccess; }
PERSEUS_FAKE_CUDA_API Status cuEventElapsedTime(float* milliseconds, Event* begin, Event* end) {
  *milliseconds = static_cast<float>(1e3 * (end->seconds - begin->seconds));
  return kSuccess;
}

// Returns when the kernel has ended.
PERSEUS_FAKE_CUDA_API Status cuLaunchKernel(Function* /*function*/, unsigned /*grid_x*/,
                                            unsigned /*grid_y*/, unsigned /*grid_z*/,
                                            unsigned /*block_x*/, unsigned /*block_y*/,
                                            unsigned /*block_z*/, unsigned /*shared_bytes*/,
                                            Stream* /*stream*/, void** arguments,
                                            void** /*extra*/) {
  State& state = Global();
  std::uint32_t steps = 0;
  std::memcpy(&steps, arguments[0], sizeof(steps));
  const int gpu = state.context.gpu;
  const double seconds = steps * kCyclesPerStep / (1e6 * state.gpus->info(gpu).clocks_mhz.back());
  const auto run = state.gpus->RunKernel(gpu, state.gpus->ModelledKernel(gpu, seconds, 1));
  if (!run) return kUnknown;
  state.last_end_seconds = run->end_seconds;
  state.ran = true;
  return kSuccess;
}

// NOLINTEND(readability-identifier-naming)

}  // namespace perseus::device::cuda
