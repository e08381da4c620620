// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/watch_settings.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/json_text.h"
#include "common/tree.h"
#include "common/tree_reader.h"

namespace perseus::server {
namespace {

constexpr int kMostRankNumber = 2'000'000'000;

}  // namespace

std::optional<DetectionMode> ParseDetectionMode(std::string_view name) {
  const auto* const found = std::find(kDetectionModeNames.begin(), kDetectionModeNames.end(), name);
  if (found == kDetectionModeNames.end()) return std::nullopt;
  return static_cast<DetectionMode>(found - kDetectionModeNames.begin());
}

std::string FormatWatchState(const WatchState& state) {
  const WatchSettings& settings = state.settings;
  nlohmann::ordered_json json = {{"mode", DetectionModeName(settings.mode)},
                                 {"threshold", settings.shift.threshold},
                                 {"window", settings.shift.window},
                                 {"every", settings.comparison.every},
                                 {"iterations", settings.comparison.iterations},
                                 {"detected", nlohmann::ordered_json::array()}};
  for (const DetectedStraggler& straggler : state.detected) {
    json["detected"].push_back({{"straggler", straggler.straggler},
                                {"rank", straggler.rank},
                                {"factor", straggler.factor},
                                {"reference", straggler.reference}});
  }
  return FormatCompact(json);
}

Result<WatchState> ParseWatchState(const std::string& json) {
  WatchState state;
  if (json.empty()) return state;
  const std::string name = "detection";
  const Result<TreeNode> tree = ParseJsonTree(json, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  WatchSettings& settings = state.settings;
  if (const auto mode = ParseDetectionMode(root.Get("mode").String())) {
    settings.mode = *mode;
  } else {
    root.Get("mode").FailExpected("off, advisory or act");
  }
  settings.shift.threshold =
      root.Get("threshold").Number({.least = kLeastThreshold, .most = kMostThreshold});
  settings.shift.window = root.Get("window").Integer(kLeastWindow, kMostWindow);
  settings.comparison.every = root.Get("every").Integer(0, ComparisonBlocks::kMostEvery);
  settings.comparison.iterations = root.Get("iterations").Integer(0, ComparisonBlocks::kMostEvery);
  if (settings.comparison.is_on() && !settings.comparison.is_valid()) {
    root.Get("every").FailExpected("stretches of 2 iterations at least");
  }
  const TreeCursor detected = root.Get("detected");
  const std::size_t count = detected.Size();
  for (std::size_t i = 0; i < count && !reader.failed(); ++i) {
    const TreeCursor each = detected.At(i);
    DetectedStraggler straggler;
    straggler.straggler = static_cast<std::int64_t>(each.Get("straggler").Number(kNotNegative));
    straggler.rank = each.Get("rank").Integer(0, kMostRankNumber);
    straggler.factor = each.Get("factor").Number({.least = 1, .most = 1e6});
    straggler.reference = each.Get("reference").Number({.least = -100, .most = 100});
    state.detected.push_back(straggler);
  }
  if (reader.failed()) return tl::unexpected(*reader.error());
  return state;
}

}  // namespace perseus::server
