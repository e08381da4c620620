// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What operators and monitors tell of stragglers, and what time makes of it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "server/domain/checks.h"
#include "server/runtime/managed_job.h"

namespace perseus::server {
namespace {

using store::Fact;
using store::JobState;

// Stragglers of one job at once.
constexpr std::size_t kMostStragglers = 10'000;
// A slowdown beyond is a mistake, or a rank that hangs.
constexpr double kMostFactor = 1000;
constexpr double kMostDelaySeconds = 1e6;

}  // namespace

Outcome<void> ManagedJob::CheckStraggler(const StragglerRequest& request) const {
  const int places =
      (request.pipeline ? 1 : 0) + (request.rank ? 1 : 0) + (request.node.empty() ? 0 : 1);
  if (places != 1) {
    return Fail(FailureCode::kInvalid,
                "a straggler is one of 'pipeline', 'rank' and 'node'; give exactly one");
  }
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
  if (request.pipeline) {
    return CheckBelow(*request.pipeline, shape_.data_parallel, "pipeline", "pipelines");
  }
  if (request.rank) {
    if (auto good = CheckBelow(*request.rank, shape_.world_size(), "rank", "ranks"); !good) {
      return good;
    }
    if (!ranks_.contains(*request.rank)) {
      return Fail(
          FailureCode::kConflict,
          fmt::format("rank {} is not registered, so nobody knows its pipeline", *request.rank),
          "rank");
    }
    return {};
  }
  const bool has_node = std::any_of(ranks_.begin(), ranks_.end(), [&](const auto& entry) {
    return entry.second.node == request.node;
  });
  if (has_node) return {};
  return Fail(FailureCode::kNotFound,
              fmt::format("no rank of the job is on node '{}'", request.node), "node");
}

Outcome<std::int64_t> ManagedJob::AddStraggler(const StragglerRequest& request) {
  return OnFresh([&]() -> Outcome<std::int64_t> {
    if (auto good = CheckStraggler(request); !good) return tl::unexpected(good.error());
    if (phase_.state == JobState::kFinished) {
      return Fail(FailureCode::kConflict, "the job has finished");
    }
    if (phase_.stragglers.size() >= kMostStragglers) {
      return Fail(FailureCode::kTooLarge,
                  fmt::format("the job has {} stragglers; clear some", kMostStragglers));
    }
    const double now = PlanningTime();
    store::StragglerRecord straggler;
    straggler.job = record_.id;
    straggler.id = phase_.last_straggler + 1;
    straggler.pipeline = request.pipeline;
    straggler.rank = request.rank;
    straggler.node = request.node;
    straggler.factor = request.factor;
    straggler.delay_seconds = request.delay_seconds;
    straggler.starts_at_seconds = now + request.starts_in_seconds;
    if (request.expires_in_seconds) {
      straggler.expires_at_seconds = now + *request.expires_in_seconds;
    }
    Phase next = phase_;
    next.stragglers.push_back(straggler);
    next.last_straggler = straggler.id;
    if (auto committed = Commit({straggler}, std::move(next)); !committed) {
      return tl::unexpected(committed.error());
    }
    EmitStraggler(straggler.id);
    return straggler.id;
  });
}

void ManagedJob::EmitStraggler(std::int64_t id) const {
  context_->events.Emit({EventKind::kStraggler, record_.id,
                         FormatCompact({{"job", record_.id}, {"straggler_id", id}}),
                         phase_.revision});
}

Outcome<void> ManagedJob::ClearStraggler(std::int64_t id) {
  return OnFresh([&]() -> Outcome<void> {
    Phase next = phase_;
    const auto erased =
        std::erase_if(next.stragglers,
                      [&](const store::StragglerRecord& straggler) { return straggler.id == id; });
    if (erased == 0) {
      return Fail(FailureCode::kNotFound,
                  fmt::format("the job has no straggler {}; it was cleared, or has expired", id));
    }
    return Commit({store::StragglerGone{.job = record_.id, .id = id}}, std::move(next));
  });
}

Outcome<void> ManagedJob::ClearStragglers() {
  // Where none is known there is nothing to write, and so nothing that the store would refuse.
  if (auto fresh = Refresh(); !fresh) return Unavailable(fresh.error());
  return OnFresh([&]() -> Outcome<void> {
    Phase next = phase_;
    std::vector<Fact> facts;
    for (const store::StragglerRecord& straggler : next.stragglers) {
      facts.emplace_back(store::StragglerGone{.job = record_.id, .id = straggler.id});
    }
    next.stragglers.clear();
    return Commit(std::move(facts), std::move(next));
  });
}

// Whether one began or expired since the plan was looked up, or time was set back.
bool ManagedJob::HasStragglerNews(double now_seconds) const {
  if (phase_.stragglers.empty()) return false;
  if (planned_at_ == kNeverPlanned || now_seconds < planned_at_) return true;
  return std::any_of(phase_.stragglers.begin(), phase_.stragglers.end(),
                     [&](const store::StragglerRecord& straggler) {
                       return IsExpired(straggler, now_seconds) ||
                              IsActive(straggler, now_seconds) != IsActive(straggler, planned_at_);
                     });
}

void ManagedJob::LookAtStragglers() {
  const double now = PlanningTime();
  Phase next = phase_;
  std::vector<Fact> facts;
  std::erase_if(next.stragglers, [&](const store::StragglerRecord& straggler) {
    if (!IsExpired(straggler, now)) return false;
    facts.emplace_back(store::StragglerGone{.job = record_.id, .id = straggler.id});
    return true;
  });
  // Also where none expired: one may have begun. Tried again at the next tick. Where
  // several servers see it at once the first commit counts, and the others read it.
  const bool is_renumbered = phase_.version.version < board_.version();
  if (is_renumbered || HasStragglerNews(now)) {
    static_cast<void>(Commit(std::move(facts), std::move(next)));
  }
}

}  // namespace perseus::server
