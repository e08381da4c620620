// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/simulated/simulated_driver.h"

#include <fmt/format.h>

#include <utility>

#include "device/nvml/nvml_names.h"
#include "device/simulated/simulated_gpu.h"

namespace perseus::device {
namespace {

class SimulatedGpu : public Gpu {
 public:
  SimulatedGpu(SimulatedGpus* gpus, int index) : gpus_(gpus), index_(index) {}

  const GpuInfo& info() const override { return gpus_->info(index_); }

  Result<void> LockClock(int mhz) override {
    Result<void> good = Try(SimulatedCall::kSetClock, "locking the clock");
    if (!good) return good;
    return gpus_->LockClock(index_, mhz);
  }

  Result<void> ReleaseClock() override {
    Result<void> good = Try(SimulatedCall::kResetClock, "releasing the clock");
    if (!good) return good;
    return gpus_->ReleaseClock(index_);
  }

  Result<int> ClockMhz() override {
    const Result<void> good = Try(SimulatedCall::kClock, "reading the clock");
    if (!good) return tl::unexpected(good.error());
    const Result<SimulatedSnapshot> now = gpus_->Snapshot(index_);
    if (!now) return tl::unexpected(now.error());
    return now->clock_mhz;
  }

  Result<double> EnergyJoules() override {
    const Result<void> good = Try(SimulatedCall::kEnergy, "reading the energy counter");
    if (!good) return tl::unexpected(good.error());
    const Result<SimulatedSnapshot> now = gpus_->Snapshot(index_);
    if (!now) return tl::unexpected(now.error());
    return now->counter_joules;
  }

  Result<double> PowerWatts() override {
    const Result<void> good = Try(SimulatedCall::kPower, "reading the power");
    if (!good) return tl::unexpected(good.error());
    const Result<SimulatedSnapshot> now = gpus_->Snapshot(index_);
    if (!now) return tl::unexpected(now.error());
    return now->watts;
  }

  Result<GpuConditions> Conditions() override {
    const Result<void> good = Try(SimulatedCall::kConditions, "reading limits");
    if (!good) return tl::unexpected(good.error());
    return gpus_->Conditions(index_);
  }

 private:
  Result<void> Try(SimulatedCall call, const char* doing) {
    const nvml::Return code = gpus_->CountCall(index_, call);
    if (code == nvml::kSuccess) return {};
    return tl::unexpected(NvmlError(code, fmt::format("{} of simulated GPU {}", doing, index_)));
  }

  SimulatedGpus* gpus_;
  int index_;
};

class SimulatedDriver : public Driver {
 public:
  explicit SimulatedDriver(std::unique_ptr<SimulatedGpus> gpus) : all_(std::move(gpus)) {
    for (int i = 0; i < all_->count(); ++i) {
      gpus_.push_back(std::make_unique<SimulatedGpu>(all_.get(), i));
    }
  }

  std::string_view kind() const override { return "simulated"; }
  const std::vector<std::unique_ptr<Gpu>>& gpus() const override { return gpus_; }

  Result<bool> MaySetClocks() override {
    for (int i = 0; i < all_->count(); ++i) {
      if (all_->refuses_sets(i)) return false;
    }
    return true;
  }

 private:
  std::unique_ptr<SimulatedGpus> all_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
};

}  // namespace

Result<std::unique_ptr<Driver>> OpenSimulatedDriver(const std::string& path) {
  Result<std::unique_ptr<SimulatedGpus>> gpus = SimulatedGpus::Open(path);
  if (!gpus) return tl::unexpected(gpus.error());
  return std::make_unique<SimulatedDriver>(*std::move(gpus));
}

}  // namespace perseus::device
