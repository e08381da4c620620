// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_CONDITIONS_JSON_H_
#define PERSEUS_SERVER_API_CONDITIONS_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "server/runtime/managed_job.h"

namespace perseus::server {

// What the job's plans are made for, and what its ranks measure.
nlohmann::ordered_json ConditionsJson(const JobView& view);
// What the library keeps with a profile; null: no job has measured any.
nlohmann::ordered_json KeptConditionsJson(const std::string& conditions_json);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_CONDITIONS_JSON_H_
