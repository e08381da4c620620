// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_WATCH_SETTINGS_H_
#define PERSEUS_SERVER_DOMAIN_WATCH_SETTINGS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/comparison_blocks.h"
#include "perseus/result.h"

namespace perseus::server {

// When a change in a noisy series counts as a shift; see detect/straggler_detector.h.
struct ShiftSettings {
  // Relative change from which a shift is reported. A change below 3/4 of this never is.
  double threshold = 0.05;
  int window = 16;  // Iterations that are compared together.

  friend bool operator==(const ShiftSettings&, const ShiftSettings&) = default;
};

// The server's action when its detector finds a straggler.
enum class DetectionMode : std::uint8_t {
  kOff,
  kAdvisory,  // Reports it.
  kAct,       // Reports it, and adapts the plans to it.
};
inline constexpr std::array<std::string_view, 3> kDetectionModeNames = {"off", "advisory", "act"};
constexpr std::string_view DetectionModeName(DetectionMode mode) {
  return kDetectionModeNames[static_cast<std::size_t>(mode)];
}
std::optional<DetectionMode> ParseDetectionMode(std::string_view name);

inline constexpr double kLeastThreshold = 0.005;
inline constexpr double kMostThreshold = 2;
inline constexpr int kLeastWindow = 4;
inline constexpr int kMostWindow = 256;

// The operator's settings for one job.
struct WatchSettings {
  DetectionMode mode = DetectionMode::kOff;
  ShiftSettings shift;
  ComparisonBlocks comparison;

  friend bool operator==(const WatchSettings&, const WatchSettings&) = default;
};

// A straggler that the server's detector found and that the plans take into account.
struct DetectedStraggler {
  std::int64_t straggler = 0;  // The id of its record.
  int rank = 0;
  double factor = 1;
  double reference = 0;  // The rank's reference time; see StragglerDetector::Adopt().
};

// Settings and detected stragglers as the store keeps them, in the column jobs.detection.
struct WatchState {
  WatchSettings settings;
  std::vector<DetectedStraggler> detected;  // By rank.
};

std::string FormatWatchState(const WatchState& state);
// "" gives the default settings. Errors: kInvalidInput.
Result<WatchState> ParseWatchState(const std::string& json);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_WATCH_SETTINGS_H_
