// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_RECORDER_H_
#define PERSEUS_MEASURE_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
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

// An iteration that has ended. If it is not good (it was abandoned, or its device times did not
// fit), the iterations before and after it do not follow each other.
struct Recorded {
  Iteration iteration;
  bool good = false;
};

// Assembles iterations from a trainer's events, which must come in order. Device times replace
// those of the events; each iteration waits for them until kPatience newer iterations have ended.
// If computations are nested, only the outer one counts. For one thread.
class Recorder {
 public:
  void BeginIteration(std::int64_t number, std::int64_t at_ns);
  void EndIteration(std::int64_t at_ns);
  void AbandonIteration();
  void SetWork(double work) { work_ = work; }  // Work of the next computation.
  void Begin(std::size_t kind, std::int64_t at_ns);
  void End(std::int64_t at_ns);
  // Device times of iteration `number`: begin and end of each computation since the begin of the
  // iteration, in the order of the begin events.
  void SetTimes(std::int64_t number, const std::vector<std::pair<std::int64_t, std::int64_t>>& ns);

  bool in_iteration() const { return in_iteration_; }
  // Iterations that are complete, oldest first.
  std::vector<Recorded> Take();

 private:
  static constexpr std::size_t kPatience = 3;

  struct Open {
    std::int64_t number = 0;
    Recorded recorded;
    std::vector<bool> outer;  // For each begin event: it is not nested.
    bool complete = false;
  };

  bool in_iteration_ = false;
  bool has_times_ = false;
  double work_ = 0;
  int depth_ = 0;
  Open current_;
  std::deque<Open> ended_;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_RECORDER_H_
