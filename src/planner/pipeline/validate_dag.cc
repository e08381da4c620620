// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <string>

#include "perseus/pipeline.h"

// What can be no DAG, whoever filled it in: whatever runs through one relies on this.
namespace perseus {
inline namespace v0 {
namespace {

tl::unexpected<Error> Wrong(const char* field, const std::string& message) {
  return tl::unexpected<Error>({.code = ErrorCode::kInvalidInput,
                                .message = "the pipeline's DAG: " + message,
                                .field = field});
}

bool IsDelay(double seconds) { return seconds >= 0 && std::isfinite(seconds); }

Result<void> CheckComputations(const PipelineDag& dag) {
  const auto is_good = [&dag](const ComputationId& id) {
    return static_cast<int>(id.type) < kNumComputationTypes && id.stage >= 0 &&
           id.stage < dag.num_stages && id.microbatch >= 0 && id.microbatch < dag.num_microbatches;
  };
  for (int i = 0; i < dag.size(); ++i) {
    const Computation& computation = dag.computations[i];
    const ComputationId& id = computation.id;
    if (is_good(id) && (!computation.fused || is_good(*computation.fused))) continue;
    return Wrong(
        "computations",
        fmt::format("computation {} is {} of stage {}, microbatch {}, or runs with what is "
                    "none; there are {} stages and {} microbatches",
                    i, ComputationTypeName(id.type), id.stage, id.microbatch, dag.num_stages,
                    dag.num_microbatches));
  }
  return {};
}

Result<void> CheckRanks(const PipelineDag& dag) {
  if (dag.num_ranks < 1 || dag.rank_order.size() != static_cast<std::size_t>(dag.num_ranks)) {
    return Wrong("rank_order", fmt::format("it has {} ranks and the order of {}", dag.num_ranks,
                                           dag.rank_order.size()));
  }
  std::size_t placed = 0;
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    const std::vector<int>& order = dag.rank_order[rank];
    placed += order.size();
    for (std::size_t position = 0; position < order.size(); ++position) {
      const int i = order[position];
      const bool is_there = i >= 0 && i < dag.size() && dag.computations[i].rank == rank &&
                            dag.computations[i].position == static_cast<int>(position) &&
                            (position == 0 || order[position - 1] < i);
      if (is_there) continue;
      return Wrong("rank_order",
                   fmt::format("position {} of rank {} is computation {}, which is not there, says "
                               "otherwise, or comes before the one before it",
                               position, rank, i));
    }
  }
  if (placed == dag.computations.size()) return {};
  return Wrong("rank_order",
               fmt::format("{} of {} computations are on ranks", placed, dag.computations.size()));
}

Result<void> CheckPrecedences(const PipelineDag& dag) {
  const auto count = static_cast<int>(dag.precedences.size());
  if (dag.first_precedence.size() != dag.computations.size() + 1 ||
      dag.first_precedence.front() != 0 || dag.first_precedence.back() != count) {
    return Wrong("first_precedence", fmt::format("it should have {} offsets, from 0 to {}",
                                                 dag.computations.size() + 1, count));
  }
  for (int to = 0; to < dag.size(); ++to) {
    const int first = dag.first_precedence[to];
    const int last = dag.first_precedence[to + 1];
    if (first > last || last > count) {
      return Wrong("first_precedence",
                   fmt::format("the offsets of computation {} are {} and {}", to, first, last));
    }
    const Computation& computation = dag.computations[to];
    const int before =
        computation.position == 0 ? -1 : dag.rank_order[computation.rank][computation.position - 1];
    bool follows = before < 0;
    for (int k = first; k < last; ++k) {
      const Precedence& precedence = dag.precedences[k];
      follows = follows || precedence.from == before;
      if (precedence.to == to && precedence.from >= 0 && precedence.from < to &&
          IsDelay(precedence.delay_seconds)) {
        continue;
      }
      return Wrong("precedences",
                   fmt::format("precedence {} is from {} to {} with {} s; expected one to {}, from "
                               "a computation before it, with a number >= 0",
                               k, precedence.from, precedence.to, precedence.delay_seconds, to));
    }
    if (follows) continue;
    return Wrong("precedences",
                 fmt::format("computation {} does not wait for the one before it on its rank, {}",
                             to, before));
  }
  return {};
}

}  // namespace

std::optional<int> PipelineDag::Find(const ComputationId& id) const {
  for (int i = 0; i < size(); ++i) {
    if (computations[i].id == id || computations[i].fused == id) return i;
  }
  return std::nullopt;
}

Result<void> PipelineDag::Validate() const {
  if (computations.empty()) return Wrong("computations", "there is no computation");
  if (auto good = CheckComputations(*this); !good) return good;
  if (auto good = CheckRanks(*this); !good) return good;
  if (start_delay_seconds.size() != computations.size()) {
    return Wrong("start_delay_seconds",
                 fmt::format("there are {} start delays for {} computations",
                             start_delay_seconds.size(), computations.size()));
  }
  for (const double seconds : start_delay_seconds) {
    if (IsDelay(seconds)) continue;
    return Wrong("start_delay_seconds",
                 fmt::format("a start delay is {} s; expected a number >= 0", seconds));
  }
  if (!IsDelay(end_delay_seconds)) {
    return Wrong("end_delay_seconds",
                 fmt::format("the end delay is {} s; expected a number >= 0", end_delay_seconds));
  }
  return CheckPrecedences(*this);
}

}  // namespace v0
}  // namespace perseus
