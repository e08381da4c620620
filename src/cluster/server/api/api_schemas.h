// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_API_SCHEMAS_H_
#define PERSEUS_SERVER_API_API_SCHEMAS_H_

#include <array>
#include <span>

#include "server/domain/schema.h"

// What the bodies and the answers of the API look like; each list is beside its readers and
// writers. A schema comes after its base.
namespace perseus::server {

using Schemas = std::span<const ObjectSchema>;

Schemas StragglerSchemas();
Schemas WatchSchemas();
Schemas ProfileSchemas();
Schemas JobSchemas();
Schemas NewJobSchemas();
Schemas RankSchemas();
Schemas MeasurementSchemas();
Schemas PlanSchemas();
Schemas ZeusSchemas();

// Of a new job's settings, beside the fields of job files.
const ObjectSchema& JobSettingsSchema();

inline std::array<Schemas, 9> AllSchemas() {
  return {StragglerSchemas(), WatchSchemas(),       ProfileSchemas(), JobSchemas(), NewJobSchemas(),
          RankSchemas(),      MeasurementSchemas(), PlanSchemas(),    ZeusSchemas()};
}

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_API_SCHEMAS_H_
