// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Detection of stragglers, and the comparison of the plan with maximum clocks.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "server/api/api_handlers.h"
#include "server/api/api_text.h"
#include "server/api/watch_json.h"

namespace perseus::server {
namespace {

struct DetectionRequest {
  std::optional<DetectionMode> mode;
  std::optional<double> threshold;
  std::optional<int> window;
};

Outcome<DetectionRequest> ReadDetection(const std::string& body) {
  DetectionRequest detection;
  const Outcome<void> read = ReadBody(body, [&](const TreeCursor& root) {
    AllowOnly(kNewDetectionSchema, root);
    if (const auto mode = FindSet(root, "mode")) {
      detection.mode = ParseDetectionMode(mode->String());
      if (!detection.mode) mode->FailExpected("off, advisory or act");
    }
    detection.threshold = FindNumber(root, "threshold", kThresholds);
    if (const auto window = FindSet(root, "window")) {
      detection.window = window->Integer(kLeastWindow, kMostWindow);
    }
  });
  if (!read) return tl::unexpected(read.error());
  return detection;
}

// What is not named stays as it is.
http::Response SetDetection(ManagedJob& job, const Call& call) {
  const auto detection = ReadDetection(call.request.body);
  if (!detection) return FailureResponse(detection.error());
  const auto settings = job.SetWatch([&](WatchSettings* to) {
    to->mode = detection->mode.value_or(to->mode);
    to->shift.threshold = detection->threshold.value_or(to->shift.threshold);
    to->shift.window = detection->window.value_or(to->shift.window);
  });
  return settings ? JsonAnswer(200, DetectionSettingsJson(*settings))
                  : FailureResponse(settings.error());
}

http::Response ShowDetection(ManagedJob& job, const Call& /*call*/) {
  return JsonAnswer(200, DetectionJson(job.View().watch));
}

Outcome<ComparisonBlocks> ReadComparison(const std::string& body) {
  ComparisonBlocks blocks;
  const Outcome<void> read = ReadBody(body, [&](const TreeCursor& root) {
    AllowOnly(kNewComparisonSchema, root);
    blocks.every = root.Get("every").Integer(0, ComparisonBlocks::kMostEvery);
    if (const auto iterations = FindSet(root, "iterations")) {
      blocks.iterations = iterations->Integer(0, ComparisonBlocks::kMostEvery);
    }
  });
  if (!read) return tl::unexpected(read.error());
  if (blocks.every == 0) return ComparisonBlocks{};
  if (!blocks.is_valid()) {
    return Fail(FailureCode::kInvalid,
                fmt::format("of every {} iterations {} at maximum clocks: each stretch needs at "
                            "least {}, as its first one only settles",
                            blocks.every, blocks.iterations, ComparisonBlocks::kLeastStretch),
                "iterations");
  }
  return blocks;
}

http::Response SetComparison(ManagedJob& job, const ComparisonBlocks& blocks) {
  const auto settings = job.SetWatch([&](WatchSettings* to) { to->comparison = blocks; });
  return settings ? JsonAnswer(200, {{"comparison", ComparisonJson(settings->comparison)}})
                  : FailureResponse(settings.error());
}

http::Response ShowSavings(ManagedJob& job, const Call& /*call*/) {
  return JsonAnswer(200, SavingsJson(job.View()));
}

}  // namespace

void AddWatchRoutes(RouteMaker* routes) {
  routes->OnJob(RowOf("setDetection"), SetDetection);
  routes->OnJob(RowOf("showDetection"), ShowDetection);
  routes->OnJob(RowOf("setComparison"), [](ManagedJob& job, const Call& call) {
    const auto blocks = ReadComparison(call.request.body);
    return blocks ? SetComparison(job, *blocks) : FailureResponse(blocks.error());
  });
  routes->OnJob(RowOf("endComparison"),
                [](ManagedJob& job, const Call&) { return SetComparison(job, {}); });
  routes->OnJob(RowOf("showSavings"), ShowSavings);
}

}  // namespace perseus::server
