// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/simulated/simulated_kernel.h"

#include <chrono>
#include <optional>

namespace perseus::device {
namespace {

class SimulatedKernel : public TimedKernel {
 public:
  SimulatedKernel(SimulatedGpus* gpus, int gpu, SimulatedWork work)
      : gpus_(gpus), gpu_(gpu), work_(work) {}

  // At the clock of now, and so at the highest where none is locked.
  Result<void> Fit(double seconds) override {
    const Result<SimulatedSnapshot> now = gpus_->Snapshot(gpu_);
    if (!now) return tl::unexpected(now.error());
    const double share = work_ == SimulatedWork::kCompute ? static_cast<double>(now->clock_mhz) /
                                                                gpus_->info(gpu_).clocks_mhz.back()
                                                          : 1;
    kernel_ =
        gpus_->ModelledKernel(gpu_, seconds * share, work_ == SimulatedWork::kCompute ? 1 : 0);
    return {};
  }

  Result<KernelTime> Run() override {
    const Result<KernelRun> run = gpus_->RunKernel(gpu_, kernel_, std::nullopt, work_);
    if (!run) return tl::unexpected(run.error());
    const std::chrono::duration<double> ago(gpus_->NowSeconds() - run->begin_seconds);
    return KernelTime{
        .seconds = run->seconds,
        .begin = std::chrono::steady_clock::now() -
                 std::chrono::duration_cast<std::chrono::steady_clock::duration>(ago)};
  }

 private:
  static constexpr double kFirstSeconds = 0.001;

  SimulatedGpus* const gpus_;
  const int gpu_;
  const SimulatedWork work_;
  Kernel kernel_ =
      gpus_->ModelledKernel(gpu_, kFirstSeconds, work_ == SimulatedWork::kCompute ? 1 : 0);
};

}  // namespace

std::unique_ptr<TimedKernel> MakeSimulatedKernel(SimulatedGpus* gpus, int gpu, SimulatedWork work) {
  return std::make_unique<SimulatedKernel>(gpus, gpu, work);
}

}  // namespace perseus::device
