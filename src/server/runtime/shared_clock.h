// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_SHARED_CLOCK_H_
#define PERSEUS_SERVER_RUNTIME_SHARED_CLOCK_H_

#include <atomic>
#include <functional>
#include <utility>

#include "perseus/result.h"

namespace perseus::server {

// The time of day of a store that several machines share: a clock that nobody sets plus
// a measured offset, so that a step of this machine's time changes nothing. Where nothing was
// measured, it is this machine's time. Stragglers begin and expire by it. Thread-safe.
class SharedClock {
 public:
  // `local`: this machine's time of day, in seconds since 1970. `steady`: seconds of a clock that
  // cannot be set.
  SharedClock(std::function<double()> local, std::function<double()> steady)
      : local_(std::move(local)), steady_(std::move(steady)) {}

  double Now() const { return is_measured_ ? steady_() + offset_ : local_(); }

  // Asks the store for its time. The store read its clock between call and return, so the error is
  // at most half of that time. If that took long, the last offset stays.
  void Measure(const std::function<Result<double>()>& ask) {
    const double before = steady_();
    const Result<double> there = ask();
    const double took = steady_() - before;
    if (!there || (is_measured_ && took > kMostSeconds)) return;
    offset_ = *there - (before + took / 2);
    is_measured_ = true;
  }

 private:
  static constexpr double kMostSeconds = 0.1;

  const std::function<double()> local_;
  const std::function<double()> steady_;
  std::atomic<double> offset_ = 0;
  std::atomic<bool> is_measured_ = false;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_SHARED_CLOCK_H_
