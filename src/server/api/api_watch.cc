// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Detection of stragglers, and the comparison of the plan with maximum clocks.

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "server/api/api.h"
#include "server/api/api_handlers.h"
#include "server/api/api_text.h"
#include "server/api/watch_json.h"

namespace perseus::server {
namespace {

using http::Request;
using http::Role;

struct DetectionRequest {
  std::optional<DetectionMode> mode;
  std::optional<double> threshold;
  std::optional<int> window;
};

Outcome<DetectionRequest> ReadDetection(const std::string& body) {
  DetectionRequest detection;
  const Outcome<void> read = ReadBody(body, [&](const TreeCursor& root) {
    constexpr std::array<std::string_view, 3> kKeys = {"mode", "threshold", "window"};
    root.AllowOnly(kKeys);
    if (const auto mode = FindSet(root, "mode")) {
      detection.mode = ParseDetectionMode(mode->String());
      if (!detection.mode) mode->FailExpected("off, advisory or act");
    }
    detection.threshold =
        FindNumber(root, "threshold", {.least = kLeastThreshold, .most = kMostThreshold});
    if (const auto window = FindSet(root, "window")) {
      detection.window = window->Integer(kLeastWindow, kMostWindow);
    }
  });
  if (!read) return tl::unexpected(read.error());
  return detection;
}

// What is not named stays as it is.
http::Response SetDetection(ManagedJob& job, const Request& request) {
  const auto detection = ReadDetection(request.body);
  if (!detection) return FailureResponse(detection.error());
  const auto settings = DoAndWait(job, SetWatch{.mode = detection->mode,
                                                .threshold = detection->threshold,
                                                .window = detection->window});
  return settings ? JsonAnswer(200, DetectionSettingsJson(settings->settings))
                  : FailureResponse(settings.error());
}

http::Response ShowDetection(ManagedJob& job, const Request& /*request*/) {
  return JsonAnswer(200, DetectionJson(job.View().watch));
}

Outcome<ComparisonBlocks> ReadComparison(const std::string& body) {
  ComparisonBlocks blocks;
  const Outcome<void> read = ReadBody(body, [&](const TreeCursor& root) {
    constexpr std::array<std::string_view, 2> kKeys = {"every", "iterations"};
    root.AllowOnly(kKeys);
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
  const auto settings = DoAndWait(job, SetWatch{.comparison = blocks});
  return settings ? JsonAnswer(200, {{"comparison", ComparisonJson(settings->settings.comparison)}})
                  : FailureResponse(settings.error());
}

http::Response ShowSavings(ManagedJob& job, const Request& /*request*/) {
  return JsonAnswer(200, SavingsJson(job.View()));
}

}  // namespace

void AddWatchRoutes(JobService& service, std::vector<http::Route>* routes) {
  const auto add = [&](const char* method, const char* pattern, Role role, JobAnswer answer) {
    routes->push_back({method, pattern, role, {}, false, OnJob(service, std::move(answer))});
  };
  add("PUT", "/api/v1/jobs/{id}/detection", Role::kOperate, SetDetection);
  add("GET", "/api/v1/jobs/{id}/detection", Role::kRead, ShowDetection);
  add("PUT", "/api/v1/jobs/{id}/comparison", Role::kOperate,
      [](ManagedJob& job, const Request& request) {
        const auto blocks = ReadComparison(request.body);
        return blocks ? SetComparison(job, *blocks) : FailureResponse(blocks.error());
      });
  add("DELETE", "/api/v1/jobs/{id}/comparison", Role::kOperate,
      [](ManagedJob& job, const Request&) { return SetComparison(job, {}); });
  add("GET", "/api/v1/jobs/{id}/savings", Role::kRead, ShowSavings);
}

}  // namespace perseus::server
