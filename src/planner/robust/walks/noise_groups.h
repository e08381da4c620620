// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_WALKS_NOISE_GROUPS_H_
#define PERSEUS_ROBUST_WALKS_NOISE_GROUPS_H_

#include <vector>

#include "perseus/conditions.h"
#include "robust/replay/lane_replay.h"
#include "robust/replay/samples.h"
#include "robust/replay/trials.h"

namespace perseus::robust {

// The noises at the ends of the conditions' ranges. The lanes of a search have a group for each,
// and the group that is latest counts: as a multiple of its baseline, and as late as trials find
// it.
class NoiseGroups {
 public:
  explicit NoiseGroups(const Conditions& conditions);

  // [group]; the most of all first. One where no noise is a range.
  const std::vector<TimeNoise>& noises() const { return noises_; }
  bool many() const { return noises_.size() > 1; }
  bool noisy() const;

  // The replay is at maximum clocks, and all scales are 1.
  void SetBaseline(const LaneReplay& replay, const Samples& samples, double end_delay);
  // Mean of all lanes at maximum clocks, whatever their groups.
  double mean_baseline_seconds() const { return mean_baseline_seconds_; }

  // `bias`: [group], by how much trials find it slower than the lanes do, in per cent.
  void SetScales(const std::vector<double>& bias, Samples* samples) const;
  // From how much slower a choice is at each corner of the trials, with the replay at that choice.
  void LearnBias(const Trials& trials, const std::vector<double>& slower_at,
                 const LaneReplay& replay, const Samples& samples, std::vector<double>* bias) const;

 private:
  std::vector<double> SecondsOf(const LaneReplay& replay, const Samples& samples) const;

  std::vector<TimeNoise> noises_;
  std::vector<double> baselines_;  // [group]: mean seconds.
  double baseline_seconds_ = 0;    // Of the group that is latest.
  double mean_baseline_seconds_ = 0;
  double end_delay_ = 0;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_WALKS_NOISE_GROUPS_H_
