// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_PROFILE_JSON_H_
#define PERSEUS_SERVER_API_PROFILE_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "server/detect/drift_watch.h"
#include "server/store/facts.h"

namespace perseus::server {

nlohmann::ordered_json DriftJson(const std::vector<Drift>& drifts);
// A profile of the library, without its CSV.
nlohmann::ordered_json ProfileRecordJson(const store::ProfileRecord& profile);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_PROFILE_JSON_H_
