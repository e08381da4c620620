// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_RECORDER_H_
#define PERSEUS_MEASURE_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "measure/timeline.h"

namespace perseus::measure {

// An iteration that is over. Not good: it broke off, or its device times did not
// fit; what is before and after it do not follow each other.
struct Recorded {
  Iteration iteration;
  bool good = false;
};

// Puts iterations together from what a trainer says, in order. Where the device's
// own times are given they replace the host's, and iterations wait for them, until
// kPatience newer ones have ended. Of computations that run within another, the
// outer one counts. Plain data; one thread.
class Recorder {
 public:
  void BeginIteration(std::int64_t number, std::int64_t at_ns);
  void EndIteration(std::int64_t at_ns);
  void AbandonIteration();
  void SetWork(double work) { work_ = work; }  // Of the computation that begins next.
  void Begin(std::size_t kind, std::int64_t at_ns);
  void End(std::int64_t at_ns);
  // Begin and end of each computation, in the order of their begins, since the iteration's.
  void SetTimes(std::int64_t number, const std::vector<std::pair<std::int64_t, std::int64_t>>& ns);

  bool in_iteration() const { return in_iteration_; }
  // Iterations that wait for nothing more, oldest first.
  std::vector<Recorded> Take();

 private:
  static constexpr std::size_t kPatience = 3;

  struct Open {
    std::int64_t number = 0;
    Recorded recorded;
    std::vector<bool> outer;  // Of each begin.
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
