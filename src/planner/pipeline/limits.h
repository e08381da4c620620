// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PIPELINE_LIMITS_H_
#define PERSEUS_PIPELINE_LIMITS_H_

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace perseus::pipeline {

// Sixty times the largest pipeline anyone trains (64 stages x 512
// microbatches); beyond it a typing error is likelier than a wish.
inline constexpr std::int64_t kMaxComputations = 4'000'000;

// A schedule file: what can be scheduled can be read back.
inline constexpr std::size_t kMaxScheduleBytes = std::size_t{128} << 20;
static_assert(kMaxScheduleBytes >= kMaxComputations * 32);

inline std::string TooManyComputations() {
  return fmt::format(
      "the schedule would have more than {} computations: use fewer stages or microbatches",
      kMaxComputations);
}

}  // namespace perseus::pipeline

#endif  // PERSEUS_PIPELINE_LIMITS_H_
