// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_SIMULATED_SIMULATED_GPU_H_
#define PERSEUS_DEVICE_SIMULATED_SIMULATED_GPU_H_

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/simulated/simulated_config.h"
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

class SimulatedFile;
struct SharedGpu;

// Simulated GPUs. Their whole state is in one file. All processes that open it see the same GPUs,
// as with a real driver. Docs: docs/how-to/simulated-gpus.md. Times are in simulated seconds:
// `time_scale` of them pass in a real one.

// Makes the file `path` (or replaces it; who has the old one open keeps that) from
// a configuration in TOML, which messages call `config_name`.
// Errors: kInvalidInput (the configuration), kIo.
Result<void> CreateSimulatedGpus(const std::string& path, std::string_view config,
                                 const std::string& config_name);

// Time and energy of a whole computation at one clock.
struct KernelCost {
  int mhz = 0;
  double seconds = 0;
  double joules = 0;
};
// At clocks between two of the table's: on the line between them; beyond its
// ends: as at the end. Needs one row at least, in any order.
using Kernel = std::vector<KernelCost>;

struct KernelRun {
  double seconds = 0;
  double joules = 0;
  int start_mhz = 0;         // The clock in effect when it began.
  double begin_seconds = 0;  // On the time of SimulatedGpus::NowSeconds.
  double end_seconds = 0;
};

// A kernel that was begun.
struct KernelLaunch {
  std::uint64_t id = 0;
  int start_mhz = 0;  // The clock in effect when it began.
};

// One GPU as it is now.
struct SimulatedSnapshot {
  double at_seconds = 0;
  int clock_mhz = 0;              // In effect.
  std::optional<int> locked_mhz;  // The last that was asked for; absent: released.
  double joules = 0;              // Exact.
  double counter_joules = 0;      // As the counter shows it.
  double watts = 0;
  bool busy = false;
  std::uint64_t set_calls = 0;    // Calls so far that lock a clock, ...
  std::uint64_t reset_calls = 0;  // ... and that release it.
};

// The GPUs of one file. Thread-safe. No process can block or corrupt the others
// by dying, at whatever instruction. Errors are kIo unless stated.
class SimulatedGpus {
 public:
  // kIo: no such file; kInvalidInput: not such a file, or one of before a reboot.
  static Result<std::unique_ptr<SimulatedGpus>> Open(const std::string& path);
  ~SimulatedGpus();
  SimulatedGpus(const SimulatedGpus&) = delete;
  SimulatedGpus& operator=(const SimulatedGpus&) = delete;

  int count() const;
  const GpuInfo& info(int gpu) const { return infos_[static_cast<std::size_t>(gpu)]; }
  // For the fake NVML, which shows and sets more than a Gpu does.
  const SimulatedGpuConfig& config(int gpu) const;
  SharedGpu& shared(int gpu);
  double NowSeconds() const;

  // Blocks as long as the GPU's configuration says.
  Result<void> LockClock(int gpu, int mhz);
  Result<void> ReleaseClock(int gpu);
  Result<SimulatedSnapshot> Snapshot(int gpu);
  GpuConditions Conditions(int gpu) const;

  // Counts a call and returns what it must fail with (nvml::kSuccess: nothing). The
  // drivers call it first; the functions above do not fail by themselves.
  nvml::Return CountCall(int gpu, SimulatedCall call);
  bool refuses_sets(int gpu) const;

  // Runs a kernel when those before it have ended, and sleeps until it ends
  // (it cannot be cancelled). Its pace follows the clock in effect. Where the
  // process dies the kernel runs on to its end. Errors: kInvalidInput (the table).
  //
  // `ready_seconds`, on the time of NowSeconds: when all that it waits for was
  // there. It begins then, as on a GPU whose work was queued ahead, although this
  // process woke up later (if the GPU was idle and nobody changed its clock since).
  // Pass the end_seconds of what it depends on, and a busy machine distorts nothing.
  Result<KernelRun> RunKernel(int gpu, const Kernel& kernel,
                              std::optional<double> ready_seconds = std::nullopt);
  // The two halves of it: LaunchKernel() returns when the kernel has begun (when those
  // before it have ended), WaitKernel() when it has ended. Wait for each before 16
  // others were begun on its GPU: kIo.
  Result<KernelLaunch> LaunchKernel(int gpu, const Kernel& kernel,
                                    std::optional<double> ready_seconds = std::nullopt);
  Result<KernelRun> WaitKernel(int gpu, const KernelLaunch& launch);
  // A kernel of GPU-bound work: the share `compute_share` of its time grows as the
  // clock falls, the rest does not; it draws the busy_watts of the configuration.
  Kernel ModelledKernel(int gpu, double seconds_at_highest_clock, double compute_share) const;

  // Changes in mid-run, for tests and demonstrations.
  Result<void> SetSlowdown(int gpu, double times);  // >= 1e-3; 1: none.
  void SetRefuseSets(int gpu, bool refuse);
  void SetLost(int gpu, bool lost);

 private:
  explicit SimulatedGpus(std::unique_ptr<SimulatedFile> file);
  Result<void> Request(int gpu, int clock);
  double MostWatts(int gpu) const;  // That a kernel may draw.

  std::unique_ptr<SimulatedFile> file_;
  std::vector<GpuInfo> infos_;
};

// The driver of the GPUs in this file , which fails where
// their configuration says so. Errors: those of SimulatedGpus::Open.
Result<std::unique_ptr<Driver>> OpenSimulatedDriver(const std::string& path);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_SIMULATED_SIMULATED_GPU_H_
