// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_TIMELINE_H_
#define PERSEUS_MEASURE_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perseus::measure {

inline constexpr double kSecondsPerNs = 1e-9;

// A computation that has run.
struct Span {
  std::size_t kind = 0;  // Index into the sweep's kinds.
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  double work = 0;  // 0: not reported.
};

// One iteration of a rank. Its spans are in order and do not overlap.
struct Iteration {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<Span> spans;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_TIMELINE_H_
