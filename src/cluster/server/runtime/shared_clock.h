// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_SHARED_CLOCK_H_
#define PERSEUS_SERVER_RUNTIME_SHARED_CLOCK_H_

#include <atomic>
#include <functional>
#include <utility>

#include "perseus/result.h"

namespace perseus::server {

// The time of day of a store that several machines share: this machine's time plus the measured
// offset of the store's clock. Stragglers begin and expire by it. Thread-safe.
class SharedClock {
 public:
  // `local`: this machine's time. Both times are in seconds since 1970.
  explicit SharedClock(std::function<double()> local) : local_(std::move(local)) {}

  double Now() const { return local_() + offset_; }

  // Asks the store for its time. The store read its clock between call and return, so the error is
  // at most half of that time. If that took long, the last offset stays.
  void Measure(const std::function<Result<double>()>& ask) {
    const double before = local_();
    const Result<double> there = ask();
    const double took = local_() - before;
    if (!there || took < 0 || (is_measured_ && took > kMostSeconds)) return;
    offset_ = *there - (before + took / 2);
    is_measured_ = true;
  }

 private:
  static constexpr double kMostSeconds = 0.1;

  const std::function<double()> local_;
  std::atomic<double> offset_ = 0;
  std::atomic<bool> is_measured_ = false;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_SHARED_CLOCK_H_
