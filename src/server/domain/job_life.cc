// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/job_life.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "common/json_text.h"
#include "common/tree.h"
#include "server/domain/watch_settings.h"
#include "server/planning/job_spec.h"

namespace perseus::server {

namespace {

constexpr int kMostRankNumber = 2'000'000'000;

}  // namespace

std::optional<DetectionMode> ParseDetectionMode(std::string_view name) {
  const auto* const found = std::find(kDetectionModeNames.begin(), kDetectionModeNames.end(), name);
  if (found == kDetectionModeNames.end()) return std::nullopt;
  return static_cast<DetectionMode>(found - kDetectionModeNames.begin());
}

std::string FormatWatchState(const WatchState& state) {
  const WatchSettings& settings = state.settings;
  nlohmann::ordered_json json = {{"mode", DetectionModeName(settings.mode)},
                                 {"threshold", settings.shift.threshold},
                                 {"window", settings.shift.window},
                                 {"every", settings.comparison.every},
                                 {"iterations", settings.comparison.iterations},
                                 {"detected", nlohmann::ordered_json::array()}};
  for (const DetectedStraggler& straggler : state.detected) {
    json["detected"].push_back({{"straggler", straggler.straggler},
                                {"rank", straggler.rank},
                                {"factor", straggler.factor},
                                {"reference", straggler.reference}});
  }
  return FormatCompact(json);
}

Result<WatchState> ParseWatchState(const std::string& json) {
  WatchState state;
  if (json.empty()) return state;
  const std::string name = "detection";
  const Result<TreeNode> tree = ParseJsonTree(json, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  WatchSettings& settings = state.settings;
  if (const auto mode = ParseDetectionMode(root.Get("mode").String())) {
    settings.mode = *mode;
  } else {
    root.Get("mode").FailExpected("off, advisory or act");
  }
  settings.shift.threshold =
      root.Get("threshold").Number({.least = kLeastThreshold, .most = kMostThreshold});
  settings.shift.window = root.Get("window").Integer(kLeastWindow, kMostWindow);
  settings.comparison.every = root.Get("every").Integer(0, ComparisonBlocks::kMostEvery);
  settings.comparison.iterations = root.Get("iterations").Integer(0, ComparisonBlocks::kMostEvery);
  if (settings.comparison.is_on() && !settings.comparison.is_valid()) {
    root.Get("every").FailExpected("phases of 2 iterations at least");
  }
  const TreeCursor detected = root.Get("detected");
  const std::size_t count = detected.Size();
  for (std::size_t i = 0; i < count && !reader.failed(); ++i) {
    const TreeCursor each = detected.At(i);
    DetectedStraggler straggler;
    straggler.straggler = static_cast<std::int64_t>(each.Get("straggler").Number(kNotNegative));
    straggler.rank = each.Get("rank").Integer(0, kMostRankNumber);
    straggler.factor = each.Get("factor").Number({.least = 1, .most = 1e6});
    straggler.reference = each.Get("reference").Number({.least = -100, .most = 100});
    state.detected.push_back(straggler);
  }
  if (reader.failed()) return tl::unexpected(*reader.error());
  return state;
}

namespace {

using store::Fact;
using store::JobState;
using Next = store::StateChange::Next;

class PhaseChange {
 public:
  PhaseChange(const Built& built, Phase* phase) : built_(built), phase_(*phase) {}

  void operator()(const store::JobRecord& job) const {
    phase_.state = job.state;
    phase_.reason = job.reason;
    phase_.finished_at_seconds = job.finished_at_seconds;
    phase_.target = TargetOf(job);
    phase_.sweep_round = job.sweep_round;
    phase_.settled_round = job.settled_round;
    phase_.profile_source = job.profile_source;
    phase_.built.job = built_.job;
    phase_.labels = job.labels;
    SetWatch(job.detection_json);
    phase_.conditions = ParseConditionsState(job.conditions_json);
  }

  void operator()(const store::StateChange& change) const {
    phase_.state = change.state;
    phase_.reason = change.reason;
    if (change.state == JobState::kFinished) phase_.finished_at_seconds = change.at_seconds;
    if (change.profile_csv) phase_.built.job = built_.job;
    if (change.profile_source) phase_.profile_source = *change.profile_source;
    if (change.sweep_round) phase_.sweep_round = *change.sweep_round;
    if (change.next == Next::kKeep) return;
    if (change.next == Next::kAdopt) phase_.built.job = built_.job;
    phase_.settled_round = phase_.sweep_round;
  }

  void operator()(const store::CurveRecord& /*curve*/) const {
    if (built_.job != nullptr) phase_.built.job = built_.job;
    phase_.built.curve = built_.curve;
  }

  void operator()(const store::PlanVersion& version) const { phase_.version = version; }

  void operator()(const store::TargetChange& change) const {
    if (auto target = ParsePlanTarget(change.target)) phase_.target = *target;
  }

  void operator()(const store::StragglerRecord& straggler) const {
    phase_.last_straggler = std::max(phase_.last_straggler, straggler.id);
    const auto known = std::find_if(phase_.stragglers.begin(), phase_.stragglers.end(),
                                    [&](const auto& each) { return each.id == straggler.id; });
    if (known != phase_.stragglers.end()) {
      known->factor = straggler.factor;
    } else {
      phase_.stragglers.push_back(straggler);
    }
  }

  void operator()(const store::StragglerGone& gone) const {
    std::erase_if(phase_.stragglers, [&](const auto& each) { return each.id == gone.id; });
  }

  void operator()(const store::DetectionChange& change) const { SetWatch(change.detection_json); }

  void operator()(const store::ConditionsChange& change) const {
    phase_.conditions = ParseConditionsState(change.conditions_json);
  }

  void operator()(const store::LabelsChange& change) const { phase_.labels = change.labels; }

  void operator()(const store::JobGone& /*gone*/) const { phase_.is_gone = true; }

  template <typename T>
  void operator()(const T& /*fact*/) const {}

 private:
  void SetWatch(const std::string& json) const {
    phase_.watch_json = json;
    // Text that cannot be read is as good as none.
    phase_.watch = ParseWatchState(json).value_or(WatchState{});
  }

  const Built& built_;
  Phase& phase_;
};

void AddRank(const store::RankRecord& rank, JobLife* job) {
  job->ranks[rank.rank] = rank;
  job->positions[PositionOf(rank)] = rank.rank;
}

void AddMeasured(const store::Measurements& measured, JobLife* job) {
  if (measured.sweep_round != job->phase.sweep_round) return;
  const auto rank = job->ranks.find(measured.rank);
  job->table.Add(measured, rank == job->ranks.end() ? 0 : rank->second.pp_rank);
  job->measured_rows[measured.rank] += measured.rows.size();
  ++job->measurements;
}

store::JobRecord WithoutProfiles(store::JobRecord record) {
  record.profile_csv.clear();
  record.next_profile_csv.clear();
  return record;
}

}  // namespace

void ApplyToPhase(const Fact& fact, const Built& built, Phase* phase) {
  std::visit(PhaseChange(built, phase), fact);
}

void Apply(const Fact& fact, const Built& built, JobLife* job) {
  const int sweep_round = job->phase.sweep_round;
  ApplyToPhase(fact, built, &job->phase);
  if (job->phase.sweep_round != sweep_round) ForgetSweep(job);
  if (const auto* const record = std::get_if<store::JobRecord>(&fact)) {
    job->record = WithoutProfiles(*record);
    job->shape = {record->pipeline_parallel, record->data_parallel, record->tensor_parallel};
  } else if (const auto* const rank = std::get_if<store::RankRecord>(&fact)) {
    AddRank(*rank, job);
  } else if (const auto* const measured = std::get_if<store::Measurements>(&fact)) {
    AddMeasured(*measured, job);
  }
}

void ForgetSweep(JobLife* job) {
  job->table = {};
  job->measured_rows.clear();
  job->measurements = 0;
}

std::vector<Fact> FactsOf(const store::StoredJob& stored) {
  std::vector<Fact> facts = {stored.job};
  facts.insert(facts.end(), stored.ranks.begin(), stored.ranks.end());
  facts.insert(facts.end(), stored.measurements.begin(), stored.measurements.end());
  if (stored.curve) facts.emplace_back(*stored.curve);
  facts.insert(facts.end(), stored.stragglers.begin(), stored.stragglers.end());
  if (stored.version) facts.emplace_back(*stored.version);
  return facts;
}

JobLife Replay(const store::StoredJob& stored, const Built& built) {
  JobLife job;
  for (const Fact& fact : FactsOf(stored)) Apply(fact, built, &job);
  // The last ones may be gone.
  job.phase.last_straggler = stored.last_straggler;
  job.revision = stored.revision;
  return job;
}

bool LacksPlans(const Phase& phase) {
  if (phase.is_gone || IsOver(phase)) return false;
  if (IsPending(phase)) return true;
  if (phase.profile_source.empty()) return false;
  const Curve* const curve = phase.built.curve.get();
  return curve == nullptr || curve->revision() < 2 ||
         (phase.conditions && phase.conditions->next) ||
         ParsePlanTarget(curve->target()) != phase.target;
}

std::string ReasonOf(const Phase& phase) {
  if (phase.built.curve == nullptr || IsOver(phase)) return phase.reason;
  // The target was set before the job's plans were known.
  const Result<double> seconds = phase.built.curve->TargetSeconds(phase.target);
  if (seconds) return phase.reason;
  return fmt::format("the target {} cannot be met, so the fastest plan runs: {}",
                     PlanTargetText(phase.target), seconds.error().message);
}

}  // namespace perseus::server
