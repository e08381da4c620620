// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "common/json_text.h"
#include "server/domain/draft.h"
#include "server/domain/published_plan.h"
#include "server/domain/stragglers.h"

namespace perseus::server {
namespace {

// By which one server's clock may be behind another's. More is a clock that was set.
constexpr double kMostSkewSeconds = 5;

// The version of the plan that `next` asks for: the present one where nothing changes for ranks.
store::PlanVersion NextVersion(const Situation& on, const Phase& next) {
  const Phase& phase = on.phase();
  const store::PlanVersion& present = phase.version;
  store::PlanVersion version;
  version.job = on.id();
  version.at_seconds = PlanningDaySeconds(phase, on.now);
  // Ranks hear of a new sweep, and of its end, as of another plan.
  const bool same_wish =
      (next.state == store::JobState::kProfiling) == (phase.state == store::JobState::kProfiling);
  // Above every one that a rank may have seen, also where the store lost the last ones.
  const std::int64_t last = std::max(present.version, on.last_version);
  if (IsOver(next)) {
    version.reason = "no_plan";
  } else if (next.built.curve == nullptr) {
    const bool has_news = !same_wish && present.version > 0;
    if (!has_news && present.version == last) return present;
    version.reason = "no_plan";
  } else {
    const Assignment assignment = AssignmentAt(on.job, next, version.at_seconds);
    version.reason = assignment.for_straggler ? "straggler" : "target";
    version.plan = assignment.plan;
    version.exceptions = assignment.exceptions;
  }
  // Ranks hear of another comparison as of another plan.
  const bool same_comparison = next.watch.settings.comparison == phase.watch.settings.comparison;
  const bool is_same = present.version > 0 && same_comparison && same_wish &&
                       present.version == last && version.reason == present.reason &&
                       version.plan == present.plan && version.exceptions == present.exceptions;
  if (is_same) return present;
  // And above all of a history that was lost and that nobody here has seen.
  version.version = std::max(last, store::HistoryOf(on.job.marks.revision)) + 1;
  return version;
}

// Adds what follows from the facts: work, the version of the plan, and what is told of it.
Decision Conclude(const Situation& on, const Command& command, Draft draft) {
  Decision& decision = draft.decision;
  const bool changes = !decision.facts.empty() || draft.looks_at_time;
  if (HoldsAtAnyRevision(command) || !changes) return decision;
  Phase next = on.phase();
  for (const store::Fact& fact : decision.facts) ApplyToPhase(fact, decision.built, &next);
  const store::PlanVersion version = NextVersion(on, next);
  if (version.version != on.phase().version.version) decision.facts.emplace_back(version);
  if (draft.wants_plans && LacksPlans(next)) decision.facts.emplace_back(WorkOn(on.id(), next));
  return decision;
}

}  // namespace

store::WorkWanted WorkOn(const std::string& id, const Phase& phase) {
  return {.job = id, .urgent = phase.built.curve == nullptr || IsPending(phase)};
}

std::vector<Announcement> NewsOf(const Phase& before, const Phase& after) {
  std::vector<Announcement> news;
  if (after.version.version != before.version.version) {
    news.push_back({EventKind::kPlan, FormatCompact({{"version", after.version.version},
                                                     {"reason", after.version.reason}})});
  }
  if (after.is_gone && !before.is_gone) {
    news.push_back({EventKind::kJob, FormatCompact({{"deleted", true}})});
  }
  if (after.state != before.state) {
    news.push_back({EventKind::kState, FormatCompact({{"state", store::JobStateName(after.state)},
                                                      {"reason", ReasonOf(after)}})});
  }
  if (after.labels != before.labels) {
    news.push_back({EventKind::kJob, FormatCompact({{"labels", after.labels}})});
  }
  for (const store::StragglerRecord& straggler : after.stragglers) {
    if (straggler.id <= before.last_straggler) continue;
    news.push_back({EventKind::kStraggler, FormatCompact({{"straggler_id", straggler.id}})});
  }
  // One event, also for thousands that are cleared at once: a stream keeps only so many.
  std::vector<store::StragglerRecord> gone;
  std::set_difference(before.stragglers.begin(), before.stragglers.end(), after.stragglers.begin(),
                      after.stragglers.end(), std::back_inserter(gone),
                      [](const auto& one, const auto& other) { return one.id < other.id; });
  if (!gone.empty()) {
    news.push_back({EventKind::kStraggler,
                    FormatCompact({{"straggler_id", gone.front().id}, {"gone", gone.size()}})});
  }
  return news;
}

void Note(Draft* draft, std::string what, std::string before, std::string after) {
  draft->decision.what = std::move(what);
  draft->decision.before = std::move(before);
  draft->decision.after = std::move(after);
}

Outcome<Decision> Decide(const JobLife& job, const Underway& underway, std::int64_t last_version,
                         const Command& command, const Moment& now) {
  if (job.phase.is_gone) return JobWasDeleted();
  const Situation on{.job = job, .underway = underway, .last_version = last_version, .now = now};
  Outcome<Draft> draft =
      std::visit([&](const auto& wanted) { return DecideOn(on, wanted); }, command);
  if (!draft) return tl::unexpected(draft.error());
  return Conclude(on, command, *std::move(draft));
}

double PlanningDaySeconds(const Phase& phase, const Moment& now) {
  // The servers' clocks differ a little, however well they are measured: what one of them saw
  // begin or expire when it made the last version has done so for all.
  const double at = phase.version.at_seconds;
  const bool is_behind = now.day_seconds < at && at - now.day_seconds < kMostSkewSeconds;
  return is_behind ? at : now.day_seconds;
}

}  // namespace perseus::server
