// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_WATCH_JSON_H_
#define PERSEUS_SERVER_API_WATCH_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "server/runtime/managed_job.h"
#include "server/watch/watch_settings.h"

// Detection and comparison as the API shows them.
namespace perseus::server {

nlohmann::ordered_json DetectionSettingsJson(const WatchSettings& settings);
nlohmann::ordered_json ComparisonJson(const ComparisonBlocks& blocks);  // Null: none.

nlohmann::ordered_json DetectionJson(const WatchView& view);
// What the plan promises, and what was measured of it. In shadow mode nothing is saved: the
// promise is an estimate then.
nlohmann::ordered_json SavingsJson(const JobView& view);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_WATCH_JSON_H_
