// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_API_SCHEMAS_H_
#define PERSEUS_SERVER_API_API_SCHEMAS_H_

#include <array>
#include <span>

#include "server/domain/schema.h"

// The schemas of the API's request and answer bodies. Each list stands beside the code that reads
// and writes its objects. A schema comes after its base.
namespace perseus::server {

using Schemas = std::span<const AnyMessage>;

Schemas StragglerSchemas();
Schemas WatchSchemas();
Schemas HistorySchemas();
Schemas ProfileSchemas();
Schemas ConditionsSchemas();
Schemas JobSchemas();
Schemas NewJobSchemas();
Schemas LabelsSchemas();
Schemas RankSchemas();
Schemas RankGridSchemas();
Schemas NodeSchemas();
Schemas TimelineSchemas();
Schemas MeasurementSchemas();
Schemas PlanSchemas();
Schemas ZeusSchemas();

// The settings of a new job that are not fields of job files.
const AnyMessage& JobSettingsSchema();

inline std::array<Schemas, 15> AllSchemas() {
  return {StragglerSchemas(),   WatchSchemas(),    HistorySchemas(),  ProfileSchemas(),
          ConditionsSchemas(),  JobSchemas(),      NewJobSchemas(),   LabelsSchemas(),
          RankSchemas(),        RankGridSchemas(), TimelineSchemas(), NodeSchemas(),
          MeasurementSchemas(), PlanSchemas(),     ZeusSchemas()};
}

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_API_SCHEMAS_H_
