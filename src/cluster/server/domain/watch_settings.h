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
#include "server/base/shift_settings.h"

namespace perseus::server {

// What the server does with stragglers that it finds by itself.
enum class DetectionMode : std::uint8_t {
  kOff,
  kAdvisory,  // Says so.
  kAct,       // Says so, and has the plans answer them.
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

// The operator's settings of a job. A value.
struct WatchSettings {
  DetectionMode mode = DetectionMode::kOff;
  ShiftSettings shift;
  ComparisonBlocks comparison;

  friend bool operator==(const WatchSettings&, const WatchSettings&) = default;
};

// A straggler that the plans answer because the server found it.
struct DetectedStraggler {
  std::int64_t straggler = 0;  // The id of its record.
  int rank = 0;
  double factor = 1;
  double reference = 0;  // Of the rank; see StragglerDetector::Adopt().
};

// What is durable of both: jobs.detection of the store.
struct WatchState {
  WatchSettings settings;
  std::vector<DetectedStraggler> detected;  // By rank.
};

std::string FormatWatchState(const WatchState& state);
// "" is the default. Errors: kInvalidInput.
Result<WatchState> ParseWatchState(const std::string& json);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_WATCH_SETTINGS_H_
