// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What ranks and operators tell of a job: positions, measurements.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/domain/checks.h"
#include "server/runtime/managed_job.h"

namespace perseus::server {
namespace {

using store::Fact;
using store::JobState;

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

void ManagedJob::Register(store::RankRecord rank, const RegisteredCallback& registered) {
  rank.job = record_.id;
  Join(rank, registered, /*is_second_look=*/false);
}

void ManagedJob::Join(const store::RankRecord& rank, const RegisteredCallback& registered,
                      bool is_second_look) {
  std::unique_lock lock(mutex_);
  const auto answer = [&](const Outcome<Registered>& outcome) {
    lock.unlock();
    registered(outcome);
  };
  if (is_gone_) return answer(Fail(FailureCode::kNotFound, "the job was deleted"));
  if (phase_.state == JobState::kFinished) {
    return answer(Fail(FailureCode::kConflict,
                       "the job has finished; for another run give another client key, or "
                       "delete this job first"));
  }
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
  context_->store.Add({rank}, [self = shared_from_this(), rank, registered,
                               is_second_look](const Result<store::JobMarks>& written) {
    self->OnRegistered(rank, registered, is_second_look, written);
  });
}

bool ManagedJob::IsAt(const store::RankRecord& rank) const {
  const auto known = ranks_.find(rank.rank);
  if (known != ranks_.end() && PositionOf(known->second) == PositionOf(rank)) return true;
  const auto pending = pending_.find(rank.rank);
  return pending != pending_.end() && PositionOf(pending->second.rank) == PositionOf(rank);
}

void ManagedJob::OnRegistered(const store::RankRecord& rank, const RegisteredCallback& registered,
                              bool is_second_look, const Result<store::JobMarks>& written) {
  Outcome<Registered> outcome;
  {
    const std::lock_guard lock(mutex_);
    if (written) {
      ranks_[rank.rank] = rank;
      planned_at_ = kNeverPlanned;  // A straggling node may have one more.
    }
    if (const auto found = pending_.find(rank.rank);
        found != pending_.end() && --found->second.requests == 0) {
      pending_.erase(found);
    }
    // Refused, and perhaps known meanwhile at another position, from another server.
    if (const auto position = positions_.find(PositionOf(rank));
        position != positions_.end() && position->second == rank.rank && !IsAt(rank)) {
      positions_.erase(position);
    }
    if (written) {
      NoteOwnRows(*written);  // In any case the rank is here, and asks for its plan next.
      Advance();
      outcome = Registered{phase_.version.version, phase_.state};
    } else {
      outcome = Unavailable(written.error());
    }
  }
  // Another server has the rank or its position, or deleted the job: what the sentence
  // says of it is in the store.
  const bool is_taken = !written && written.error().code == ErrorCode::kConflict;
  if (is_taken && !is_second_look && Refresh()) return Join(rank, registered, true);
  registered(outcome);
}

// Whether rows that this server wrote are to be added to what it knows: not where they
// came by reading, and not before what other servers wrote in between has been read. All
// requests of one commit have the same marks.
bool ManagedJob::NoteOwnRows(const store::JobMarks& marks) {
  if (!context_->store.is_shared()) return true;
  own_rows_ = std::max(own_rows_, marks.rows);
  if (marks.rows <= read_rows_) return false;
  if (marks.rows > known_rows_ + 1) {
    context_->refresh_soon(record_.id);
    return false;
  }
  known_rows_ = std::max(known_rows_, marks.rows);
  seen_rows_ = known_rows_;
  return true;
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
  if (!TakesMeasurements()) {
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
  measured.job = record_.id;
  const Outcome<void> good = OnFresh([&] {
    if (!measurable_ && job_ == nullptr) {
      if (auto found = MeasurableOf(record_.settings_json)) measurable_ = *found;
    }
    Outcome<void> checked = CheckMeasurements(measured);
    measured.sweep_round = phase_.sweep_round;
    if (checked) measured_rows_[measured.rank] += measured.rows.size();
    return checked;
  });
  if (!good) return done(good);
  std::vector<Fact> facts = {measured};
  context_->store.Add(std::move(facts), [self = shared_from_this(), measured = std::move(measured),
                                         done = std::move(done)](const auto& written) {
    done(self->OnMeasured(measured, written));
  });
}

Outcome<void> ManagedJob::OnMeasured(const store::Measurements& measured,
                                     const Result<store::JobMarks>& written) {
  const std::lock_guard lock(mutex_);
  if (!written) {
    std::size_t& rows = measured_rows_[measured.rank];
    rows -= std::min(rows, measured.rows.size());
    if (written.error().code != ErrorCode::kConflict) return Unavailable(written.error());
    return Fail(FailureCode::kNotFound, "the job was deleted");
  }
  const bool is_new = NoteOwnRows(*written);
  for (const std::string& note : measured.notes) EmitProfiling(note, measured.rank);
  // The profile was made meanwhile; the store keeps what came late.
  if (!TakesMeasurements() || measured.sweep_round != phase_.sweep_round) return {};
  if (is_new) table_.Add(measured, ranks_[measured.rank].pp_rank);
  last_measured_seconds_ = context_->now_seconds();
  Advance();
  return {};
}

std::optional<store::RankRecord> ManagedJob::FindRank(int rank) {
  for (const bool is_second_look : {false, true}) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = ranks_.find(rank); found != ranks_.end()) return found->second;
    }
    const bool may_be_elsewhere = rank >= 0 && rank < shape_.world_size();
    if (is_second_look || !may_be_elsewhere || !Refresh()) break;
  }
  return std::nullopt;
}

std::vector<store::RankRecord> ManagedJob::Ranks() const {
  const std::lock_guard lock(mutex_);
  std::vector<store::RankRecord> ranks;
  ranks.reserve(ranks_.size());
  for (const auto& [number, rank] : ranks_) ranks.push_back(rank);
  return ranks;
}

}  // namespace perseus::server
