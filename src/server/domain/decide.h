// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_DECIDE_H_
#define PERSEUS_SERVER_DOMAIN_DECIDE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/base/failure.h"
#include "server/domain/commands.h"
#include "server/domain/event_kind.h"
#include "server/domain/job_life.h"
#include "server/domain/underway.h"

// The rules of a job's life. Decide() is a pure function: the same job, command and moment always
// give the same decision. It changes nothing. The decision takes effect when its facts are durable
// and Apply() is called with them.
namespace perseus::server {

// An event to send once the facts are durable. `members_json` holds its members except "job".
struct Announcement {
  EventKind kind;
  std::string members_json;
};

struct Decision {
  // These must become durable together. Empty: nothing changes.
  std::vector<store::Fact> facts = {};
  // What was built from the texts in `facts`. Apply() needs it.
  Built built = {};
  std::vector<Announcement> announcements = {};
  std::int64_t straggler = 0;   // The id of the straggler that is added. 0: none.
  std::string ask_layout = {};  // Not empty: ask the library for a profile of this layout.
  bool ask_rows = false;        // Read the job again: rows of other servers may be missing.
  // For the log, if somebody asked for the change: what changes, its old value and its new value.
  std::string what = {};
  std::string before = {};
  std::string after = {};
};

// `last_version`: the highest version of the plan that any rank may have been told. New versions
// are higher.
Outcome<Decision> Decide(const JobLife& job, const Underway& underway, std::int64_t last_version,
                         const Command& command, const Moment& now);

// Sweeps of a job, beyond its first, that begin without being asked for.
inline constexpr int kMostSweepsByItself = 2;

// The events about a change of a job's phase from `before` to `after`.
std::vector<Announcement> NewsOf(const Phase& before, const Phase& after);

// The next planning step, or nullopt if no plan is missing.
std::optional<PlanningStep> NextPlanningStep(const JobLife& job);
// Whether the job changed since `step` began, so that the step's result is useless.
bool IsPast(const JobLife& job, const PlanningStep& step);

// Whether these conditions are so far from those of the plans that plans for them differ, and it is
// time for such plans.
bool HaveMoved(const PlannedConditions& plan, const MeasuredConditions& measured,
               double seconds_since_planned);
// What plans are then made for: the measured figures that are sure enough, and the others of
// `plan`.
PlannedConditions PlannedFor(const PlannedConditions& plan, const MeasuredConditions& measured);
// The state of a job that takes over this profile of the library, and is planned for what the jobs
// before it measured, until its own ranks have measured.
ConditionsState StartedFrom(const store::ProfileRecord& profile, ConditionsState state);

// Time of day by which stragglers begin and expire. If this server's clock is a little behind that
// of the server that made the last version, it is the time of that version.
double PlanningDaySeconds(const Phase& phase, const Moment& now);

// Whether a straggler began or expired since `looked_at`.
bool HasStragglerNews(const Phase& phase, double looked_at_day_seconds, const Moment& now);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_DECIDE_H_
