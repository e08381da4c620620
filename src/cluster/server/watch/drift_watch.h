// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_WATCH_DRIFT_WATCH_H_
#define PERSEUS_SERVER_WATCH_DRIFT_WATCH_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "perseus/profile.h"
#include "server/domain/profile_table.h"

namespace perseus::server {

// The mean time of a kind of computation at one clock since the client's last report.
struct KindReport {
  ProfileKey key;
  std::int64_t count = 0;  // Computations.
  double time_seconds = 0;
};

// A kind whose time is not what the profile says.
struct Drift {
  ProfileKey key;
  double measured_seconds = 0;
  double profile_seconds = 0;
  std::int64_t computations = 0;  // That the measured mean is of.

  double ratio() const { return measured_seconds / profile_seconds; }
};

// What became of a kind: it drifts now, or no longer.
struct DriftNews {
  Drift drift;
  bool is_over = false;
};

// Compares the times of computations in training with the profile that plans are made of.
// A kind drifts when the mean of its last reports, kLeastReports and kLeastComputations at
// least, is off by more than three standard deviations of the profile and 2 %, and each
// of the last kLeastReports is off to the same side by half of that at least: one report of
// a disturbed moment is none. It is over when the mean is off by less than half of the
// limit. Not thread-safe.
class DriftWatch {
 public:
  static constexpr std::size_t kLeastReports = 5;
  static constexpr std::int64_t kLeastComputations = 200;
  static constexpr double kLeastShare = 0.02;
  static constexpr double kSigmas = 3;

  // What the profile does not have is passed over.
  std::vector<DriftNews> Add(const KindReport& report, const Profile& profile);
  // Another profile: nothing is known.
  void Reset() { kinds_.clear(); }

  std::vector<Drift> Drifts() const;  // Now; by kind.

 private:
  static constexpr std::size_t kMostReports = 256;
  struct Kind {
    std::deque<KindReport> reports;  // The shortest that is enough, or all so far.
    std::int64_t computations = 0;
    bool drifts = false;
    Drift last;
  };
  std::map<ProfileKey, Kind> kinds_;
};

// "stage 0 forward at 1410 MHz takes 5.1 % longer than the profile says (...)"
std::string DriftText(const Drift& drift);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_WATCH_DRIFT_WATCH_H_
