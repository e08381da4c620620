// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_SIMULATED_SIMULATED_GPU_H_
#define PERSEUS_DEVICE_SIMULATED_SIMULATED_GPU_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/simulated/simulated_config.h"
#include "perseus/result.h"

namespace perseus::device {

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
