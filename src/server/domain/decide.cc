// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/json_text.h"
#include "common/labels.h"
#include "server/base/failure.h"
#include "server/domain/draft.h"
#include "server/domain/job_life.h"
#include "server/domain/published_plan.h"
#include "server/planning/job_spec.h"

namespace perseus::server {

void Underway::Begin(const std::vector<store::Fact>& facts) {
  for (const store::Fact& fact : facts) {
    if (const auto* const record = std::get_if<store::RankRecord>(&fact)) {
      Rank& rank = ranks_[record->rank];
      rank.record = *record;
      ++rank.requests;
      positions_[PositionOf(*record)] = record->rank;
    } else if (const auto* const reported = std::get_if<store::Measurements>(&fact)) {
      Measured& measured = measured_[reported->rank];
      measured.rows += reported->rows.size();
      ++measured.requests;
    }
  }
}

void Underway::End(const std::vector<store::Fact>& facts) {
  for (const store::Fact& fact : facts) {
    if (const auto* const record = std::get_if<store::RankRecord>(&fact)) {
      const auto rank = ranks_.find(record->rank);
      if (rank == ranks_.end() || --rank->second.requests > 0) continue;
      positions_.erase(PositionOf(rank->second.record));
      ranks_.erase(rank);
    } else if (const auto* const reported = std::get_if<store::Measurements>(&fact)) {
      const auto measured = measured_.find(reported->rank);
      if (measured == measured_.end()) continue;
      measured->second.rows -= reported->rows.size();
      if (--measured->second.requests == 0) measured_.erase(measured);
    }
  }
}

const store::RankRecord* Underway::RankOf(int rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? nullptr : &found->second.record;
}

int Underway::RankAt(const std::array<int, 3>& position) const {
  const auto found = positions_.find(position);
  return found == positions_.end() ? -1 : found->second;
}

std::size_t Underway::RowsOf(int rank) const {
  const auto found = measured_.find(rank);
  return found == measured_.end() ? 0 : found->second.rows;
}

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
  version.version = last + 1;
  return version;
}

// Adds the effects of the facts: work, the version of the plan, and announcements.
Decision Conclude(const Situation& on, const Command& command, Decision decision) {
  const bool changes = !decision.facts.empty() || decision.looks_at_time;
  if (HoldsAtAnyRevision(command) || !changes) return decision;
  Phase next = on.phase();
  for (const store::Fact& fact : decision.facts) ApplyToPhase(fact, decision.built, &next);
  const store::PlanVersion version = NextVersion(on, next);
  if (version.version != on.phase().version.version) decision.facts.emplace_back(version);
  if (decision.wants_plans && LacksPlans(next)) decision.work = WorkOn(next);
  return decision;
}

}  // namespace

Work WorkOn(const Phase& phase) {
  return phase.built.curve == nullptr || IsPending(phase) ? Work::kFirstPlans : Work::kBetterPlans;
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

void Note(Decision* draft, std::string what, std::string before, std::string after) {
  draft->what = std::move(what);
  draft->before = std::move(before);
  draft->after = std::move(after);
}

Outcome<Decision> Decide(const JobLife& job, const Underway& underway, std::int64_t last_version,
                         const Command& command, const Moment& now) {
  if (job.phase.is_gone) return JobWasDeleted();
  const Situation on{.job = job, .underway = underway, .last_version = last_version, .now = now};
  Outcome<Decision> draft =
      std::visit([&](const auto& wanted) { return DecideOn(on, wanted); }, command);
  if (!draft) return tl::unexpected(draft.error());
  return Conclude(on, command, *std::move(draft));
}

double PlanningDaySeconds(const Phase& phase, const Moment& now) {
  // The clocks of servers that follow one another differ a little: a straggler that began or
  // expired for the one that made the last version has done so for the next.
  const double at = phase.version.at_seconds;
  const bool is_behind = now.day_seconds < at && at - now.day_seconds < kMostSkewSeconds;
  return is_behind ? at : now.day_seconds;
}

// Identities of ranks, and their measurements.

namespace {

Outcome<void> CheckPlace(const store::RankRecord& rank, const Shape& shape) {
  if (auto good = CheckBelow(rank.rank, shape.world_size(), "rank", "ranks"); !good) return good;
  if (auto good = CheckBelow(rank.dp_rank, shape.data_parallel, "dp_rank", "pipelines"); !good) {
    return good;
  }
  if (auto good = CheckBelow(rank.pp_rank, shape.pipeline_parallel, "pp_rank", "ranks a pipeline");
      !good) {
    return good;
  }
  return CheckBelow(rank.tp_rank, shape.tensor_parallel, "tp_rank", "tensor-parallel ranks");
}

// The rank as it is registered, or as it asked to be.
const store::RankRecord* KnownRank(const Situation& on, int rank) {
  if (const auto known = on.job.ranks.find(rank); known != on.job.ranks.end()) {
    return &known->second;
  }
  return on.underway.RankOf(rank);
}

// The rank that has this position, or asked for it. -1: none.
int RankAt(const Situation& on, const std::array<int, 3>& position) {
  if (const auto found = on.job.positions.find(position); found != on.job.positions.end()) {
    return found->second;
  }
  return on.underway.RankAt(position);
}

Outcome<void> CheckRank(const Situation& on, const store::RankRecord& rank) {
  if (auto good = CheckPlace(rank, on.job.shape); !good) return good;
  const store::RankRecord* const same_rank = KnownRank(on, rank.rank);
  if (same_rank != nullptr && PositionOf(*same_rank) != PositionOf(rank)) {
    return Fail(
        FailureCode::kConflict,
        fmt::format("rank {} is registered as dp_rank {}, pp_rank {}, tp_rank {}, and cannot "
                    "be dp_rank {}, pp_rank {}, tp_rank {} too",
                    rank.rank, same_rank->dp_rank, same_rank->pp_rank, same_rank->tp_rank,
                    rank.dp_rank, rank.pp_rank, rank.tp_rank),
        "rank");
  }
  const int taken = RankAt(on, PositionOf(rank));
  if (taken >= 0 && taken != rank.rank) {
    return Fail(FailureCode::kConflict,
                fmt::format("dp_rank {}, pp_rank {}, tp_rank {} is the position of rank {}, and "
                            "cannot be that of rank {} too",
                            rank.dp_rank, rank.pp_rank, rank.tp_rank, taken, rank.rank),
                "rank");
  }
  return {};
}

// `list`, `number`: where it was sent.
Outcome<void> CheckRow(const store::MeasuredRow& row, std::string_view list, std::size_t number,
                       const Result<Measurable>& measurable) {
  const auto wrong = [&](std::string_view field, std::string_view expected) {
    return Fail(FailureCode::kInvalid,
                fmt::format("{} of row {} must be {}", field, number, expected),
                fmt::format("{}[{}].{}", list, number, field));
  };
  if (row.stage < 0)
    return wrong("stage", "0 or more: the trainer must say of which stage a computation is");
  if (measurable && row.stage >= measurable->num_stages) {
    return wrong("stage", fmt::format("below {}, the stages of the job", measurable->num_stages));
  }
  if (measurable && !measurable->Has(row.type)) {
    return wrong("instruction",
                 row.type == ComputationType::kRecompute
                     ? "forward or backward: the job's schedule runs no recompute"
                     : "forward or backward, which the job's schedule does not split");
  }
  if (row.clock_mhz < 0) return wrong("frequency", "a clock in MHz, above 0");
  if (!IsPositive(row.time_seconds)) return wrong("time", "seconds, above 0");
  if (!std::isfinite(row.energy_joules) || row.energy_joules < 0) {
    return wrong("energy", "joules, 0 or more");
  }
  return {};
}

Outcome<void> CheckMeasurements(const Situation& on, const store::Measurements& measured) {
  if (!on.job.ranks.contains(measured.rank)) {
    return Fail(FailureCode::kConflict,
                fmt::format("rank {} is not registered; register it first", measured.rank), "rank");
  }
  if (on.job.record.origin == store::JobOrigin::kZeus) {
    return Fail(FailureCode::kConflict,
                "the job was created by a Zeus client, and such jobs take no measurements; create "
                "it through "
                "/api/v1/jobs");
  }
  if (!TakesMeasurements(on.phase())) {
    return Fail(FailureCode::kConflict,
                "the job has its profile; it takes no more measurements until 'perseus job "
                "reprofile' asks for new ones");
  }
  const auto known = on.job.measured_rows.find(measured.rank);
  const std::size_t before =
      (known == on.job.measured_rows.end() ? 0 : known->second) + on.underway.RowsOf(measured.rank);
  if (measured.rows.size() + before > kMostMeasuredRows) {
    return Fail(FailureCode::kTooLarge,
                fmt::format("rank {} measured more than {} rows, the most of one rank; send "
                            "medians of its repetitions",
                            measured.rank, kMostMeasuredRows),
                "rows");
  }
  const Result<Measurable> measurable = MeasurableOf(on.job.record.settings_json);
  std::size_t locked = 0;
  std::size_t default_clocks = 0;
  for (const store::MeasuredRow& row : measured.rows) {
    const bool is_locked = row.clock_mhz != store::kDefaultClockMhz;
    const std::size_t number = is_locked ? locked++ : default_clocks++;
    auto good = CheckRow(row, is_locked ? "rows" : "default_clocks", number, measurable);
    if (!good) return good;
  }
  const auto power = measured.blocking_power_watts;
  if (power && (!std::isfinite(*power) || *power < 0)) {
    return Fail(FailureCode::kInvalid, "blocking_power_w must be watts, 0 or more",
                "blocking_power_w");
  }
  return {};
}

}  // namespace

Outcome<Decision> DecideOn(const Situation& on, const RegisterRank& command) {
  if (on.phase().state == store::JobState::kFinished) {
    return Fail(FailureCode::kConflict,
                "the job has finished; for another run use another client key, or delete this "
                "job first");
  }
  store::RankRecord rank = command.rank;
  rank.job = on.id();
  if (auto good = CheckRank(on, rank); !good) return tl::unexpected(good.error());
  Decision draft;
  // Not where another record of it is on its way to the store, and would be the last.
  const auto known = on.job.ranks.find(rank.rank);
  if (known != on.job.ranks.end() && on.underway.RankOf(rank.rank) == nullptr) {
    const store::RankRecord& old = known->second;
    if (old.gpu_uuid == rank.gpu_uuid && old.gpu_name == rank.gpu_name && old.node == rank.node &&
        old.clocks_mhz == rank.clocks_mhz) {
      return draft;
    }
    if (old.node != rank.node) {
      Note(&draft, fmt::format("node of rank {}", rank.rank), old.node, rank.node);
    }
  }
  draft.facts.emplace_back(std::move(rank));
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const TakeMeasurements& command) {
  store::Measurements measured = command.measured;
  measured.job = on.id();
  measured.sweep_round = on.phase().sweep_round;
  if (auto good = CheckMeasurements(on, measured); !good) return tl::unexpected(good.error());
  Decision draft;
  for (const std::string& note : measured.notes) {
    draft.announcements.push_back(ProfilingNews(note, measured.rank));
  }
  draft.facts.emplace_back(std::move(measured));
  return draft;
}

// Operators' commands on a job as a whole.

Outcome<Decision> DecideOn(const Situation& on, const SetTarget& command) {
  const Phase& phase = on.phase();
  const Result<PlanTarget> target = ParsePlanTarget(command.text);
  if (!target) return Fail(FailureCode::kInvalid, target.error().message, "at");
  if (phase.state == store::JobState::kFinished) return HasFinished();
  if (phase.built.curve != nullptr) {
    if (const auto seconds = phase.built.curve->TargetSeconds(*target); !seconds) {
      return Fail(FailureCode::kInvalid, seconds.error().message, "at");
    }
  }
  Decision draft;
  draft.wants_plans = true;
  draft.facts.emplace_back(store::TargetChange{.job = on.id(), .target = command.text});
  // A new target clears the sentence on a sweep that was given up: it has been read.
  if (phase.built.curve != nullptr && !IsOver(phase) && !phase.reason.empty()) {
    draft.facts.emplace_back(store::StateChange{.job = on.id(), .state = phase.state});
  }
  Note(&draft, "point", PlanTargetText(phase.target), PlanTargetText(*target));
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const SetWatch& command) {
  const Phase& phase = on.phase();
  if (phase.state == store::JobState::kFinished) return HasFinished();
  WatchState state = phase.watch;
  WatchSettings& settings = state.settings;
  settings.mode = command.mode.value_or(settings.mode);
  settings.shift.threshold = command.threshold.value_or(settings.shift.threshold);
  settings.shift.window = command.window.value_or(settings.shift.window);
  settings.comparison = command.comparison.value_or(settings.comparison);
  Decision draft;
  const std::string json = FormatWatchState(state);
  draft.facts.emplace_back(store::DetectionChange{.job = on.id(), .detection_json = json});
  Note(&draft, "detection and comparison", phase.watch_json, json);
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const LengthenPhases& command) {
  if (IsOver(on.phase()) || on.phase().watch.settings.comparison != command.from) return Decision();
  return DecideOn(on, SetWatch{.comparison = command.to});
}

Outcome<Decision> DecideOn(const Situation& on, const SetLabels& command) {
  const JobLabels& before = on.phase().labels;
  JobLabels labels = before;
  for (const auto& [name, value] : command.labels) {
    // A label that is removed need not be there, nor have a name that is allowed now.
    if (const auto good = value ? CheckLabel(name, *value) : Result<void>(); !good) {
      return Fail(FailureCode::kInvalid, good.error().message, "labels");
    }
    labels.erase(name);
    if (value) labels.emplace(name, *value);
  }
  if (const auto good = CheckLabels(labels); !good) {
    return Fail(FailureCode::kInvalid, good.error().message, "labels");
  }
  Decision draft;
  if (labels == before) return draft;
  draft.facts.emplace_back(store::LabelsChange{.job = on.id(), .labels = labels});
  Note(&draft, "labels", LabelsText(before), LabelsText(labels));
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const FinishJob& command) {
  Decision draft;
  if (on.phase().state == store::JobState::kFinished) return draft;
  draft.facts.emplace_back(store::StateChange{.job = on.id(),
                                              .state = store::JobState::kFinished,
                                              .reason = command.reason,
                                              .at_seconds = on.now.day_seconds});
  Note(&draft, "state", std::string(store::JobStateName(on.phase().state)), "finished");
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const DeleteJob& /*command*/) {
  Decision draft;
  draft.facts.emplace_back(store::JobGone{on.id()});
  Note(&draft, "job", std::string(store::JobStateName(on.phase().state)), "deleted");
  return draft;
}

// Stragglers, as operators, monitors and the detector tell them, and as time changes them.

namespace {

// Stragglers of one job at once.
constexpr std::size_t kMostStragglers = 10'000;
// A slowdown beyond is a mistake, or a rank that hangs.
constexpr double kMostFactor = 1000;
constexpr double kMostDelaySeconds = 1e6;
constexpr double kSameFactor = 1e-6;

Outcome<void> CheckSize(const AddStraggler& request) {
  if ((request.factor != 0) == (request.delay_seconds != 0)) {
    return Fail(FailureCode::kInvalid,
                "a straggler has a 'factor' (1.2: takes 1.2 times as long) or a 'delay_s' (seconds "
                "an iteration); give exactly one");
  }
  if (request.factor != 0 && !(request.factor >= 1 && request.factor <= kMostFactor)) {
    return Fail(FailureCode::kInvalid,
                fmt::format("'factor' is {}; expected 1 to {}", request.factor, kMostFactor),
                "factor");
  }
  if (request.delay_seconds < 0 || !(request.delay_seconds <= kMostDelaySeconds)) {
    return Fail(FailureCode::kInvalid,
                fmt::format("'delay_s' is {}; expected seconds above 0", request.delay_seconds),
                "delay_s");
  }
  if (request.expires_in_seconds && !IsPositive(*request.expires_in_seconds)) {
    return Fail(FailureCode::kInvalid, "'expires_s' must be seconds from now, above 0",
                "expires_s");
  }
  if (!std::isfinite(request.starts_in_seconds) || request.starts_in_seconds < 0) {
    return Fail(FailureCode::kInvalid, "'starts_s' must be seconds from now, 0 or more",
                "starts_s");
  }
  return {};
}

Outcome<void> CheckPlace(const JobLife& job, const AddStraggler& request) {
  if (request.pipeline) {
    return CheckBelow(*request.pipeline, job.shape.data_parallel, "pipeline", "pipelines");
  }
  if (request.rank) {
    if (auto good = CheckBelow(*request.rank, job.shape.world_size(), "rank", "ranks"); !good) {
      return good;
    }
    if (job.ranks.contains(*request.rank)) return {};
    return Fail(
        FailureCode::kConflict,
        fmt::format("rank {} is not registered, so its pipeline is not known", *request.rank),
        "rank");
  }
  const bool has_node = std::any_of(job.ranks.begin(), job.ranks.end(), [&](const auto& entry) {
    return entry.second.node == request.node;
  });
  if (has_node) return {};
  return Fail(
      FailureCode::kNotFound,
      fmt::format("no rank of the job is on node '{}'; give the name with which ranks registered",
                  request.node),
      "node");
}

std::string StragglerText(const store::StragglerRecord& straggler) {
  const std::string place = straggler.pipeline ? fmt::format("pipeline {}", *straggler.pipeline)
                            : straggler.rank   ? fmt::format("rank {}", *straggler.rank)
                                               : "node " + straggler.node;
  return straggler.factor != 0
             ? fmt::format("{}: {} x{}", straggler.id, place, straggler.factor)
             : fmt::format("{}: {} +{} s", straggler.id, place, straggler.delay_seconds);
}

}  // namespace

Outcome<Decision> DecideOn(const Situation& on, const AddStraggler& command) {
  const int places =
      (command.pipeline ? 1 : 0) + (command.rank ? 1 : 0) + (command.node.empty() ? 0 : 1);
  if (places != 1) {
    return Fail(FailureCode::kInvalid,
                "a straggler is one of 'pipeline', 'rank' and 'node'; give exactly one");
  }
  if (auto good = CheckSize(command); !good) return tl::unexpected(good.error());
  if (auto good = CheckPlace(on.job, command); !good) return tl::unexpected(good.error());
  const Phase& phase = on.phase();
  if (phase.state == store::JobState::kFinished) return HasFinished();
  if (phase.stragglers.size() >= kMostStragglers) {
    return Fail(FailureCode::kTooLarge,
                fmt::format("the job has {} reports of stragglers; clear some", kMostStragglers));
  }
  const double now = PlanningDaySeconds(phase, on.now);
  store::StragglerRecord straggler{.job = on.id(),
                                   .id = phase.last_straggler + 1,
                                   .pipeline = command.pipeline,
                                   .rank = command.rank,
                                   .node = command.node,
                                   .factor = command.factor,
                                   .delay_seconds = command.delay_seconds,
                                   .starts_at_seconds = now + command.starts_in_seconds};
  if (command.expires_in_seconds) {
    straggler.expires_at_seconds = now + *command.expires_in_seconds;
  }
  Decision draft;
  draft.straggler = straggler.id;
  Note(&draft, "straggler", "", StragglerText(straggler));
  draft.facts.emplace_back(std::move(straggler));
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const ClearStraggler& command) {
  const auto& stragglers = on.phase().stragglers;
  const auto known = std::find_if(stragglers.begin(), stragglers.end(),
                                  [&](const auto& each) { return each.id == command.id; });
  if (known == stragglers.end()) {
    return Fail(
        FailureCode::kNotFound,
        fmt::format(
            "the job has no straggler {}; it was cleared, or has expired; 'perseus job show' has "
            "those that there are",
            command.id));
  }
  Decision draft;
  Note(&draft, "straggler", StragglerText(*known), "");
  draft.facts.emplace_back(store::StragglerGone{.job = on.id(), .id = command.id});
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const ClearStragglers& /*command*/) {
  Decision draft;
  std::string before;
  for (const store::StragglerRecord& straggler : on.phase().stragglers) {
    before += (before.empty() ? "" : ", ") + StragglerText(straggler);
    draft.facts.emplace_back(store::StragglerGone{.job = on.id(), .id = straggler.id});
  }
  if (!before.empty()) Note(&draft, "stragglers", std::move(before), "");
  return draft;
}

bool HasStragglerNews(const Phase& phase, double looked_at_day_seconds, const Moment& now) {
  const double today = PlanningDaySeconds(phase, now);
  if (phase.stragglers.empty()) return false;
  // Or time was set back.
  if (today < looked_at_day_seconds) return true;
  return std::any_of(phase.stragglers.begin(), phase.stragglers.end(),
                     [&](const store::StragglerRecord& straggler) {
                       return IsExpired(straggler, today) ||
                              IsActive(straggler, today) !=
                                  IsActive(straggler, looked_at_day_seconds);
                     });
}

// Also where none expired: one may have begun, and then there is a new version.
Outcome<Decision> DecideOn(const Situation& on, const LookAtTime& /*command*/) {
  Decision draft;
  if (IsOver(on.phase())) return draft;
  draft.looks_at_time = true;
  const double now = PlanningDaySeconds(on.phase(), on.now);
  for (const store::StragglerRecord& straggler : on.phase().stragglers) {
    if (!IsExpired(straggler, now)) continue;
    draft.facts.emplace_back(store::StragglerGone{.job = on.id(), .id = straggler.id});
  }
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const AnswerDetected& command) {
  const Phase& phase = on.phase();
  Decision draft;
  if (phase.watch_json.empty() || IsOver(phase)) return draft;
  std::vector<DetectedStraggler> wanted = command.wanted;
  const std::vector<DetectedStraggler>& known = phase.watch.detected;
  const auto record_of = [&](std::int64_t id) {
    return std::find_if(phase.stragglers.begin(), phase.stragglers.end(),
                        [&](const auto& each) { return each.id == id; });
  };
  const auto is_same = [&](const DetectedStraggler& now, const DetectedStraggler& then) {
    return now.rank == then.rank && std::abs(now.factor / then.factor - 1) < kSameFactor &&
           record_of(then.straggler) != phase.stragglers.end();
  };
  if (std::equal(wanted.begin(), wanted.end(), known.begin(), known.end(), is_same)) return draft;
  std::vector<store::Fact>& facts = draft.facts;
  for (const DetectedStraggler& each : known) {
    const auto kept = std::find_if(wanted.begin(), wanted.end(),
                                   [&](const auto& now) { return now.rank == each.rank; });
    if (kept != wanted.end()) {
      kept->straggler = each.straggler;
    } else if (record_of(each.straggler) != phase.stragglers.end()) {
      facts.emplace_back(store::StragglerGone{.job = on.id(), .id = each.straggler});
    }
  }
  std::int64_t last = phase.last_straggler;
  for (DetectedStraggler& each : wanted) {
    const double factor = std::min(each.factor, kMostFactor);
    const auto record = record_of(each.straggler);
    if (each.straggler != 0 && record != phase.stragglers.end()) {
      if (record->factor == factor) continue;
      store::StragglerRecord changed = *record;
      changed.factor = factor;
      facts.emplace_back(std::move(changed));
      continue;
    }
    each.straggler = ++last;
    facts.emplace_back(
        store::StragglerRecord{.job = on.id(),
                               .id = each.straggler,
                               .rank = each.rank,
                               .factor = factor,
                               .starts_at_seconds = PlanningDaySeconds(phase, on.now)});
  }
  facts.emplace_back(store::DetectionChange{
      .job = on.id(),
      .detection_json =
          FormatWatchState({.settings = phase.watch.settings, .detected = std::move(wanted)})});
  return draft;
}

}  // namespace perseus::server
