// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A job's own detection of stragglers, and the comparison with maximum clocks.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "server/runtime/managed_job.h"
#include "server/watch/watch_settings.h"

namespace perseus::server {
namespace {

constexpr double kSameFactor = 1e-6;
constexpr double kMostDetectedFactor = 1000;

nlohmann::ordered_json WatchEventJson(const std::string& job, const WatchEvent& event) {
  nlohmann::ordered_json json = {{"job", job},
                                 {"kind", event.kind},
                                 {"iteration", event.finding.iteration},
                                 {"sentence", event.sentence}};
  if (event.finding.rank >= 0) json["rank"] = event.finding.rank;
  if (event.kind != "compared") {
    json["factor"] = event.finding.factor;
    json["delay_iterations"] = event.finding.delay_iterations;
  }
  return json;
}

}  // namespace

ComparisonBlocks ManagedJob::ComparisonOf(const Phase& phase) {
  const Result<WatchState> state = ParseWatchState(phase.watch_json);
  return state ? state->settings.comparison : ComparisonBlocks{};
}

Outcome<WatchSettings> ManagedJob::SetWatch(
    const std::function<void(WatchSettings* settings)>& change) {
  return OnFresh([&]() -> Outcome<WatchSettings> {
    if (phase_.state == store::JobState::kFinished) {
      return Fail(FailureCode::kConflict, "the job has finished");
    }
    // What cannot be read is as good as none.
    WatchState state = ParseWatchState(phase_.watch_json).value_or(WatchState{});
    change(&state.settings);
    Phase next = phase_;
    next.watch_json = FormatWatchState(state);
    store::DetectionChange fact{.job = record_.id, .detection_json = next.watch_json};
    if (auto committed = Commit({std::move(fact)}, std::move(next)); !committed) {
      return tl::unexpected(committed.error());
    }
    ReadWatch();
    return state.settings;
  });
}

// What is stored of the watch, where it is news.
void ManagedJob::ReadWatch() {
  std::set<std::int64_t> ids;
  for (const store::StragglerRecord& straggler : phase_.stragglers) ids.insert(straggler.id);
  if (phase_.watch_json == watched_json_ && ids == watched_stragglers_) return;
  watched_json_ = phase_.watch_json;
  watched_stragglers_ = std::move(ids);
  watch_state_ = ParseWatchState(phase_.watch_json).value_or(WatchState{});
  watch_.SetState(watch_state_, watched_stragglers_, context_->now_seconds());
}

// Tells what was found, and has the plans answer it where the operator wants that.
// What cannot be written is tried again by the next Tick().
void ManagedJob::ApplyWatch() {
  if (phase_.watch_json.empty() || IsOver()) return;
  ReadWatch();
  for (const WatchEvent& event : watch_.TakeEvents()) {
    context_->events.Emit(
        {EventKind::kDetection, record_.id, FormatCompact(WatchEventJson(record_.id, event))});
  }
  std::vector<DetectedStraggler> wanted = watch_.Wanted();
  const std::vector<DetectedStraggler>& known = watch_state_.detected;
  const auto is_same = [&](const DetectedStraggler& now, const DetectedStraggler& then) {
    return now.rank == then.rank && std::abs(now.factor / then.factor - 1) < kSameFactor &&
           watched_stragglers_.contains(then.straggler);
  };
  if (std::equal(wanted.begin(), wanted.end(), known.begin(), known.end(), is_same)) return;

  Phase next = phase_;
  std::vector<store::Fact> facts;
  for (const DetectedStraggler& each : known) {
    const auto kept = std::find_if(wanted.begin(), wanted.end(),
                                   [&](const auto& now) { return now.rank == each.rank; });
    if (kept != wanted.end()) {
      kept->straggler = each.straggler;
      continue;
    }
    if (std::erase_if(next.stragglers, [&](const auto& of) { return of.id == each.straggler; }) >
        0) {
      facts.emplace_back(store::StragglerGone{.job = record_.id, .id = each.straggler});
    }
  }
  for (DetectedStraggler& each : wanted) {
    const double factor = std::min(each.factor, kMostDetectedFactor);
    const auto record = std::find_if(next.stragglers.begin(), next.stragglers.end(),
                                     [&](const auto& of) { return of.id == each.straggler; });
    if (each.straggler != 0 && record != next.stragglers.end()) {
      if (record->factor == factor) continue;
      record->factor = factor;  // The same straggler, whichever server found it.
      facts.emplace_back(*record);
      continue;
    }
    each.straggler = ++next.last_straggler;
    next.stragglers.push_back({.job = record_.id,
                               .id = each.straggler,
                               .rank = each.rank,
                               .factor = factor,
                               .starts_at_seconds = PlanningTime()});
    facts.emplace_back(next.stragglers.back());
  }
  next.watch_json =
      FormatWatchState({.settings = watch_state_.settings, .detected = std::move(wanted)});
  facts.emplace_back(store::DetectionChange{.job = record_.id, .detection_json = next.watch_json});
  if (!Commit(std::move(facts), std::move(next))) return;
  ReadWatch();
}

// With mutex_ held, after the reports were checked.
void ManagedJob::Watch(const std::vector<IterationReport>& reports) {
  if (watch_state_.settings.mode == DetectionMode::kOff &&
      !watch_state_.settings.comparison.is_on()) {
    return;
  }
  std::vector<WatchedIteration> watched;
  watched.reserve(reports.size());
  for (const IterationReport& report : reports) {
    const store::RankRecord& rank = ranks_.at(report.rank);
    watched.push_back({.rank = report.rank,
                       .dp_rank = rank.dp_rank,
                       .pp_rank = rank.pp_rank,
                       .node = rank.node,
                       .iteration = report.iteration,
                       .plan_version = report.plan_version,
                       .clocks = report.clocks,
                       .time_seconds = report.time_seconds,
                       .busy_seconds = report.busy_seconds,
                       .busy_by_type = report.busy_by_type,
                       .tokens = report.tokens,
                       .energy_joules = report.energy_joules});
  }
  watch_.Take(watched, board_.Current(), ranks_.size(), context_->now_seconds());
}

}  // namespace perseus::server
