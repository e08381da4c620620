// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_DECIDE_H_
#define PERSEUS_SERVER_DOMAIN_DECIDE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/base/failure.h"
#include "server/domain/commands.h"
#include "server/domain/event_kind.h"
#include "server/domain/job_life.h"

// The rules of a job's life. Decide() is a pure function: the same job, command and moment always
// give the same decision. It changes nothing; what it decides happens when its facts are durable
// and Apply() is called with them.
namespace perseus::server {

// Something to tell the world once the facts are durable: an event, and its members but for the
// job as JSON text.
struct Announcement {
  EventKind kind;
  std::string members_json;
};

struct Decision {
  // To be made durable together. Empty: nothing changes.
  std::vector<store::Fact> facts = {};
  // What is built of the texts in `facts`, for Apply().
  Built built = {};
  // They hold whatever the job's revision is (ranks, measurements, the end of the job): many such
  // may be under way at once. All others are decided one after the other, each on the revision that
  // the one before it left.
  bool on_any_revision = false;
  std::vector<Announcement> announcements = {};
  std::int64_t straggler = 0;   // The id of a new one.
  std::string ask_layout = {};  // Not empty: the library should be asked for it (UseProfile).
  bool ask_rows = false;        // The job should be read again: rows may be missing.
  // For the log, of a change that somebody asked for: what was so before, and is from now on.
  std::string what = {};
  std::string before = {};
  std::string after = {};
};

// What a job's facts that are on their way to the store claim meanwhile.
struct Underway {
  struct Rank {
    store::RankRecord rank;
    int requests = 0;
  };
  std::map<int, Rank> ranks;
  std::map<std::array<int, 3>, int> positions;  // (dp, pp, tp) -> rank, of those.
  std::map<int, std::size_t> measured_rows;
};

// `last_version`: the last version of the plan that any rank can have been told; a new one is
// above.
Outcome<Decision> Decide(const JobLife& job, const Underway& underway, std::int64_t last_version,
                         const Command& command, const Moment& now);

// What is told of a job whose phase was `before`.
std::vector<Announcement> NewsOf(const Phase& before, const Phase& after);

// What is computed next, or nullopt where no plan is missing.
std::optional<PlanningStep> NextPlanningStep(const JobLife& job);
// Whether the job went on since the step was begun: what was computed for it is of no use.
bool IsPast(const JobLife& job, const PlanningStep& step);

// Time of day by which stragglers begin and expire: that of the last version, where this server's
// clock is a little behind the one that made it.
double PlanningDaySeconds(const Phase& phase, const Moment& now);

// Whether a straggler began or expired since `looked_at`.
bool HasStragglerNews(const Phase& phase, double looked_at_day_seconds, const Moment& now);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_DECIDE_H_
