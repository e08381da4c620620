// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any calls of perseus/client.h, in any order and with any arguments: a status and one sentence, or
// nothing, never a crash. There is no server and no device, so that an input costs little time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

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

// Takes numbers off the front of bytes; 0 where there are none.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }

  template <typename Number>
  Number Take() {
    Number number = {};
    const std::size_t length = std::min(sizeof(number), size_);
    std::memcpy(&number, data_, length);
    data_ += length;
    size_ -= length;
    return number;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

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
  switch (bytes->Take<std::uint8_t>() % 10) {
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
    default:
      return perseus_client_stop(client);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  perseus_client* const client = Open(&bytes);
  constexpr int kMostCalls = 64;
  for (int i = 0; i < kMostCalls && !bytes.empty(); ++i) Call(client, &bytes);
  char error[256];
  perseus_client_last_error(client, error, sizeof(error));
  perseus_client_close(client);
  return 0;
}
