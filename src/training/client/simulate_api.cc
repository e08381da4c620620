// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/c_boundary.h"
#include "device/simulated/simulated_gpu.h"
#include "perseus/simulate.h"

// perseus/simulate.h on device/simulated/simulated_gpu.h. Nothing is thrown across it.

struct perseus_simulated {
  std::unique_ptr<perseus::device::SimulatedGpus> gpus;
};

namespace {

namespace c_boundary = perseus::c_boundary;
using perseus::InvalidInput;
using perseus::Result;

// Runs `body`, a function that returns Result<void>. What is not the caller's fault is the
// system's.
template <typename Body>
perseus_status Run(char** message, Body body) {
  return c_boundary::Guarded(message, [&] {
    const Result<void> done = body();
    if (done) return PERSEUS_OK;
    const perseus_status status = c_boundary::Fail(done.error(), message);
    return status == PERSEUS_INVALID ? PERSEUS_INVALID : PERSEUS_UNAVAILABLE;
  });
}

constexpr const char* kKernel = "perseus_simulated_kernel";
// More clocks than any GPU has.
constexpr std::size_t kMostRows = 65'536;

Result<void> CheckGpu(const perseus_simulated* gpus, std::int32_t gpu) {
  if (gpus == nullptr) return InvalidInput("no simulated GPUs are open");
  if (gpu < 0 || gpu >= gpus->gpus->count()) {
    return InvalidInput(fmt::format("there is no simulated GPU {}: they are 0 to {}", gpu,
                                    gpus->gpus->count() - 1));
  }
  return {};
}

Result<perseus::device::Kernel> KernelOf(const perseus_simulated_cost* table, std::size_t row_size,
                                         std::size_t rows) {
  constexpr const char* kName = "perseus_simulated_cost";
  if (table == nullptr || rows == 0 || rows > kMostRows) {
    return InvalidInput(fmt::format("a kernel of {} rows of costs; expected 1 to {}",
                                    table == nullptr ? 0 : rows, kMostRows));
  }
  const auto size = c_boundary::CheckSize(kName, row_size, alignof(perseus_simulated_cost));
  if (!size) return tl::unexpected(size.error());
  perseus::device::Kernel kernel;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto row = c_boundary::CopyElement(kName, table, row_size, i);
    if (!row) return tl::unexpected(row.error());
    if (!(row->mhz >= 1 && row->mhz <= 1e6)) {
      return InvalidInput(fmt::format("row {}: {} MHz is no clock of a kernel", i, row->mhz));
    }
    kernel.push_back({.mhz = static_cast<int>(std::lround(row->mhz)),
                      .seconds = row->seconds,
                      .joules = row->joules});
  }
  return kernel;
}

}  // namespace

perseus_status perseus_simulated_create(const char* path, const char* toml, char** message) {
  return Run(message, [&]() -> Result<void> {
    if (path == nullptr || toml == nullptr) return InvalidInput("a path and TOML are needed");
    return perseus::device::CreateSimulatedGpus(path, toml, "the configuration");
  });
}

perseus_status perseus_simulated_open(const char* path, perseus_simulated** gpus, char** message) {
  return Run(message, [&]() -> Result<void> {
    if (gpus == nullptr) return InvalidInput("there is no place for the GPUs");
    *gpus = nullptr;
    if (path == nullptr) return InvalidInput("a path is needed");
    auto opened = perseus::device::SimulatedGpus::Open(path);
    if (!opened) return tl::unexpected(opened.error());
    *gpus = std::make_unique<perseus_simulated>(perseus_simulated{std::move(*opened)}).release();
    return {};
  });
}

void perseus_simulated_close(perseus_simulated* gpus) {
  const std::unique_ptr<perseus_simulated> owned(gpus);
}

int32_t perseus_simulated_count(const perseus_simulated* gpus) {
  return gpus == nullptr ? 0 : gpus->gpus->count();
}

double perseus_simulated_now(const perseus_simulated* gpus) {
  return gpus == nullptr ? 0 : gpus->gpus->NowSeconds();
}

size_t perseus_simulated_uuid(const perseus_simulated* gpus, int32_t gpu, char* text, size_t size) {
  if (!CheckGpu(gpus, gpu)) return 0;
  const std::string& uuid = gpus->gpus->info(gpu).uuid;
  if (text != nullptr && size > 0) {
    const std::size_t length = std::min(uuid.size(), size - 1);
    std::memcpy(text, uuid.data(), length);
    text[length] = '\0';
  }
  return uuid.size();
}

perseus_status perseus_simulated_read(perseus_simulated* gpus, int32_t gpu,
                                      perseus_simulated_snapshot* snapshot, char** message) {
  return Run(message, [&]() -> Result<void> {
    if (Result<void> good = CheckGpu(gpus, gpu); !good) return good;
    const auto now = gpus->gpus->Snapshot(gpu);
    if (!now) return tl::unexpected(now.error());
    perseus_simulated_snapshot known = {};
    known.at_seconds = now->at_seconds;
    known.clock_mhz = now->clock_mhz;
    known.locked_mhz = now->locked_mhz.value_or(0);
    known.joules = now->joules;
    known.watts = now->watts;
    known.set_calls = now->set_calls;
    return c_boundary::CopyOut("perseus_simulated_snapshot", known, snapshot);
  });
}

perseus_status perseus_simulated_launch(perseus_simulated* gpus, int32_t gpu,
                                        const perseus_simulated_cost* table, size_t row_size,
                                        size_t rows, double ready_seconds,
                                        perseus_simulated_kernel* kernel, char** message) {
  return Run(message, [&]() -> Result<void> {
    if (Result<void> good = CheckGpu(gpus, gpu); !good) return good;
    const auto given =
        c_boundary::CopyIn(kKernel, static_cast<const perseus_simulated_kernel*>(kernel));
    if (!given) return tl::unexpected(given.error());
    const auto costs = KernelOf(table, row_size, rows);
    if (!costs) return tl::unexpected(costs.error());
    std::optional<double> ready;
    if (ready_seconds > 0) ready = ready_seconds;
    const auto launch = gpus->gpus->LaunchKernel(gpu, *costs, ready);
    if (!launch) return tl::unexpected(launch.error());
    perseus_simulated_kernel known = {};
    known.id = launch->id;
    known.gpu = gpu;
    known.start_mhz = launch->start_mhz;
    return c_boundary::CopyOut(kKernel, known, kernel);
  });
}

perseus_status perseus_simulated_wait(perseus_simulated* gpus, perseus_simulated_kernel* kernel,
                                      char** message) {
  return Run(message, [&]() -> Result<void> {
    auto known = c_boundary::CopyIn(kKernel, static_cast<const perseus_simulated_kernel*>(kernel));
    if (!known) return tl::unexpected(known.error());
    if (Result<void> good = CheckGpu(gpus, known->gpu); !good) return good;
    const auto run =
        gpus->gpus->WaitKernel(known->gpu, {.id = known->id, .start_mhz = known->start_mhz});
    if (!run) return tl::unexpected(run.error());
    known->seconds = run->seconds;
    known->joules = run->joules;
    known->begin_seconds = run->begin_seconds;
    known->end_seconds = run->end_seconds;
    return c_boundary::CopyOut(kKernel, *known, kernel);
  });
}

perseus_status perseus_simulated_set_slowdown(perseus_simulated* gpus, int32_t gpu, double times,
                                              char** message) {
  return Run(message, [&]() -> Result<void> {
    if (Result<void> good = CheckGpu(gpus, gpu); !good) return good;
    return gpus->gpus->SetSlowdown(gpu, times);
  });
}

perseus_status perseus_simulated_set_refuse(perseus_simulated* gpus, int32_t gpu, int refuse,
                                            char** message) {
  return Run(message, [&]() -> Result<void> {
    if (Result<void> good = CheckGpu(gpus, gpu); !good) return good;
    gpus->gpus->SetRefuseSets(gpu, refuse != 0);
    return {};
  });
}
