// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What operators, monitors and the detector tell of stragglers, and what time makes of it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "server/base/failure.h"
#include "server/domain/draft.h"
#include "server/domain/stragglers.h"

namespace perseus::server {
namespace {

// Stragglers of one job at once.
constexpr std::size_t kMostStragglers = 10'000;
// A slowdown beyond is a mistake, or a rank that hangs.
constexpr double kMostFactor = 1000;
constexpr double kMostDelaySeconds = 1e6;
constexpr double kSameFactor = 1e-6;

Outcome<void> CheckSize(const StragglerRequest& request) {
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

Outcome<void> CheckPlace(const JobLife& job, const StragglerRequest& request) {
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

Outcome<Draft> DecideOn(const Situation& on, const AddStraggler& command) {
  const StragglerRequest& request = command.request;
  const int places =
      (request.pipeline ? 1 : 0) + (request.rank ? 1 : 0) + (request.node.empty() ? 0 : 1);
  if (places != 1) {
    return Fail(FailureCode::kInvalid,
                "a straggler is one of 'pipeline', 'rank' and 'node'; give exactly one");
  }
  if (auto good = CheckSize(request); !good) return tl::unexpected(good.error());
  if (auto good = CheckPlace(on.job, request); !good) return tl::unexpected(good.error());
  const Phase& phase = on.phase();
  if (phase.state == store::JobState::kFinished) return HasFinished();
  if (phase.stragglers.size() >= kMostStragglers) {
    return Fail(FailureCode::kTooLarge,
                fmt::format("the job has {} reports of stragglers; clear some", kMostStragglers));
  }
  const double now = PlanningDaySeconds(phase, on.now);
  store::StragglerRecord straggler{.job = on.id(),
                                   .id = phase.last_straggler + 1,
                                   .pipeline = request.pipeline,
                                   .rank = request.rank,
                                   .node = request.node,
                                   .factor = request.factor,
                                   .delay_seconds = request.delay_seconds,
                                   .starts_at_seconds = now + request.starts_in_seconds};
  if (request.expires_in_seconds) {
    straggler.expires_at_seconds = now + *request.expires_in_seconds;
  }
  Draft draft;
  draft.decision.straggler = straggler.id;
  Note(&draft, "straggler", "", StragglerText(straggler));
  draft.decision.facts.emplace_back(std::move(straggler));
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const ClearStraggler& command) {
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
  Draft draft;
  Note(&draft, "straggler", StragglerText(*known), "");
  draft.decision.facts.emplace_back(store::StragglerGone{.job = on.id(), .id = command.id});
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const ClearStragglers& /*command*/) {
  Draft draft;
  std::string before;
  for (const store::StragglerRecord& straggler : on.phase().stragglers) {
    before += (before.empty() ? "" : ", ") + StragglerText(straggler);
    draft.decision.facts.emplace_back(store::StragglerGone{.job = on.id(), .id = straggler.id});
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

// Also where none expired: one may have begun, and then there is a new version. Where several
// servers see it at once the first commit counts, and the others read it.
Outcome<Draft> DecideOn(const Situation& on, const LookAtTime& /*command*/) {
  Draft draft;
  if (IsOver(on.phase())) return draft;
  draft.looks_at_time = true;
  const double now = PlanningDaySeconds(on.phase(), on.now);
  for (const store::StragglerRecord& straggler : on.phase().stragglers) {
    if (!IsExpired(straggler, now)) continue;
    draft.decision.facts.emplace_back(store::StragglerGone{.job = on.id(), .id = straggler.id});
  }
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const AnswerDetected& command) {
  const Phase& phase = on.phase();
  Draft draft;
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
  std::vector<store::Fact>& facts = draft.decision.facts;
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
      store::StragglerRecord changed = *record;  // The same one, whichever server found it.
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
