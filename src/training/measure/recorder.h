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
