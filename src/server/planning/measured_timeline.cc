// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/measured_timeline.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

namespace perseus::server {
namespace {

using Way = std::pair<int, int>;  // From this rank to that one.

// The least time from the end of a computation to the begin of one on another rank that needs it,
// each by its own rank's clock.
std::map<Way, double> LeastWays(const PipelineDag& dag,
                                const std::vector<std::vector<RowSpan>>& ranks) {
  std::map<Way, double> least;
  const auto at = [&](int computation) -> const Computation& {
    return dag.computations[static_cast<std::size_t>(computation)];
  };
  const auto span = [&](const Computation& computation) -> const RowSpan& {
    return ranks[static_cast<std::size_t>(computation.rank)]
                [static_cast<std::size_t>(computation.position)];
  };
  for (const Precedence& precedence : dag.precedences) {
    const Computation& from = at(precedence.from);
    const Computation& to = at(precedence.to);
    if (from.rank == to.rank) continue;
    const double seconds = span(to).begin_seconds - span(from).end_seconds;
    const auto [found, is_new] = least.try_emplace({from.rank, to.rank}, seconds);
    if (!is_new) found->second = std::min(found->second, seconds);
  }
  return least;
}

}  // namespace

std::vector<std::optional<RankOffset>> OffsetsOf(const PipelineDag& dag,
                                                 const std::vector<std::vector<RowSpan>>& ranks) {
  std::vector<std::optional<RankOffset>> offsets(ranks.size());
  if (offsets.empty() || !Fits(dag, ranks)) return offsets;
  std::map<Way, RankOffset> apart;  // How much later the second one's clock began.
  const std::map<Way, double> least = LeastWays(dag, ranks);
  for (const auto& [way, there] : least) {
    const auto back = least.find({way.second, way.first});
    if (back == least.end()) continue;
    // Bounds that contradict each other are off by at least their distance.
    apart[way] = {.seconds = (back->second - there) / 2,
                  .error_seconds = std::abs(back->second + there) / 2};
  }
  offsets.front() = RankOffset();
  // Over the ranks whose errors add up to the least. Each round is one rank further.
  for (bool is_better = true; std::exchange(is_better, false);) {
    for (const auto& [way, between] : apart) {
      const auto& from = offsets[static_cast<std::size_t>(way.first)];
      auto& to = offsets[static_cast<std::size_t>(way.second)];
      if (!from) continue;
      const double error = from->error_seconds + between.error_seconds;
      if (to && to->error_seconds <= error) continue;
      to = RankOffset{.seconds = from->seconds + between.seconds, .error_seconds = error};
      is_better = true;
    }
  }
  return offsets;
}

MeasuredTimeline TimelineOf(const PipelineDag& dag, const std::vector<std::vector<RowSpan>>& ranks,
                            const std::vector<double>& clocks_mhz) {
  const std::vector<std::optional<RankOffset>> offsets = OffsetsOf(dag, ranks);
  MeasuredTimeline timeline;
  double first = std::numeric_limits<double>::infinity();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const double later = offsets[rank] ? offsets[rank]->seconds : 0;
    MeasuredRank& measured = timeline.ranks.emplace_back();
    measured.offset = offsets[rank];
    measured.computations.reserve(ranks[rank].size());
    for (std::size_t position = 0; position < ranks[rank].size(); ++position) {
      const RowSpan& row = ranks[rank][position];
      const auto computation = static_cast<std::size_t>(dag.rank_order[rank][position]);
      measured.computations.push_back(
          {.id = dag.computations[computation].id,
           .clock_mhz = clocks_mhz[computation],
           .start_seconds = row.begin_seconds + later,
           .duration_seconds = std::max(0.0, row.end_seconds - row.begin_seconds)});
      first = std::min(first, measured.computations.back().start_seconds);
    }
  }
  for (MeasuredRank& rank : timeline.ranks) {
    for (TimedComputation& each : rank.computations) each.start_seconds -= first;
  }
  return timeline;
}

std::int64_t MeasuredTimeline::size() const {
  std::int64_t count = 0;
  for (const MeasuredRank& rank : ranks) count += std::ssize(rank.computations);
  return count;
}

double MeasuredTimeline::seconds() const {
  double last = 0;
  for (const MeasuredRank& rank : ranks) {
    for (const TimedComputation& each : rank.computations) {
      last = std::max(last, each.start_seconds + each.duration_seconds);
    }
  }
  return last;
}

std::optional<double> MeasuredTimeline::error_seconds() const {
  double most = 0;
  for (const MeasuredRank& rank : ranks) {
    if (!rank.offset) return std::nullopt;
    most = std::max(most, rank.offset->error_seconds);
  }
  return most;
}

}  // namespace perseus::server
