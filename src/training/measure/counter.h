// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_COUNTER_H_
#define PERSEUS_MEASURE_COUNTER_H_

#include <cstdint>
#include <deque>
#include <optional>

namespace perseus::measure {

// A step of an energy counter. When it happened is only known to lie between two reads.
struct Tick {
  std::int64_t after_ns = 0;  // A read that began then showed less,
  std::int64_t by_ns = 0;     // and one that ended then this.
  double joules = 0;
  bool follows = false;  // On the tick before, without a reset or a pause of reading.

  double at_ns() const { return (static_cast<double>(after_ns) + static_cast<double>(by_ns)) / 2; }
};

// Turns reads of a cumulative energy counter, which steps every 20 to 100 ms, into
// its steps. A read that shows what the one before showed is no data. Measures
// the period on the way. One thread; plain data.
class CounterReader {
 public:
  // One read that began and ended then. A step, if this read shows one.
  std::optional<Tick> Add(double joules, std::int64_t begin_ns, std::int64_t end_ns);
  // Reading paused: the next step does not follow on the last.
  void Pause();

  // Median of the newest distances between steps; none: too few were seen.
  std::optional<double> period_seconds() const;
  // Of the newest read; none: not yet.
  std::optional<double> joules() const { return joules_; }

 private:
  static constexpr std::size_t kKept = 128;
  static constexpr std::size_t kFewest = 8;

  std::optional<double> joules_;
  std::int64_t shown_ns_ = 0;  // Begin of the newest read that showed joules_.
  bool follows_ = false;
  std::optional<double> last_at_ns_;  // The step before, where the next follows on it.
  std::deque<double> distances_ns_;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_COUNTER_H_
