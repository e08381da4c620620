// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What the figures of now and the history say of one job: both by its slowest rank.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "server/detect/iteration_history.h"
#include "server/detect/job_watch.h"

namespace perseus::server {
namespace {

constexpr double kAnHour = 20'000 * 86'400.0 + 3600;

// A job whose ranks send their reports in batches, in whatever order, to one server.
class SlowestRankJob {
 public:
  explicit SlowestRankJob(std::size_t ranks) : sent_(ranks) {}

  void Send(int rank, std::size_t most, const std::vector<std::vector<double>>& seconds,
            const std::vector<std::vector<std::optional<double>>>& joules) {
    const auto of = static_cast<std::size_t>(rank);
    std::vector<WatchedIteration> reports;
    for (; reports.size() < most && sent_[of] < seconds.size(); ++sent_[of]) {
      reports.push_back({.rank = rank,
                         .node = "",
                         .iteration = static_cast<std::int64_t>(sent_[of]),
                         .time_seconds = seconds[sent_[of]][of],
                         .energy_joules = joules[sent_[of]][of]});
    }
    const auto complete = watch_.Take(reports, nullptr, sent_.size(), kAnHour);
    for (const WatchedIteration& each : reports) {
      history_.Add({.seconds = each.time_seconds, .joules = each.energy_joules},
                   static_cast<int>(sent_.size()), kAnHour);
    }
    for (const IterationFigures& each : complete) history_.AddIteration(each, kAnHour);
  }
  store::HistoryRow Day() {
    for (const store::Fact& fact : history_.Take()) {
      const auto& row = std::get<store::HistoryRow>(fact);
      if (row.resolution == store::Resolution::kDay) return row;
    }
    return {};
  }
  WatchView View() const { return watch_.View(kAnHour); }

 private:
  std::vector<std::size_t> sent_;  // Iterations, by rank.
  JobWatch watch_;
  IterationHistory history_{"j-1", {}};
};

// Whole numbers, so that sums are exact.
RC_GTEST_PROP(SlowestRankProperty, TheHistoryIsAsSlowAsTheSlowestRankAndHasAllJoules, ()) {
  const auto ranks = *rc::gen::inRange<std::size_t>(1, 9);
  const auto iterations = *rc::gen::inRange<std::size_t>(1, 17);  // As many as the figures of now.
  const bool is_steady = *rc::gen::arbitrary<bool>();
  const auto of_ranks = *rc::gen::container<std::vector<int>>(ranks, rc::gen::inRange(1, 1000));
  const auto noise =
      *rc::gen::container<std::vector<int>>(ranks * iterations, rc::gen::inRange(0, 1000));
  std::vector<std::vector<double>> seconds(iterations, std::vector<double>(ranks));
  std::vector<std::vector<std::optional<double>>> joules(iterations,
                                                         std::vector<std::optional<double>>(ranks));
  for (std::size_t i = 0; i < iterations; ++i) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const int value = noise[i * ranks + rank];
      seconds[i][rank] = of_ranks[rank] + (is_steady ? 0 : value);
      if (value % 10 > 0) joules[i][rank] = value;
    }
  }
  SlowestRankJob job(ranks);
  const auto order = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, static_cast<int>(ranks)), rc::gen::inRange(1, 5)));
  for (const auto& [rank, most] : order) {
    job.Send(rank, static_cast<std::size_t>(most), seconds, joules);
  }
  for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
    job.Send(rank, iterations, seconds, joules);
  }

  double slowest = 0;
  double measured_seconds = 0;
  double measured_joules = 0;
  std::int64_t measured = 0;
  double all_seconds = 0;
  double all_joules = 0;
  for (std::size_t i = 0; i < iterations; ++i) {
    const double longest = *std::max_element(seconds[i].begin(), seconds[i].end());
    const double of_all = std::accumulate(
        joules[i].begin(), joules[i].end(), 0.0,
        [](double sum, const std::optional<double>& each) { return sum + each.value_or(0); });
    slowest += longest;
    all_seconds += std::accumulate(seconds[i].begin(), seconds[i].end(), 0.0);
    all_joules += of_all;
    if (!std::all_of(joules[i].begin(), joules[i].end(), [](const auto& each) { return each; })) {
      continue;
    }
    ++measured;
    measured_seconds += longest;
    measured_joules += of_all;
  }
  const store::HistoryRow day = job.Day();
  const auto count = static_cast<std::int64_t>(iterations);
  const auto all = static_cast<std::int64_t>(ranks);
  RC_ASSERT(day.times == (store::IterationTimes{count, all * count, slowest}));
  if (is_steady) {
    RC_ASSERT(slowest == *std::max_element(of_ranks.begin(), of_ranks.end()) * 1.0 * count);
  }
  RC_ASSERT(day.measured_times ==
            (store::IterationTimes{measured, all * measured, measured_seconds}));
  RC_ASSERT(day.measured_joules == measured_joules);
  // The sums that accounts are made of.
  RC_ASSERT(day.reports == all * count);
  RC_ASSERT(day.total_seconds == all_seconds);
  RC_ASSERT(day.joules == all_joules);
  // The power of now is of the same iterations.
  const std::optional<RecentFigures> now = job.View().recent;
  RC_ASSERT(now.has_value());
  RC_ASSERT(now->iterations == iterations);
  RC_ASSERT(now->watts.has_value() == (measured > 0));
  if (measured > 0) RC_ASSERT(*now->watts == measured_joules / measured_seconds);
}

}  // namespace
}  // namespace perseus::server
