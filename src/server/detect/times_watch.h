// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_TIMES_WATCH_H_
#define PERSEUS_SERVER_DETECT_TIMES_WATCH_H_

#include <cstdint>
#include <map>
#include <vector>

#include "server/detect/drift_watch.h"
#include "server/planning/measured_times.h"

namespace perseus::server {

// The mean time of each kind of computation at each clock that training has run, over the last
// reports of all ranks that are steady. For one thread.
class TimesWatch {
 public:
  // What is less sure than this is not told.
  static constexpr std::int64_t kLeastReports = 5;
  static constexpr double kLeastComputations = 100;
  static constexpr double kMostError = 0.001;  // Of the time.

  void Add(const KindReport& report);
  // Forgets everything. For a new profile.
  void Reset() { kinds_.clear(); }
  // In the order of keys.
  std::vector<MeasuredTime> Measured() const;

 private:
  // Sums over reports, each with the weight of its computations. Old ones fade.
  struct Kind {
    double reports = 0;
    double weight = 0;
    double squares = 0;  // Of weights.
    double mean = 0;
    double spread = 0;  // Sum of weight x (time - mean)^2.
  };
  std::map<ProfileKey, Kind> kinds_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_TIMES_WATCH_H_
