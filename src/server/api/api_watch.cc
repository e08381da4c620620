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

Outcome<SetWatch> ReadDetection(const std::string& body) {
  SetWatch detection;
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
void SetDetection(const JobPointer& job, const CallPointer& call) {
  const auto detection = ReadDetection(call->request.body);
  if (!detection) return Send(*call, FailureResponse(detection.error()));
  Change(job, call, *detection,
         [](const Answer& set) { return JsonAnswer(200, DetectionSettingsJson(set.settings)); });
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
                fmt::format("of every {} iterations {} with no clock set: each stretch needs at "
                            "least {}, as its first one only settles",
                            blocks.every, blocks.iterations, ComparisonBlocks::kLeastStretch),
                "iterations");
  }
  return blocks;
}

void SetComparison(const JobPointer& job, const CallPointer& call,
                   const Outcome<ComparisonBlocks>& blocks) {
  if (!blocks) return Send(*call, FailureResponse(blocks.error()));
  Change(job, call, SetWatch{.comparison = *blocks}, [](const Answer& set) {
    return JsonAnswer(200, {{"comparison", ComparisonJson(set.settings.comparison)}});
  });
}

http::Response ShowSavings(ManagedJob& job, const Call& /*call*/) {
  return JsonAnswer(200, SavingsJson(job.View()));
}

}  // namespace

void AddWatchRoutes(RouteMaker* routes) {
  routes->OnJob(RowOf("setDetection"), SetDetection);
  routes->OnLook(RowOf("showDetection"), ShowDetection);
  routes->OnJob(RowOf("setComparison"), [](const JobPointer& job, const CallPointer& call) {
    SetComparison(job, call, ReadComparison(call->request.body));
  });
  routes->OnJob(RowOf("endComparison"), [](const JobPointer& job, const CallPointer& call) {
    SetComparison(job, call, ComparisonBlocks{});
  });
  routes->OnLook(RowOf("showSavings"), ShowSavings);
}

}  // namespace perseus::server
