// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_WATCH_JSON_H_
#define PERSEUS_SERVER_API_WATCH_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "server/api/api_schemas.h"
#include "server/domain/watch_settings.h"
#include "server/runtime/managed_job.h"

// The API's JSON for straggler detection and for the comparison with no clock set.
namespace perseus::server {

// Request bodies.
inline constexpr NumberRange kThresholds = {.least = kLeastThreshold, .most = kMostThreshold};
inline constexpr Field kNewDetectionMembers[] = {
    Choice("mode", "off advisory act")
        .Optional()
        .Says("advisory: only says so; act: has the plans answer"),
    Number("threshold").In(kThresholds).Optional().Says("A shift smaller than this share is none"),
    Integer("window")
        .In({.least = kLeastWindow, .most = kMostWindow})
        .Optional()
        .Says("Iterations that are looked at together")};
inline constexpr AnyMessage kNewDetectionSchema = {
    .name = "NewDetection", .fields = kNewDetectionMembers, .is_closed = true};
inline constexpr NumberRange kComparisonRange = {.least = 0, .most = ComparisonBlocks::kMostEvery};
inline constexpr Field kNewComparisonMembers[] = {
    Integer("every").In(kComparisonRange).Says("0: no comparison"),
    Integer("iterations").In(kComparisonRange).Optional()};
inline constexpr AnyMessage kNewComparisonSchema = {
    .name = "NewComparison", .fields = kNewComparisonMembers, .is_closed = true};

nlohmann::ordered_json DetectionSettingsJson(const WatchSettings& settings);
nlohmann::ordered_json ComparisonJson(const ComparisonBlocks& blocks);  // Null: none.

// The newest saving that was measured, a LastRealised; null: none was.
nlohmann::ordered_json LastRealisedJson(const WatchView& view);
nlohmann::ordered_json DetectionJson(const WatchView& view);
// The saving that the plan promises and the saving that was measured. In shadow mode no clock is
// set, so the promise is only an estimate.
nlohmann::ordered_json SavingsJson(const JobView& view);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_WATCH_JSON_H_
