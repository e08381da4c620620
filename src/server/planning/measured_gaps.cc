// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/measured_gaps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "common/numbers.h"

namespace perseus::server {
namespace {

constexpr std::size_t kMostIterations = 64;
constexpr std::size_t kLeastIterations = 8;
// A figure is sure if its error is below this, or below this share of it.
constexpr double kSureSeconds = 10e-6;
constexpr double kSureShare = 0.1;
// Computations that follow each other have a small gap: the host's work. One that waited has more
// than twice as much, and this.
constexpr double kLeastWaitSeconds = 50e-6;

struct Figure {
  double value = 0;
  double error = 0;
};

// The median and its standard error, as that of normal draws; none: not sure.
std::optional<Figure> SureMedian(const std::deque<double>& values) {
  if (values.size() < kLeastIterations) return std::nullopt;
  constexpr double kDeviationsOfMad = 1.4826;
  constexpr double kErrorOfMedian = 1.2533;  // Against that of the mean.
  const double median = UpperMedianOf({values.begin(), values.end()});
  std::vector<double> off;
  off.reserve(values.size());
  for (const double value : values) off.push_back(std::abs(value - median));
  const double error = kErrorOfMedian * kDeviationsOfMad * UpperMedianOf(std::move(off)) /
                       std::sqrt(static_cast<double>(values.size()));
  if (error > std::max(kSureSeconds, kSureShare * std::abs(median))) return std::nullopt;
  return Figure{.value = median, .error = error};
}

void Keep(double value, std::deque<double>* values) {
  values->push_back(value);
  if (values->size() > kMostIterations) values->pop_front();
}

// An iteration, looked up by computation.
class Iteration {
 public:
  Iteration(const PipelineDag& dag, const std::vector<std::vector<RowSpan>>& ranks)
      : dag_(dag), ranks_(ranks) {}

  const RowSpan& Of(int computation) const {
    const Computation& at = dag_.computations[static_cast<std::size_t>(computation)];
    return ranks_[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(at.position)];
  }
  bool IsFirst(int computation) const {
    return dag_.computations[static_cast<std::size_t>(computation)].position == 0;
  }
  // Since the computation before it on the rank, or the begin of the rank's iteration.
  double GapBefore(int computation) const {
    const Computation& at = dag_.computations[static_cast<std::size_t>(computation)];
    const std::vector<RowSpan>& rows = ranks_[static_cast<std::size_t>(at.rank)];
    const auto position = static_cast<std::size_t>(at.position);
    return rows[position].begin_seconds - (position == 0 ? 0 : rows[position - 1].end_seconds);
  }
  // From another rank: the only one, the first of several, or nullptr.
  const Precedence* Arrival(int computation, int* count) const {
    const auto to = static_cast<std::size_t>(computation);
    const Precedence* arrival = nullptr;
    *count = 0;
    for (int k = dag_.first_precedence[to]; k < dag_.first_precedence[to + 1]; ++k) {
      const Precedence& precedence = dag_.precedences[static_cast<std::size_t>(k)];
      if (RankOf(precedence.from) == RankOf(precedence.to)) continue;
      if (++*count == 1) arrival = &precedence;
    }
    return arrival;
  }
  int StageOf(int computation) const {
    return dag_.computations[static_cast<std::size_t>(computation)].id.stage;
  }

 private:
  int RankOf(int computation) const {
    return dag_.computations[static_cast<std::size_t>(computation)].rank;
  }

  const PipelineDag& dag_;
  const std::vector<std::vector<RowSpan>>& ranks_;
};

// Gaps of computations that wait for no other rank.
struct OwnGaps {
  std::vector<double> same;     // Their clock is that of the one before,
  std::vector<double> changed;  // or another.
};

OwnGaps OwnGapsOf(const PipelineDag& dag, const Iteration& iteration) {
  OwnGaps gaps;
  for (int i = 0; i < dag.size(); ++i) {
    int arrivals = 0;
    iteration.Arrival(i, &arrivals);
    if (arrivals > 0 || iteration.IsFirst(i)) continue;
    (iteration.Of(i).changes ? gaps.changed : gaps.same).push_back(iteration.GapBefore(i));
  }
  return gaps;
}

}  // namespace

std::vector<RowSpan> RowsOf(const wire::RankTimeline& timeline) {
  constexpr double kSecondsPerNs = 1e-9;
  std::vector<RowSpan> rows(std::min(timeline.begin_ns.size(), timeline.end_ns.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].begin_seconds = kSecondsPerNs * timeline.begin_ns[i];
    rows[i].end_seconds = kSecondsPerNs * timeline.end_ns[i];
  }
  for (const int change : timeline.changes) {
    const auto row = static_cast<std::size_t>(change);
    if (row < rows.size()) rows[row].changes = true;
  }
  return rows;
}

bool Fits(const PipelineDag& dag, const std::vector<std::vector<RowSpan>>& ranks) {
  if (ranks.size() != dag.rank_order.size()) return false;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].size() != dag.rank_order[rank].size()) return false;
  }
  return true;
}

void GapEstimate::Add(const PipelineDag& dag, const std::vector<std::vector<RowSpan>>& ranks) {
  if (!Fits(dag, ranks)) return;
  const Iteration iteration(dag, ranks);
  OwnGaps own = OwnGapsOf(dag, iteration);
  // The host's gap counts as stall where every clock changes.
  const double usual = own.same.empty() ? 0 : UpperMedianOf(std::move(own.same));
  std::optional<double> stall;
  if (!own.changed.empty()) {
    stall = UpperMedianOf(std::move(own.changed)) - usual;
    Keep(*stall, &stalls_);
  }

  const double least_wait = 2 * std::max(0.0, usual) + kLeastWaitSeconds;
  std::map<int, std::array<std::vector<double>, 2>> ways;  // By boundary: forth, and back.
  for (int i = 0; i < dag.size(); ++i) {
    int arrivals = 0;
    const Precedence* const arrival = iteration.Arrival(i, &arrivals);
    const bool stalls = iteration.Of(i).changes;
    if (arrivals != 1 || (stalls && !stall)) continue;
    const double stalled = stalls ? *stall : 0;
    if (iteration.GapBefore(i) - stalled < least_wait) continue;
    const int from = iteration.StageOf(arrival->from);
    const int to = iteration.StageOf(i);
    if (std::abs(from - to) != 1) continue;
    ways[std::min(from, to)][from < to ? 0 : 1].push_back(iteration.Of(i).begin_seconds - stalled -
                                                          iteration.Of(arrival->from).end_seconds);
  }
  for (auto& [boundary, way] : ways) {
    if (way[0].empty() || way[1].empty()) continue;
    Keep((UpperMedianOf(std::move(way[0])) + UpperMedianOf(std::move(way[1]))) / 2,
         &transfers_[boundary]);
  }
}

std::vector<MeasuredTransfer> GapEstimate::Transfers() const {
  std::vector<MeasuredTransfer> sure;
  for (const auto& [boundary, values] : transfers_) {
    const auto figure = SureMedian(values);
    if (!figure) continue;
    sure.push_back({.boundary = boundary,
                    .seconds = std::max(0.0, figure->value),
                    .error_seconds = figure->error,
                    .iterations = static_cast<std::int64_t>(values.size())});
  }
  return sure;
}

std::optional<MeasuredStall> GapEstimate::Stall() const {
  const auto figure = SureMedian(stalls_);
  if (!figure) return std::nullopt;
  return MeasuredStall{.seconds = std::max(0.0, figure->value),
                       .error_seconds = figure->error,
                       .iterations = static_cast<std::int64_t>(stalls_.size())};
}

std::vector<double> DelaysOf(const std::vector<MeasuredTransfer>& transfers, int num_stages) {
  if (transfers.empty() || num_stages < 2) return {};
  std::vector<double> seconds;
  seconds.reserve(transfers.size());
  for (const MeasuredTransfer& transfer : transfers) seconds.push_back(transfer.seconds);
  std::vector<double> delays(static_cast<std::size_t>(num_stages - 1),
                             UpperMedianOf(std::move(seconds)));
  for (const MeasuredTransfer& transfer : transfers) {
    const auto boundary = static_cast<std::size_t>(transfer.boundary);
    if (boundary < delays.size()) delays[boundary] = transfer.seconds;
  }
  return delays;
}

bool TransfersHaveMoved(const std::vector<MeasuredTransfer>& planned,
                        const std::vector<MeasuredTransfer>& measured, double iteration_seconds) {
  constexpr double kFelt = 0.0002;  // Of an iteration.
  constexpr double kErrors = 3;
  double apart = 0;
  double variance = 0;
  for (const MeasuredTransfer& transfer : measured) {
    const std::vector<double> delays = DelaysOf(planned, transfer.boundary + 2);
    const double known = delays.empty() ? 0 : delays.back();
    // The first microbatch goes forth and the last one comes back.
    apart += 2 * std::abs(transfer.seconds - known);
    variance += 4 * transfer.error_seconds * transfer.error_seconds;
  }
  return apart > kFelt * iteration_seconds && apart > kErrors * std::sqrt(variance);
}

}  // namespace perseus::server
