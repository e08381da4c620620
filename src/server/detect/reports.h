// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_REPORTS_H_
#define PERSEUS_SERVER_DETECT_REPORTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/base/failure.h"
#include "server/detect/conditions_watch.h"
#include "server/detect/drift_watch.h"
#include "server/detect/job_watch.h"
#include "server/domain/job_life.h"
#include "server/planning/job_spec.h"
#include "server/planning/measured_gaps.h"

namespace perseus::server {

// The state of a client whose trainer has ended.
inline constexpr const char* kClosedState = "closed";

using wire::AgentReport;
using wire::ClientReport;
using wire::IterationReport;

// Fails if these reports do not fit the job. `last_version`: the highest version of the plan that
// any rank may have been told.
Outcome<void> CheckReports(const JobLife& job, std::int64_t last_version,
                           const std::vector<IterationReport>& reports,
                           const std::vector<ClientReport>& clients);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_REPORTS_H_
