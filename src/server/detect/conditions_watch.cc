// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/conditions_watch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "common/input_limits.h"
#include "model/noise.h"

namespace perseus::server {
namespace {

constexpr double kMostReports = 512;

}  // namespace

void TimesWatch::Add(const KindReport& report) {
  if (!report.is_steady || report.count <= 0 || !(report.time_seconds > 0)) return;
  if (kinds_.size() >= kMostReportedKinds && kinds_.count(report.key) == 0) return;
  Kind& kind = kinds_[report.key];
  if (kind.reports >= kMostReports) {
    constexpr double kKept = 1 - 1 / kMostReports;
    kind.reports *= kKept;
    kind.weight *= kKept;
    kind.squares *= kKept * kKept;
    kind.spread *= kKept;
  }
  const auto weight = static_cast<double>(report.count);
  kind.reports += 1;
  kind.weight += weight;
  kind.squares += weight * weight;
  const double off = report.time_seconds - kind.mean;
  kind.mean += weight / kind.weight * off;
  kind.spread += weight * off * (report.time_seconds - kind.mean);
}

std::vector<MeasuredTime> TimesWatch::Measured() const {
  std::vector<MeasuredTime> times;
  for (const auto& [key, kind] : kinds_) {
    if (kind.reports < kLeastReports || kind.weight < kLeastComputations) continue;
    // How many reports of equal weight say as much.
    const double equal = kind.weight * kind.weight / kind.squares;
    if (!(equal > 1)) continue;
    const double error = std::sqrt(kind.spread / kind.weight / (equal - 1));
    if (!(error <= kMostError * kind.mean)) continue;
    times.push_back({.stage = key.stage,
                     .type = key.type,
                     .clock_mhz = key.clock_mhz,
                     .seconds = kind.mean,
                     .error_seconds = error,
                     .computations = static_cast<std::int64_t>(kind.weight)});
  }
  return times;
}
namespace {

constexpr std::size_t kMostWaiting = 8;
// Ranks end an iteration together and report it seconds later. An older report may be of the same
// iteration before training began again.
constexpr double kPatienceSeconds = 120;

bool FitsRank(const PipelineDag& dag, const RankRows& told) {
  return told.rank >= 0 && told.rank < dag.num_ranks && !told.rows.empty() &&
         told.rows.size() == dag.rank_order[static_cast<std::size_t>(told.rank)].size();
}

}  // namespace

std::optional<WholeIteration> GapWatch::Take(const PipelineDag& dag, RankRows told) {
  if (!FitsRank(dag, told)) return std::nullopt;
  const Key key = {told.plan_version, told.iteration};
  const auto [found, is_new] = waiting_.try_emplace(key);
  if (is_new) order_.push_back(key);
  Waiting& waiting = found->second;
  if (is_new || told.heard_seconds - waiting.since_seconds > kPatienceSeconds) {
    waiting = Waiting{.since_seconds = told.heard_seconds};
  }
  waiting.ranks[told.rank] = std::move(told.rows);
  waiting.as_planned = waiting.as_planned && told.as_planned;
  std::optional<WholeIteration> whole;
  if (static_cast<int>(waiting.ranks.size()) == dag.num_ranks) {
    whole = WholeIteration{.as_planned = waiting.as_planned};
    whole->ranks.reserve(waiting.ranks.size());
    for (auto& [number, spans] : waiting.ranks) whole->ranks.push_back(std::move(spans));
    estimate_.Add(dag, whole->ranks);
    waiting_.erase(found);
    std::erase(order_, key);
  }
  while (order_.size() > kMostWaiting) {
    waiting_.erase(order_.front());
    order_.pop_front();
  }
  return whole;
}
namespace {

constexpr double kOddShare = 0.1;  // At either end.

struct Weighted {
  RankFigure figure;
  double weight = 0;
};

// The error is that of the ranks' own errors, or that of their spread, whichever is more.
MeasuredCondition MeanOf(std::vector<Weighted> list) {
  if (list.empty()) return {};
  std::sort(list.begin(), list.end(),
            [](const Weighted& a, const Weighted& b) { return a.figure.value < b.figure.value; });
  const auto ranks = static_cast<std::int64_t>(list.size());
  const auto odd = static_cast<std::size_t>(kOddShare * static_cast<double>(list.size()));
  double weight = 0;
  double sum = 0;
  for (std::size_t i = odd; i < list.size() - odd; ++i) {
    weight += list[i].weight;
    sum += list[i].weight * list[i].figure.value;
  }
  const double mean = sum / weight;
  double own = 0;
  double between = 0;
  for (std::size_t i = odd; i < list.size() - odd; ++i) {
    const double share = list[i].weight / weight;
    own += share * share * list[i].figure.error * list[i].figure.error;
    between += share * share * (list[i].figure.value - mean) * (list[i].figure.value - mean);
  }
  return {.value = mean, .error = std::sqrt(std::max(own, between)), .ranks = ranks};
}

// Half of the longer side of the interval of two errors: a variance that may be none is noise that
// may be none.
MeasuredCondition RootOf(const MeasuredCondition& variance) {
  const double least = std::sqrt(std::max(0.0, variance.value - 2 * variance.error));
  const double most = std::sqrt(std::max(0.0, variance.value + 2 * variance.error));
  const double value = std::sqrt(std::max(0.0, variance.value));
  return {
      .value = value, .error = std::max(most - value, value - least) / 2, .ranks = variance.ranks};
}

// By how much of their time rare computations take longer, from the variance that they add.
MeasuredCondition RareLengthOf(const MeasuredCondition& variance, const MeasuredCondition& share) {
  if (share.value <= 0 || variance.value <= 0) return {.ranks = variance.ranks};
  const double length = std::sqrt(variance.value / share.value / model::kRareSecondMoment);
  const double error = std::hypot(variance.error / variance.value, share.error / share.value) / 2;
  return {.value = std::min(length, kMostNoise), .error = length * error, .ranks = variance.ranks};
}

}  // namespace

void ConditionsWatch::Take(int rank, const RankConditions& conditions) {
  ranks_[rank] = conditions;
  has_news_ = true;
}

MeasuredConditions ConditionsWatch::Combined() const {
  MeasuredConditions all;
  const auto mean = [&](std::optional<RankFigure> RankConditions::*member,
                        std::int64_t RankConditions::*weight) {
    std::vector<Weighted> list;
    for (const auto& [rank, told] : ranks_) {
      const double count = std::max<double>(1, static_cast<double>(told.*weight));
      if (told.*member) list.push_back({*(told.*member), count});
    }
    return MeanOf(std::move(list));
  };
  const auto put = [&](Condition which, const MeasuredCondition& figure) {
    all.figures[static_cast<std::size_t>(which)] = figure;
  };
  put(Condition::kNoise,
      RootOf(mean(&RankConditions::noise_variance, &RankConditions::computations)));
  put(Condition::kRankNoise,
      RootOf(mean(&RankConditions::rank_noise_variance, &RankConditions::iterations)));
  put(Condition::kNoiseCorrelation,
      mean(&RankConditions::noise_correlation, &RankConditions::computations));
  const MeasuredCondition rare_share =
      mean(&RankConditions::rare_noise_share, &RankConditions::computations);
  put(Condition::kRareNoiseShare,
      {std::min(rare_share.value, kMostNoise), rare_share.error, rare_share.ranks});
  put(Condition::kRareNoise,
      RareLengthOf(mean(&RankConditions::rare_noise_variance, &RankConditions::computations),
                   rare_share));
  put(Condition::kLatency, mean(&RankConditions::latency_seconds, &RankConditions::calls));
  put(Condition::kLatencySpread,
      mean(&RankConditions::latency_spread_seconds, &RankConditions::calls));
  std::map<int, std::vector<Weighted>> of_clock;
  for (const auto& [rank, told] : ranks_) {
    for (const RankClockLatency& each : told.latency_at) {
      if (!each.seconds) continue;
      const double count = std::max<double>(1, static_cast<double>(each.calls));
      of_clock[each.clock_mhz].push_back({*each.seconds, count});
    }
  }
  for (auto& [clock_mhz, list] : of_clock) {
    all.latency_at.push_back({clock_mhz, MeanOf(std::move(list))});
  }
  for (const auto& [rank, told] : ranks_) {
    all.iterations = std::max(all.iterations, told.iterations);
    all.calls += told.calls;
  }
  if (const auto stall = gaps_.estimate().Stall()) {
    put(Condition::kStall,
        {.value = stall->seconds, .error = stall->error_seconds, .ranks = ranks_of_pipeline_});
  }
  all.times = times_.Measured();
  all.transfers = gaps_.estimate().Transfers();
  return all;
}

}  // namespace perseus::server
