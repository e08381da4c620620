// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What ranks and operators tell of a job: positions, measurements, stragglers.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "server/managed_job.h"

namespace perseus::server {
namespace {

using store::Fact;
using store::JobState;

// Stragglers of one job at once.
constexpr std::size_t kMostStragglers = 10'000;
// A slowdown beyond is a mistake, or a rank that hangs.
constexpr double kMostFactor = 1000;
constexpr double kMostDelaySeconds = 1e6;

std::array<int, 3> PositionOf(const store::RankRecord& rank) {
  return {rank.dp_rank, rank.pp_rank, rank.tp_rank};
}

Outcome<void> CheckBelow(int value, std::int64_t limit, std::string_view name,
                         std::string_view what) {
  if (value >= 0 && value < limit) return {};
  return Fail(
      FailureCode::kInvalid,
      fmt::format("{} is {}, but the job has {} {}, counted from 0", name, value, limit, what),
      std::string(name));
}

bool IsPositive(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

Outcome<void> ManagedJob::CheckRank(const store::RankRecord& rank) const {
  if (auto good = CheckBelow(rank.rank, shape_.world_size(), "rank", "ranks"); !good) return good;
  if (auto good = CheckBelow(rank.dp_rank, shape_.data_parallel, "dp_rank", "pipelines"); !good) {
    return good;
  }
  if (auto good = CheckBelow(rank.pp_rank, shape_.pipeline_parallel, "pp_rank", "ranks a pipeline");
      !good) {
    return good;
  }
  if (auto good =
          CheckBelow(rank.tp_rank, shape_.tensor_parallel, "tp_rank", "tensor-parallel ranks");
      !good) {
    return good;
  }
  const auto known = ranks_.find(rank.rank);
  const auto pending = pending_.find(rank.rank);
  const store::RankRecord* const same_rank = known != ranks_.end()       ? &known->second
                                             : pending != pending_.end() ? &pending->second.rank
                                                                         : nullptr;
  if (same_rank != nullptr && PositionOf(*same_rank) != PositionOf(rank)) {
    return Fail(
        FailureCode::kConflict,
        fmt::format("rank {} is registered as dp_rank {}, pp_rank {}, tp_rank {}, and cannot "
                    "be dp_rank {}, pp_rank {}, tp_rank {} too",
                    rank.rank, same_rank->dp_rank, same_rank->pp_rank, same_rank->tp_rank,
                    rank.dp_rank, rank.pp_rank, rank.tp_rank),
        "rank");
  }
  const auto taken = positions_.find(PositionOf(rank));
  if (taken != positions_.end() && taken->second != rank.rank) {
    return Fail(FailureCode::kConflict,
                fmt::format("dp_rank {}, pp_rank {}, tp_rank {} is the position of rank {}, and "
                            "cannot be that of rank {} too",
                            rank.dp_rank, rank.pp_rank, rank.tp_rank, taken->second, rank.rank),
                "rank");
  }
  return {};
}

void ManagedJob::Register(store::RankRecord rank, RegisteredCallback registered) {
  std::unique_lock lock(mutex_);
  const auto answer = [&](const Outcome<Registered>& outcome) {
    lock.unlock();
    registered(outcome);
  };
  if (is_gone_) return answer(Fail(FailureCode::kNotFound, "the job was deleted"));
  if (phase_.state == JobState::kFinished) {
    return answer(Fail(FailureCode::kConflict, "the job has finished; create another one"));
  }
  rank.job = record_.id;
  if (auto good = CheckRank(rank); !good) return answer(tl::unexpected(good.error()));
  // Not where another record of it is on its way to the store, and would be the last.
  if (const auto known = ranks_.find(rank.rank);
      known != ranks_.end() && !pending_.contains(rank.rank)) {
    const store::RankRecord& old = known->second;
    if (old.gpu_uuid == rank.gpu_uuid && old.gpu_name == rank.gpu_name && old.node == rank.node &&
        old.clocks_mhz == rank.clocks_mhz) {
      return answer(Registered{phase_.version.version, phase_.state});
    }
  }
  Pending& pending = pending_[rank.rank];
  pending.rank = rank;
  ++pending.requests;
  positions_[PositionOf(rank)] = rank.rank;
  // Under the lock, so that facts about one rank are written in this order.
  context_->store.Add({rank}, [self = shared_from_this(), rank, registered = std::move(registered)](
                                  const Result<store::JobMarks>& written) {
    registered(self->OnRegistered(rank, written));
  });
}

Outcome<ManagedJob::Registered> ManagedJob::OnRegistered(const store::RankRecord& rank,
                                                         const Result<store::JobMarks>& written) {
  const std::lock_guard lock(mutex_);
  if (written) {
    ranks_[rank.rank] = rank;
    planned_at_ = kNeverPlanned;  // A straggling node may have one more.
  }
  if (const auto found = pending_.find(rank.rank);
      found != pending_.end() && --found->second.requests == 0) {
    if (!ranks_.contains(rank.rank)) positions_.erase(PositionOf(rank));
    pending_.erase(found);
  }
  if (!written) return Unavailable(written.error());
  Advance();
  return Registered{phase_.version.version, phase_.state};
}

Outcome<void> ManagedJob::CheckMeasurements(const store::Measurements& measured) const {
  if (is_gone_) return Fail(FailureCode::kNotFound, "the job was deleted");
  if (!ranks_.contains(measured.rank)) {
    return Fail(FailureCode::kConflict,
                fmt::format("rank {} is not registered; register it first", measured.rank), "rank");
  }
  if (record_.origin == store::JobOrigin::kZeus) {
    return Fail(FailureCode::kConflict,
                "the job came over Zeus' wire, which plans it; create one of Perseus to measure");
  }
  if (job_ != nullptr || IsOver()) {
    return Fail(FailureCode::kConflict, "the job has its profile; it takes no more measurements");
  }
  const auto before = measured_rows_.find(measured.rank);
  if (measured.rows.size() + (before == measured_rows_.end() ? 0 : before->second) >
      kMostMeasuredRows) {
    return Fail(FailureCode::kTooLarge,
                fmt::format("rank {} measured more than {} rows, the most of one rank; send "
                            "medians of its repetitions",
                            measured.rank, kMostMeasuredRows),
                "rows");
  }
  for (std::size_t i = 0; i < measured.rows.size(); ++i) {
    const store::MeasuredRow& row = measured.rows[i];
    const auto wrong = [&](std::string_view field, std::string_view expected) {
      return Fail(FailureCode::kInvalid, fmt::format("{} of row {} must be {}", field, i, expected),
                  fmt::format("rows[{}].{}", i, field));
    };
    if (row.stage < 0) return wrong("stage", "0 or more");
    if (measurable_ && row.stage >= measurable_->num_stages) {
      return wrong("stage",
                   fmt::format("below {}, the stages of the job", measurable_->num_stages));
    }
    if (measurable_ && !measurable_->Has(row.type)) {
      return wrong("instruction", "forward or backward, which the job's schedule does not split");
    }
    if (row.clock_mhz <= 0) return wrong("frequency", "a clock in MHz, above 0");
    if (!IsPositive(row.time_seconds)) return wrong("time", "seconds, above 0");
    if (!std::isfinite(row.energy_joules) || row.energy_joules < 0) {
      return wrong("energy", "joules, 0 or more");
    }
  }
  const auto power = measured.blocking_power_watts;
  if (power && (!std::isfinite(*power) || *power < 0)) {
    return Fail(FailureCode::kInvalid, "blocking_power_w must be watts, 0 or more",
                "blocking_power_w");
  }
  return {};
}

void ManagedJob::Measure(store::Measurements measured, DoneCallback done) {
  Outcome<void> good;
  {
    const std::lock_guard lock(mutex_);
    measured.job = record_.id;
    if (!measurable_ && job_ == nullptr) {
      if (auto found = MeasurableOf(record_.settings_json)) measurable_ = *found;
    }
    good = CheckMeasurements(measured);
    if (good) measured_rows_[measured.rank] += measured.rows.size();
  }
  if (!good) return done(good);
  std::vector<Fact> facts = {measured};
  context_->store.Add(
      std::move(facts),
      [self = shared_from_this(), measured = std::move(measured), done = std::move(done)](
          const Result<store::JobMarks>& written) { done(self->OnMeasured(measured, written)); });
}

Outcome<void> ManagedJob::OnMeasured(const store::Measurements& measured,
                                     const Result<store::JobMarks>& written) {
  const std::lock_guard lock(mutex_);
  if (!written) {
    measured_rows_[measured.rank] -= measured.rows.size();
    return Unavailable(written.error());
  }
  // The profile was made meanwhile; the store keeps what came late.
  if (job_ != nullptr) return {};
  table_.Add(measured, ranks_[measured.rank].pp_rank);
  last_measured_seconds_ = context_->now_seconds();
  Advance();
  return {};
}

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
  const std::lock_guard lock(mutex_);
  if (auto good = CheckStraggler(request); !good) return tl::unexpected(good.error());
  if (phase_.state == JobState::kFinished) {
    return Fail(FailureCode::kConflict, "the job has finished");
  }
  if (phase_.stragglers.size() >= kMostStragglers) {
    return Fail(FailureCode::kTooLarge,
                fmt::format("the job has {} stragglers; clear some", kMostStragglers));
  }
  const double now = context_->now_seconds();
  store::StragglerRecord straggler;
  straggler.job = record_.id;
  straggler.id = last_straggler_ + 1;
  straggler.pipeline = request.pipeline;
  straggler.rank = request.rank;
  straggler.node = request.node;
  straggler.factor = request.factor;
  straggler.delay_seconds = request.delay_seconds;
  straggler.starts_at_seconds = now + request.starts_in_seconds;
  if (request.expires_in_seconds) straggler.expires_at_seconds = now + *request.expires_in_seconds;
  Phase next = phase_;
  next.stragglers.push_back(straggler);
  if (auto committed = Commit({straggler}, std::move(next)); !committed) {
    return tl::unexpected(committed.error());
  }
  last_straggler_ = straggler.id;
  context_->events.Emit({"straggler", record_.id,
                         FormatCompact({{"job", record_.id}, {"straggler_id", straggler.id}})});
  return straggler.id;
}

Outcome<void> ManagedJob::ClearStraggler(std::int64_t id) {
  const std::lock_guard lock(mutex_);
  Phase next = phase_;
  const auto erased = std::erase_if(
      next.stragglers, [&](const store::StragglerRecord& straggler) { return straggler.id == id; });
  if (erased == 0) {
    return Fail(FailureCode::kNotFound,
                fmt::format("the job has no straggler {}; it was cleared, or has expired", id));
  }
  return Commit({store::StragglerGone{.job = record_.id, .id = id}}, std::move(next));
}

Outcome<void> ManagedJob::ClearStragglers() {
  const std::lock_guard lock(mutex_);
  Phase next = phase_;
  std::vector<Fact> facts;
  for (const store::StragglerRecord& straggler : next.stragglers) {
    facts.emplace_back(store::StragglerGone{.job = record_.id, .id = straggler.id});
  }
  next.stragglers.clear();
  return Commit(std::move(facts), std::move(next));
}

std::optional<store::RankRecord> ManagedJob::FindRank(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return std::nullopt;
  return found->second;
}

std::vector<store::RankRecord> ManagedJob::Ranks() const {
  const std::lock_guard lock(mutex_);
  std::vector<store::RankRecord> ranks;
  ranks.reserve(ranks_.size());
  for (const auto& [number, rank] : ranks_) ranks.push_back(rank);
  return ranks;
}

}  // namespace perseus::server
