// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What the NVML driver adds to a bare call of the library, over the fake NVML
// with calls that do not block; and what running a simulated kernel costs the
// machine. The rival is in the same run: "bare" is dlsym's function itself.

#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "device/device.h"
#include "device/nvml/nvml.h"
#include "device/simulated/simulated_gpu.h"

namespace perseus::device {
namespace {

// The GPUs, the driver and the bare functions.
class Node {
 public:
  Node()
      : path_(std::filesystem::temp_directory_path() /
              ("perseus-bench-" + std::to_string(getpid()))) {
    if (!CreateSimulatedGpus(path_, "[[gpus]]\ncall_ms = 0\nsettle_ms = 0\n", "bench"))
      Fail("gpus");
    setenv("PERSEUS_FAKE_NVML", path_.c_str(), 1);
    auto driver = OpenDriver(std::string("nvml:") + PERSEUS_FAKE_NVML_LIBRARY);
    auto gpus = SimulatedGpus::Open(path_);
    if (!driver || !gpus) Fail("driver");
    driver_ = *std::move(driver);
    gpus_ = *std::move(gpus);
    library_ = dlopen(PERSEUS_FAKE_NVML_LIBRARY, RTLD_NOW);
    Find<nvml::Return (*)(unsigned, nvml::Device*)>("nvmlDeviceGetHandleByIndex_v2")(0, &device_);
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() { std::filesystem::remove(path_); }

  Gpu& gpu() { return *driver_->gpus()[0]; }
  SimulatedGpus& gpus() { return *gpus_; }
  nvml::Device device() const { return device_; }
  template <typename Function>
  Function Find(const char* name) const {
    auto function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) Fail(name);
    return function;
  }

 private:
  [[noreturn]] static void Fail(const char* what) {
    std::fprintf(stderr, "device_benchmark: no %s\n", what);
    std::exit(1);
  }

  std::string path_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<SimulatedGpus> gpus_;
  void* library_ = nullptr;
  nvml::Device device_ = nullptr;
};

void BareReadClock(benchmark::State& state) {
  Node node;
  const auto read =
      node.Find<nvml::Return (*)(nvml::Device, unsigned, unsigned*)>("nvmlDeviceGetClockInfo");
  unsigned mhz = 0;
  for (auto _ : state) benchmark::DoNotOptimize(read(node.device(), nvml::kClockSm, &mhz));
}
BENCHMARK(BareReadClock);

void DriverReadClock(benchmark::State& state) {
  Node node;
  for (auto _ : state) benchmark::DoNotOptimize(node.gpu().ClockMhz());
}
BENCHMARK(DriverReadClock);

void BareLockClock(benchmark::State& state) {
  Node node;
  const auto lock =
      node.Find<nvml::Return (*)(nvml::Device, unsigned, unsigned)>("nvmlDeviceSetGpuLockedClocks");
  for (auto _ : state) benchmark::DoNotOptimize(lock(node.device(), 1200, 1200));
}
BENCHMARK(BareLockClock);

void DriverLockClock(benchmark::State& state) {
  Node node;
  for (auto _ : state) benchmark::DoNotOptimize(node.gpu().LockClock(1200));
}
BENCHMARK(DriverLockClock);

// CPU time for one kernel of so many milliseconds; "late_us": how much later the
// caller goes on than the kernel ended.
void RunKernel(benchmark::State& state) {
  Node node;
  const Kernel kernel =
      node.gpus().ModelledKernel(0, static_cast<double>(state.range(0)) * 1e-3, 0.8);
  double late_seconds = 0;
  for (auto _ : state) {
    const Result<KernelRun> run = node.gpus().RunKernel(0, kernel);
    late_seconds += node.gpus().NowSeconds() - run->end_seconds;
  }
  state.counters["late_us"] =
      benchmark::Counter(late_seconds * 1e6, benchmark::Counter::kAvgIterations);
}
BENCHMARK(RunKernel)
    ->Arg(1)
    ->Arg(10)
    ->Arg(50)
    ->Unit(benchmark::kMicrosecond)
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace perseus::device

BENCHMARK_MAIN();
