// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "perseus/job_file.h"

// The first byte chooses the format, the rest is the file: a job or one
// sentence, with its place.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto format =
      data[0] == 'j' ? perseus::JobFileFormat::kJson : perseus::JobFileFormat::kToml;
  const auto job = perseus::ParseJobFile(text, "job", format);
  if (!job && (job.error().code != perseus::ErrorCode::kInvalidInput ||
               !job.error().message.starts_with("job:"))) {
    std::abort();
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

// Readers go wrong at the second fault, after one was recorded: every other
// mutation puts a whole member, right or wrong, among the others.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  static constexpr std::array<std::string_view, 30> kKeys = {"profile",
                                                             "schedule",
                                                             "schedule_file",
                                                             "stages",
                                                             "microbatches",
                                                             "tp",
                                                             "virtual_stages",
                                                             "microbatch_group_size",
                                                             "dp",
                                                             "split_ratio",
                                                             "blocking_power",
                                                             "iteration_overhead",
                                                             "comm_delay",
                                                             "data_loading",
                                                             "at",
                                                             "granularity",
                                                             "time_margin",
                                                             "coarse_watts",
                                                             "effort",
                                                             "output",
                                                             "exponential_fit",
                                                             "conditions",
                                                             "noise",
                                                             "switch_latency",
                                                             "call_ahead",
                                                             "max_changes",
                                                             "confidence",
                                                             "unknown"};
  static constexpr std::array<std::string_view, 16> kValues = {
      "\"\"",      "3",          "-1",          "0.5",        "1e300",    "true",
      "[]",        "[1, \"a\"]", "[0.5, 2]",    "{}",         "\"1f1b\"", "\"1.02x\"",
      "\"stage\"", "\"2sigma\"", "\"a/b.csv\"", "\"\\u0000\""};
  std::minstd_rand random(seed);
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random()) % count; };
  if (size == 0 || below(2) == 0) return LLVMFuzzerMutate(data, size, max_size);
  const bool is_json = data[0] == 'j';
  const std::string_view key = kKeys[below(kKeys.size())];
  const std::string_view value = kValues[below(kValues.size())];
  std::string member;
  if (is_json) {
    member.append("\"").append(key).append("\": ").append(value).append(",\n");
  } else {
    member.append(key).append(" = ").append(value).append("\n");
  }
  if (size + member.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  // After a line's end, or at the beginning.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line_end = text.find('\n', below(size));
  const std::size_t brace = text.find('{');
  std::size_t at = line_end == std::string_view::npos ? 1 : line_end + 1;
  if (is_json && brace != std::string_view::npos && at <= brace) at = brace + 1;
  std::memmove(data + at + member.size(), data + at, size - at);
  std::memcpy(data + at, member.data(), member.size());
  return size + member.size();
}
