// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_COUNTER_H_
#define PERSEUS_MEASURE_COUNTER_H_

#include <cstdint>
#include <deque>
#include <optional>

namespace perseus::measure {

// A step of an energy counter. It happened between two reads; the exact time is not known.
struct Tick {
  std::int64_t after_ns = 0;  // Begin of the last read that showed the old value.
  std::int64_t by_ns = 0;     // End of the first read that showed the new value.
  double joules = 0;
  bool follows = false;  // No reset or pause of reading since the tick before.

  double at_ns() const { return (static_cast<double>(after_ns) + static_cast<double>(by_ns)) / 2; }
};

// Finds the steps of a cumulative energy counter, which steps every 20 to 100 ms, in its reads. A
// read with the same value as the one before gives no information. Also measures the counter's
// period. For one thread.
class CounterReader {
 public:
  // Adds a read with its begin and end. Returns a step if the value has changed.
  std::optional<Tick> Add(double joules, std::int64_t begin_ns, std::int64_t end_ns);
  // Reading was paused, so the next step does not follow the last one.
  void Pause();

  // Median of the newest times between steps; none: too few steps so far.
  std::optional<double> period_seconds() const;
  // Value of the newest read; none: no read yet.
  std::optional<double> joules() const { return joules_; }

 private:
  static constexpr std::size_t kKept = 128;
  static constexpr std::size_t kFewest = 8;

  std::optional<double> joules_;
  std::int64_t shown_ns_ = 0;  // Begin of the newest read that showed joules_.
  bool follows_ = false;
  std::optional<double> last_at_ns_;  // Time of the last step if the next one follows it.
  std::deque<double> distances_ns_;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_COUNTER_H_
