// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Who ranks are, and what they measured.

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "server/base/failure.h"
#include "server/domain/draft.h"
#include "server/planning/job_spec.h"

namespace perseus::server {
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
  std::size_t unlocked = 0;
  for (const store::MeasuredRow& row : measured.rows) {
    const bool is_locked = row.clock_mhz != store::kUnlockedMhz;
    const std::size_t number = is_locked ? locked++ : unlocked++;
    auto good = CheckRow(row, is_locked ? "rows" : "unlocked", number, measurable);
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

Outcome<Draft> DecideOn(const Situation& on, const RegisterRank& command) {
  if (on.phase().state == store::JobState::kFinished) {
    return Fail(FailureCode::kConflict,
                "the job has finished; for another run use another client key, or delete this "
                "job first");
  }
  store::RankRecord rank = command.rank;
  rank.job = on.id();
  if (auto good = CheckRank(on, rank); !good) return tl::unexpected(good.error());
  Draft draft;
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
  draft.decision.facts.emplace_back(std::move(rank));
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const TakeMeasurements& command) {
  store::Measurements measured = command.measured;
  measured.job = on.id();
  measured.sweep_round = on.phase().sweep_round;
  if (auto good = CheckMeasurements(on, measured); !good) return tl::unexpected(good.error());
  Draft draft;
  for (const std::string& note : measured.notes) {
    draft.decision.announcements.push_back(ProfilingNews(note, measured.rank));
  }
  draft.decision.facts.emplace_back(std::move(measured));
  return draft;
}

}  // namespace perseus::server
