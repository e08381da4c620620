// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/walks/noise_groups.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace perseus::robust {

NoiseGroups::NoiseGroups(const Conditions& conditions) {
  const std::vector<Conditions> corners = CornersOf(conditions);
  for (std::size_t k = corners.size() > 1 ? 1 : 0; k < corners.size(); ++k) {
    const TimeNoise& noise = corners[k].noise;
    if (std::find(noises_.begin(), noises_.end(), noise) == noises_.end()) noises_.push_back(noise);
  }
  std::reverse(noises_.begin(), noises_.end());
}

bool NoiseGroups::noisy() const {
  return std::any_of(noises_.begin(), noises_.end(),
                     [](const TimeNoise& noise) { return noise.any(); });
}

std::vector<double> NoiseGroups::SecondsOf(const LaneReplay& replay, const Samples& samples) const {
  std::vector<double> seconds = replay.GroupSums();
  for (std::size_t k = 0; k < seconds.size(); ++k) {
    seconds[k] = seconds[k] / std::max(1, samples.jobs_of[k]) + end_delay_;
  }
  return seconds;
}

void NoiseGroups::SetBaseline(const LaneReplay& replay, const Samples& samples, double end_delay) {
  end_delay_ = end_delay;
  baselines_ = SecondsOf(replay, samples);
  baseline_seconds_ = replay.figures().seconds;
  mean_baseline_seconds_ = baseline_seconds_;
  if (!many()) return;
  mean_baseline_seconds_ = 0;
  for (std::size_t k = 0; k < baselines_.size(); ++k) {
    mean_baseline_seconds_ += baselines_[k] * samples.jobs_of[k] / samples.jobs();
  }
}

void NoiseGroups::SetScales(const std::vector<double>& bias, Samples* samples) const {
  if (!many()) return;
  for (std::size_t k = 0; k < baselines_.size(); ++k) {
    samples->scale[k] = baseline_seconds_ / baselines_[k] * (1 + bias[k] / 100);
  }
}

void NoiseGroups::LearnBias(const Trials& trials, const std::vector<double>& slower_at,
                            const LaneReplay& replay, const Samples& samples,
                            std::vector<double>* bias) const {
  constexpr double kLittle = 0.001;
  const std::vector<double> seconds = SecondsOf(replay, samples);
  std::vector<double> slower(noises_.size(), -std::numeric_limits<double>::infinity());
  for (int k = 1; k < trials.corners(); ++k) {
    const auto found = std::find(noises_.begin(), noises_.end(), trials.corner(k).noise);
    double& own = slower[static_cast<std::size_t>(found - noises_.begin())];
    own = std::max(own, slower_at[k]);
  }
  for (std::size_t k = 0; k < slower.size(); ++k) {
    if (samples.jobs_of[k] == 0) continue;
    const double found = slower[k] - 100 * (seconds[k] / baselines_[k] - 1) + kLittle;
    // What is later than it seemed is believed at once.
    (*bias)[k] = found > (*bias)[k] ? found : (found + (*bias)[k]) / 2;
  }
}

}  // namespace perseus::robust
