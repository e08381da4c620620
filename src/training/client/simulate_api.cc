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

#include "device/simulated_gpu.h"
#include "perseus/simulate.h"

// perseus/simulate.h on device/simulated_gpu.h. Nothing is thrown across it.

struct perseus_simulated {
  std::unique_ptr<perseus::device::SimulatedGpus> gpus;
};

namespace {

using perseus::Error;
using perseus::ErrorCode;
using perseus::InvalidInput;
using perseus::Result;

// Where an error's sentence goes.
struct Message {
  char* text;
  std::size_t size;

  perseus_status Say(perseus_status status, std::string_view sentence) const {
    if (text != nullptr && size > 0) {
      const std::size_t length = std::min(sentence.size(), size - 1);
      std::memcpy(text, sentence.data(), length);
      text[length] = '\0';
    }
    return status;
  }
  perseus_status Say(const Error& error) const {
    const bool ours = error.code == ErrorCode::kInvalidInput;
    return Say(ours ? PERSEUS_INVALID : PERSEUS_UNAVAILABLE, error.message);
  }
};

// Runs `body`, a function that returns Result<void>.
template <typename Body>
perseus_status Guarded(Message message, Body body) {
  try {
    const Result<void> done = body();
    return done ? PERSEUS_OK : message.Say(done.error());
  } catch (const std::bad_alloc&) {
    return message.Say(PERSEUS_NO_MEMORY, "no memory");
  } catch (const std::exception& error) {
    return message.Say(PERSEUS_UNAVAILABLE, error.what());
  }
}

Result<void> CheckGpu(const perseus_simulated* gpus, std::int32_t gpu) {
  if (gpus == nullptr) return InvalidInput("no simulated GPUs are open");
  if (gpu < 0 || gpu >= gpus->gpus->count()) {
    return InvalidInput(fmt::format("there is no simulated GPU {}: they are 0 to {}", gpu,
                                    gpus->gpus->count() - 1));
  }
  return {};
}

Result<perseus::device::Kernel> KernelOf(const perseus_simulated_cost* table, std::size_t rows) {
  if (table == nullptr || rows == 0)
    return InvalidInput("a kernel needs one row of costs at least");
  perseus::device::Kernel kernel;
  for (std::size_t i = 0; i < rows; ++i) {
    if (!(table[i].mhz >= 1 && table[i].mhz <= 1e6)) {
      return InvalidInput(fmt::format("{} MHz is no clock of a kernel", table[i].mhz));
    }
    kernel.push_back({.mhz = static_cast<int>(std::lround(table[i].mhz)),
                      .seconds = table[i].seconds,
                      .joules = table[i].joules});
  }
  return kernel;
}

}  // namespace

perseus_status perseus_simulated_create(const char* path, const char* toml, char* message,
                                        size_t message_size) {
  return Guarded({message, message_size}, [&]() -> Result<void> {
    if (path == nullptr || toml == nullptr) return InvalidInput("a path and TOML are needed");
    return perseus::device::CreateSimulatedGpus(path, toml, "the configuration");
  });
}

perseus_status perseus_simulated_open(const char* path, perseus_simulated** gpus, char* message,
                                      size_t message_size) {
  return Guarded({message, message_size}, [&]() -> Result<void> {
    if (path == nullptr || gpus == nullptr) return InvalidInput("a path is needed");
    *gpus = nullptr;
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
  static_cast<void>(Message{text, size}.Say(PERSEUS_OK, uuid));
  return uuid.size();
}

perseus_status perseus_simulated_read(perseus_simulated* gpus, int32_t gpu,
                                      perseus_simulated_snapshot* snapshot, char* message,
                                      size_t message_size) {
  return Guarded({message, message_size}, [&]() -> Result<void> {
    if (Result<void> good = CheckGpu(gpus, gpu); !good) return good;
    if (snapshot == nullptr) return InvalidInput("a snapshot is needed");
    const auto now = gpus->gpus->Snapshot(gpu);
    if (!now) return tl::unexpected(now.error());
    *snapshot = {.at_seconds = now->at_seconds,
                 .clock_mhz = now->clock_mhz,
                 .locked_mhz = now->locked_mhz.value_or(0),
                 .joules = now->joules,
                 .watts = now->watts,
                 .set_calls = now->set_calls};
    return {};
  });
}

perseus_status perseus_simulated_launch(perseus_simulated* gpus, int32_t gpu,
                                        const perseus_simulated_cost* table, size_t rows,
                                        double ready_seconds, perseus_simulated_kernel* kernel,
                                        char* message, size_t message_size) {
  return Guarded({message, message_size}, [&]() -> Result<void> {
    if (Result<void> good = CheckGpu(gpus, gpu); !good) return good;
    if (kernel == nullptr) return InvalidInput("a kernel is needed");
    const auto costs = KernelOf(table, rows);
    if (!costs) return tl::unexpected(costs.error());
    std::optional<double> ready;
    if (ready_seconds > 0) ready = ready_seconds;
    const auto launch = gpus->gpus->LaunchKernel(gpu, *costs, ready);
    if (!launch) return tl::unexpected(launch.error());
    *kernel = {};
    kernel->id = launch->id;
    kernel->gpu = gpu;
    kernel->start_mhz = launch->start_mhz;
    return {};
  });
}

perseus_status perseus_simulated_wait(perseus_simulated* gpus, perseus_simulated_kernel* kernel,
                                      char* message, size_t message_size) {
  return Guarded({message, message_size}, [&]() -> Result<void> {
    if (kernel == nullptr) return InvalidInput("a kernel is needed");
    if (Result<void> good = CheckGpu(gpus, kernel->gpu); !good) return good;
    const auto run =
        gpus->gpus->WaitKernel(kernel->gpu, {.id = kernel->id, .start_mhz = kernel->start_mhz});
    if (!run) return tl::unexpected(run.error());
    kernel->seconds = run->seconds;
    kernel->joules = run->joules;
    kernel->begin_seconds = run->begin_seconds;
    kernel->end_seconds = run->end_seconds;
    return {};
  });
}

perseus_status perseus_simulated_set_slowdown(perseus_simulated* gpus, int32_t gpu, double times,
                                              char* message, size_t message_size) {
  return Guarded({message, message_size}, [&]() -> Result<void> {
    if (Result<void> good = CheckGpu(gpus, gpu); !good) return good;
    return gpus->gpus->SetSlowdown(gpu, times);
  });
}

perseus_status perseus_simulated_set_refuse(perseus_simulated* gpus, int32_t gpu, int refuse,
                                            char* message, size_t message_size) {
  return Guarded({message, message_size}, [&]() -> Result<void> {
    if (Result<void> good = CheckGpu(gpus, gpu); !good) return good;
    gpus->gpus->SetRefuseSets(gpu, refuse != 0);
    return {};
  });
}
