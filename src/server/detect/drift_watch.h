// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_DRIFT_WATCH_H_
#define PERSEUS_SERVER_DETECT_DRIFT_WATCH_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "perseus/profile.h"
#include "server/domain/profile_table.h"

namespace perseus::server {

using wire::KindReport;

// A kind of computation whose time in training differs from the profile.
struct Drift {
  ProfileKey key;
  double measured_seconds = 0;
  double profile_seconds = 0;
  std::int64_t computations = 0;  // Number of computations in measured_seconds.

  double ratio() const { return measured_seconds / profile_seconds; }
};

// A kind begins to drift, or its drift ends.
struct DriftNews {
  Drift drift;
  bool is_over = false;
};

// Compares the times of computations in training with the profile that plans are made from. The
// limit is three standard deviations of the profile, but at least 2 %. A kind drifts if
// - the mean of its last reports (at least kLeastReports and kLeastComputations) differs from the
//   profile by more than the limit, and
// - each of the last kLeastReports differs to the same side by at least half the limit. So one
//   disturbed report is no drift.
// The drift ends when the mean differs by less than half the limit. Not thread-safe.
class DriftWatch {
 public:
  static constexpr std::size_t kLeastReports = 5;
  static constexpr std::int64_t kLeastComputations = 200;
  static constexpr double kLeastShare = 0.02;
  static constexpr double kSigmas = 3;

  // Ignores kinds that the profile does not have.
  std::vector<DriftNews> Add(const KindReport& report, const Profile& profile);
  // Forgets everything. For a new profile.
  void Reset() { kinds_.clear(); }

  std::vector<Drift> Drifts() const;  // The present drifts, by kind.

 private:
  static constexpr std::size_t kMostReports = 256;
  struct Kind {
    std::deque<KindReport> reports;  // Only as many of the last reports as a decision needs.
    std::int64_t computations = 0;
    bool drifts = false;
    Drift last;
  };
  std::map<ProfileKey, Kind> kinds_;
};

// "stage 0 forward at 1410 MHz takes 5.1 % longer than the profile says (...)"
std::string DriftText(const Drift& drift);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_DRIFT_WATCH_H_
