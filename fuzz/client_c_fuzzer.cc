// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any calls of perseus/client.h and perseus/simulate.h, in any order and with any arguments: a
// status and one sentence, or nothing, never a crash. The first byte chooses between the two. A
// client has no server and no device, so that an input costs little time.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "bytes.h"
#include "perseus/client.h"
#include "perseus/simulate.h"

namespace {

// A wrong argument has a sentence; nothing is our fault.
void Check(perseus_status status, char** message) {
  if ((status == PERSEUS_OK) != (*message == nullptr)) std::abort();
  if (status == PERSEUS_INTERNAL) std::abort();
  perseus_client_free_text(*message);
  *message = nullptr;
}

perseus_client* Open(Bytes* bytes) {
  perseus_client_options options;
  perseus_client_options_init(&options, sizeof(options));
  options.close_timeout_seconds = 0.1;
  switch (bytes->Take<std::uint8_t>() % 8) {
    case 0:
      options.struct_size = bytes->Take<std::uint16_t>() % sizeof(options);
      break;
    case 1:
      options.device = bytes->Take<std::uint8_t>() % 2 == 0 ? "nvlm" : "agent:";
      break;
    case 2:
      options.max_early_loss = bytes->Take<double>();
      options.min_interval_seconds = bytes->Take<double>();
      break;
    case 3:
      options.profile_iterations = bytes->Take<std::int32_t>();
      options.profile_stride = bytes->Take<std::int32_t>();
      options.gpu_index = bytes->Take<std::int32_t>();
      break;
    case 4:
      options.flags = bytes->Take<std::uint32_t>() & ~static_cast<std::uint32_t>(PERSEUS_STRICT);
      options.rank = bytes->Take<std::int32_t>();
      break;
    default:
      break;
  }
  perseus_client* client = nullptr;
  char* message = nullptr;
  const perseus_status status = perseus_client_open(&options, &client, &message);
  Check(status, &message);
  if ((client == nullptr) == (status == PERSEUS_OK)) std::abort();
  return client;
}

void StepPlan(perseus_client* client, Bytes* bytes) {
  constexpr std::size_t kRows = 8;
  constexpr std::size_t kSpare = 64;  // Behind the rows, for sizes that are too large.
  std::vector<std::uint8_t> memory(kRows * (sizeof(perseus_step_row) + kSpare), 0);
  const std::size_t size = bytes->Take<std::uint8_t>() % 4 == 0
                               ? bytes->Take<std::uint8_t>() % (sizeof(perseus_step_row) + kSpare)
                               : sizeof(perseus_step_row);
  const std::size_t count = bytes->Take<std::uint8_t>() % (kRows + 1);
  for (std::size_t i = 0; i < count; ++i) {
    perseus_step_row row = {};
    row.fused_type = bytes->Take<std::int8_t>();
    row.microbatch = bytes->Take<std::int8_t>();
    row.clock_mhz = bytes->Take<std::int16_t>();
    row.duration_seconds = bytes->Take<std::uint8_t>() % 4 == 0 ? bytes->Take<double>() : 0.01;
    std::memcpy(memory.data() + i * sizeof(row), &row, sizeof(row));
  }
  char* message = nullptr;
  Check(perseus_step_plan(client, bytes->Take<std::int8_t>(),
                          reinterpret_cast<const perseus_step_row*>(memory.data()), size, count,
                          &message),
        &message);
}

void Call(perseus_client* client, Bytes* bytes) {
  char* message = nullptr;
  const auto type = static_cast<perseus_instruction>(bytes->Take<std::uint8_t>() % 6);
  switch (bytes->Take<std::uint8_t>() % 13) {
    case 0:
      return perseus_step_begin(client, bytes->Take<std::int64_t>());
    case 1:
      return perseus_step_end(client, bytes->Take<std::int64_t>());
    case 2:
      return perseus_instruction_begin(client, type, bytes->Take<std::int32_t>(),
                                       bytes->Take<std::int32_t>());
    case 3:
      return perseus_instruction_end(client, type, bytes->Take<std::int32_t>(),
                                     bytes->Take<std::int32_t>());
    case 4:
      return perseus_step_busy(client, type, bytes->Take<double>());
    case 5:
      return StepPlan(client, bytes);
    case 6: {
      const double begin = bytes->Take<double>();
      const double end = bytes->Take<double>();
      return perseus_step_times(client, bytes->Take<std::int64_t>(), &begin, &end,
                                bytes->Take<std::uint8_t>() % 2);
    }
    case 7:
      Check(perseus_straggler_set(client, bytes->Take<std::int32_t>(), bytes->Take<double>(),
                                  bytes->Take<double>(), &message),
            &message);
      return;
    case 8: {
      perseus_client_stats stats = {};
      stats.struct_size = bytes->Take<std::uint16_t>() % (sizeof(stats) + 1);
      Check(perseus_client_get_stats(client, &stats, &message), &message);
      return;
    }
    case 9:
      return perseus_instruction_work(client, bytes->Take<double>());
    case 10:
      return perseus_step_abandon(client);
    case 11:
      Check(perseus_straggler_clear(client, bytes->Take<std::int32_t>(), &message), &message);
      return;
    default:
      return perseus_client_stop(client);
  }
}

// GPUs of this process, made anew for each input.
class Gpus {
 public:
  explicit Gpus(Bytes* bytes) : bytes_(bytes) {
    static const std::string path = "/tmp/perseus_client_c_fuzzer." + std::to_string(getpid());
    const bool good = bytes->Take<std::uint8_t>() % 8 != 0;
    const std::string toml =
        good ? "[[gpus]]\nclocks_mhz = [800, 1400]\ncount = 2\n"
             : "[[gpus]]\nclocks_mhz = [" + std::to_string(bytes->Take<std::int16_t>()) + "]\n";
    char* message = nullptr;
    Check(perseus_simulated_create(path.c_str(), toml.c_str(), &message), &message);
    const perseus_status status = perseus_simulated_open(path.c_str(), &gpus_, &message);
    Check(status, &message);
    if ((gpus_ == nullptr) == (status == PERSEUS_OK)) std::abort();
    unlink(path.c_str());
  }
  ~Gpus() { perseus_simulated_close(gpus_); }
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

  void Call() {
    char* message = nullptr;
    const std::int32_t gpu = bytes_->Take<std::int8_t>() % 4;
    switch (bytes_->Take<std::uint8_t>() % 6) {
      case 0:
        return Launch(gpu);
      case 1:
        if (!slow_) Check(perseus_simulated_wait(gpus_, Kernel(), &message), &message);
        return;
      case 2: {
        auto* snapshot = Begin<perseus_simulated_snapshot>();
        Check(perseus_simulated_read(gpus_, gpu, snapshot, &message), &message);
        return;
      }
      case 3: {
        const double times = bytes_->Take<double>();
        slow_ = slow_ || times > 2;
        Check(perseus_simulated_set_slowdown(gpus_, gpu, times, &message), &message);
        return;
      }
      case 4:
        Check(perseus_simulated_set_refuse(gpus_, gpu, bytes_->Take<std::int8_t>(), &message),
              &message);
        return;
      default: {
        char uuid[16];
        const std::size_t size = bytes_->Take<std::uint8_t>() % (sizeof(uuid) + 1);
        perseus_simulated_uuid(gpus_, gpu, size == 0 ? nullptr : uuid, size);
        if (perseus_simulated_count(gpus_) < 0 || !(perseus_simulated_now(gpus_) >= 0)) {
          std::abort();
        }
      }
    }
  }

 private:
  // Behind every struct there is memory for the largest size that is believed.
  static constexpr std::size_t kRoom = 4096;

  template <typename Struct>
  Struct* Begin() {
    static std::vector<std::uint64_t> room(kRoom / sizeof(std::uint64_t));
    std::fill(room.begin(), room.end(), 0);
    std::uint32_t size = sizeof(Struct);
    if (bytes_->Take<std::uint8_t>() % 4 == 0) size = bytes_->Take<std::uint16_t>();
    std::memcpy(room.data(), &size, sizeof(size));
    return reinterpret_cast<Struct*>(room.data());
  }
  perseus_simulated_kernel* Kernel() {
    auto* kernel = Begin<perseus_simulated_kernel>();
    kernel->gpu = bytes_->Take<std::int8_t>() % 4;
    kernel->id = bytes_->Take<std::uint8_t>() % 32;
    return kernel;
  }

  // A computation that would run for long is begun last: nobody waits for it.
  void Launch(std::int32_t gpu) {
    if (slow_) return;
    constexpr std::size_t kRows = 4;
    constexpr std::size_t kSpare = 64;
    static const double kSeconds[] = {1e-6, 1e-5, 0, -1, std::nan(""), 1e300};
    std::vector<std::uint8_t> memory(kRows * (sizeof(perseus_simulated_cost) + kSpare), 0);
    const std::size_t size =
        bytes_->Take<std::uint8_t>() % 4 == 0
            ? bytes_->Take<std::uint8_t>() % (sizeof(perseus_simulated_cost) + kSpare)
            : sizeof(perseus_simulated_cost);
    const std::size_t count = bytes_->Take<std::uint8_t>() % (kRows + 1);
    for (std::size_t i = 0; i < count; ++i) {
      perseus_simulated_cost cost = {};
      cost.mhz = bytes_->Take<std::uint8_t>() % 4 == 0 ? bytes_->Take<double>()
                                                       : 800 + 200.0 * static_cast<double>(i);
      cost.seconds = kSeconds[bytes_->Take<std::uint8_t>() % std::size(kSeconds)];
      cost.joules = bytes_->Take<std::int8_t>();
      slow_ = slow_ || cost.seconds > 1;
      std::memcpy(memory.data() + i * sizeof(cost), &cost, sizeof(cost));
    }
    const bool now = bytes_->Take<std::uint8_t>() % 4 != 0;
    const double ready = now ? 0 : bytes_->Take<double>();
    slow_ = slow_ || ready > 0;
    char* message = nullptr;
    Check(perseus_simulated_launch(gpus_, gpu,
                                   reinterpret_cast<const perseus_simulated_cost*>(memory.data()),
                                   size, count, ready, Kernel(), &message),
          &message);
  }

  Bytes* bytes_;
  perseus_simulated* gpus_ = nullptr;
  bool slow_ = false;  // A wait may take long.
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  if (bytes.Take<std::uint8_t>() == 's') {
    Gpus gpus(&bytes);
    constexpr int kMostGpuCalls = 32;
    for (int i = 0; i < kMostGpuCalls && !bytes.empty(); ++i) gpus.Call();
    return 0;
  }
  perseus_client* const client = Open(&bytes);
  constexpr int kMostCalls = 64;
  for (int i = 0; i < kMostCalls && !bytes.empty(); ++i) Call(client, &bytes);
  char error[256];
  perseus_client_last_error(client, error, sizeof(error));
  perseus_client_close(client);
  return 0;
}
