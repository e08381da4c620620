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

// What the node's agent told a client.
struct AgentReport {
  std::string version = {};              // Empty: it does not say.
  std::vector<std::string> fights = {};  // What acts against the clock of the rank's GPU.
};

// What the client of a rank reports about itself. Its counts begin when the client starts.
struct ClientReport {
  int rank = 0;
  std::string client = {};   // Of this client alone. Empty: it does not say.
  std::string process = {};  // Which process that is, for people.
  std::string state = {};    // "following", ...
  std::string error = {};    // One sentence. Empty: no error.
  std::int64_t plan_version = 0;
  bool shadow = false;                        // Shadow mode: the client sets no clock.
  std::map<std::string, double> counts = {};  // "calls", "late", ...
  // What its iterations run, where it has no plan and knows. Stage -1: not said.
  std::optional<ComputationCounts> ran = {};
  std::optional<RankConditions> conditions = {};  // Once in a while.
  std::string version = {};                       // Of the client. Empty: it does not say.
  std::optional<AgentReport> agent = {};          // None: it has none.
  std::string relay = {};                         // Version of the relay that sent this; or none.
  double heard_at_seconds = 0;                    // When it came; of Moment::day_seconds.
};

// One iteration of one rank.
struct IterationReport {
  int rank = 0;
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;
  double time_seconds = 0;
  std::optional<double> energy_joules = {};
  ReportedClocks clocks = ReportedClocks::kUnknown;
  double busy_seconds = 0;             // Time in its own computations. 0: not reported.
  SecondsByType busy_by_type = {};     // busy_seconds by type of computation.
  double tokens = 0;                   // 0: not reported.
  std::vector<KindReport> kinds = {};  // Since the rank's last report.
  std::vector<RowSpan> rows = {};      // Of its plan, once in a while; else none.
};

// Fails if these reports do not fit the job. `last_version`: the highest version of the plan that
// any rank may have been told.
Outcome<void> CheckReports(const JobLife& job, std::int64_t last_version,
                           const std::vector<IterationReport>& reports,
                           const std::vector<ClientReport>& clients);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_REPORTS_H_
