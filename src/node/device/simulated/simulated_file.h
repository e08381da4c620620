// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_SIMULATED_SIMULATED_FILE_H_
#define PERSEUS_DEVICE_SIMULATED_SIMULATED_FILE_H_

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "device/simulated/simulated_config.h"
#include "device/simulated/simulated_model.h"
#include "perseus/result.h"

namespace perseus::device {

// The file that processes share: a header, the configurations, the changing part
// of each GPU. Mapped by all of them at once.

// Held with `mutex`. There are two states, of which `current` says the valid one:
// a change is made in the other and then becomes current with one store, so that
// who dies in the middle has changed nothing.
struct alignas(64) SharedGpu {
  pthread_mutex_t mutex;               // Shared between processes, robust.
  std::atomic<std::uint32_t> current;  // 0 or 1.
  std::atomic<std::uint32_t> changes;  // A futex: goes up with every change.
  // Read and written without the mutex.
  std::atomic<std::uint32_t> refuse_sets;  // Calls that set clocks lack the right.
  std::atomic<std::uint32_t> lost;         // Every call fails.
  // Settings of others through NVML, kept to be read back. No effect on the model.
  std::atomic<std::uint32_t> power_limit_milliwatts;  // 0: the card has none.
  std::atomic<std::uint32_t> persistence;
  std::atomic<std::uint32_t> memory_clock_mhz;  // Locked; 0: released.
  std::array<std::atomic<std::uint64_t>, kSimulatedCalls> calls;
  // Of the first GPU only: until when the driver is busy with calls, where it serves one at a time.
  std::atomic<double> driver_free_seconds;
  std::array<ModelState, 2> states;
  std::array<ModelKernel, 2> kernels;  // A kernel begins in the one that is not in use.
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<double>::is_always_lock_free);

struct SharedHeader {
  std::array<char, 16> magic;
  std::uint32_t version;
  std::uint32_t gpu_count;
  std::uint64_t file_bytes;
  std::array<char, 40> boot_id;  // The monotonic clock starts anew with the machine.
  double time_scale;
  std::int32_t serial_calls;
  std::int64_t origin_ns;     // Simulated time 0, on CLOCK_MONOTONIC.
  std::uint64_t config_hash;  // FNV-1a of the configurations.
};

std::uint64_t Fnv1a(std::string_view bytes);

// Owns the mapping. Thread-safe.
class SimulatedFile {
 public:
  // Writes a new file and moves it to `path`. Errors: kIo.
  static Result<void> Create(const std::string& path, const SimulatedConfig& config);
  // Errors: kIo (the system), kInvalidInput (what is wrong with the file).
  static Result<std::unique_ptr<SimulatedFile>> Open(const std::string& path);

  SimulatedFile(const SimulatedFile&) = delete;
  SimulatedFile& operator=(const SimulatedFile&) = delete;
  ~SimulatedFile();

  int count() const { return static_cast<int>(header().gpu_count); }
  const SharedHeader& header() const { return *static_cast<const SharedHeader*>(memory_); }
  const SimulatedGpuConfig& config(int gpu) const;
  SharedGpu& shared(int gpu) const;
  const std::string& path() const { return path_; }

  double NowSeconds() const;
  // Sleeps until this simulated time.
  void SleepUntil(double seconds) const;
  // The same, but returns when the futex of `gpu` is no longer `changes`.
  void WaitForChange(int gpu, std::uint32_t changes, double until_seconds) const;

 private:
  SimulatedFile(std::string path, void* memory, std::size_t bytes)
      : path_(std::move(path)), memory_(memory), bytes_(bytes) {}

  std::string path_;
  void* memory_;
  std::size_t bytes_;
};

// Holds the mutex of one GPU and its state as of now.
class GpuHold {
 public:
  // Errors: kIo, where a stopped process keeps the mutex for seconds, or the
  // state makes no sense.
  static Result<GpuHold> Take(const SimulatedFile& file, int gpu);
  GpuHold(GpuHold&& other) noexcept;
  GpuHold& operator=(GpuHold&&) = delete;
  GpuHold(const GpuHold&) = delete;
  GpuHold& operator=(const GpuHold&) = delete;
  ~GpuHold();

  const ModelGpu& model() const { return config_->model; }
  ModelState& state() { return state_; }  // A copy, until Commit.
  const ModelKernel& kernel() const;      // The one that runs, or ran last.
  std::uint32_t changes() const;
  // Makes state() that of an earlier time: `seconds`, or as near to it as no
  // change of the GPU came later and no kernel ran.
  void GoBack(double seconds);
  // The unused slot: the next kernel is written there before it begins.
  int FreeSlot() const { return 1 - state_.kernel_slot; }
  ModelKernel& free_kernel();
  // Makes state() the GPU's state and wakes who waits for changes.
  void Commit();

 private:
  GpuHold(SharedGpu* shared, const SimulatedGpuConfig* config);

  SharedGpu* shared_;
  const SimulatedGpuConfig* config_;
  ModelState state_;
};

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_SIMULATED_SIMULATED_FILE_H_
