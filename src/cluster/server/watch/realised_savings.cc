// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/watch/realised_savings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace perseus::server {
namespace {

constexpr double kMostMissing = 0.1;  // Of a cycle's ranks, in an iteration.

// From 1 - with / without = 1 - exp(log ratio); more with is less saved.
ShareEstimate SavingOf(const RunningMean& logs) {
  const double half = logs.HalfInterval();
  return {.share = -std::expm1(logs.mean()),
          .least = -std::expm1(logs.mean() + half),
          .most = -std::expm1(logs.mean() - half)};
}

ShareEstimate SlowdownOf(const RunningMean& logs) {
  const double half = logs.HalfInterval();
  return {.share = std::expm1(logs.mean()),
          .least = std::expm1(logs.mean() - half),
          .most = std::expm1(logs.mean() + half)};
}

}  // namespace

double StudentT95(std::int64_t freedom) {
  constexpr std::array<double, 10> kFirst = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                                             2.4469,  2.3646, 2.3060, 2.2622, 2.2281};
  if (freedom <= static_cast<std::int64_t>(kFirst.size())) {
    return kFirst[static_cast<std::size_t>(std::max<std::int64_t>(freedom, 1) - 1)];
  }
  // Abramowitz and Stegun 26.7.5.
  constexpr double kZ = 1.959964;
  const auto n = static_cast<double>(freedom);
  return kZ + (std::pow(kZ, 3) + kZ) / (4 * n) +
         (5 * std::pow(kZ, 5) + 16 * std::pow(kZ, 3) + 3 * kZ) / (96 * n * n) +
         (3 * std::pow(kZ, 7) + 19 * std::pow(kZ, 5) + 17 * std::pow(kZ, 3) - 15 * kZ) /
             (384 * n * n * n);
}

void RunningMean::Add(double value) {
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
}

double RunningMean::HalfInterval() const {
  const auto n = static_cast<double>(count_);
  return StudentT95(count_ - 1) * std::sqrt(squares_ / (n - 1) / n);
}

void RealisedSavings::Set(const ComparisonBlocks& blocks) {
  if (blocks == blocks_) return;
  *this = RealisedSavings();
  blocks_ = blocks;
}

std::optional<std::int64_t> RealisedSavings::Add(const ComparedIteration& iteration) {
  if (!blocks_.is_on()) return std::nullopt;
  const std::int64_t number = blocks_.CycleOf(iteration.iteration);
  const std::int64_t begin = number * blocks_.every;
  if (!cycle_ || cycle_->number != number) {
    if (cycle_) ++dropped_;  // Its end was not seen.
    cycle_ = Cycle{.number = number, .next = begin};
  }
  Cycle& cycle = *cycle_;
  const bool at_maximum = blocks_.AtMaximum(iteration.iteration);
  // The plan version of a rank at maximum clocks says nothing.
  const bool as_ordered = at_maximum == (iteration.plan_version == 0);
  if (!at_maximum && cycle.plan_version == 0) cycle.plan_version = iteration.plan_version;
  const bool same_plan = at_maximum || cycle.plan_version == iteration.plan_version;
  cycle.most_ranks = std::max(cycle.most_ranks, iteration.ranks);
  const double enough = (1 - kMostMissing) * cycle.most_ranks;
  cycle.is_good = cycle.is_good && iteration.is_known && as_ordered && same_plan &&
                  iteration.iteration == cycle.next && iteration.ranks >= enough;
  cycle.next = iteration.iteration + 1;
  if (!blocks_.Settles(iteration.iteration)) {
    Stretch& stretch = at_maximum ? cycle.without : cycle.with;
    ++stretch.iterations;
    stretch.seconds += iteration.seconds;
    if (iteration.energy_ranks > 0 && iteration.energy_ranks >= enough) {
      ++stretch.energy_iterations;
      stretch.joules += iteration.joules;
    }
  }
  return cycle.next == begin + blocks_.every ? Finish() : std::nullopt;
}

std::optional<std::int64_t> RealisedSavings::Finish() {
  const Cycle cycle = *cycle_;
  cycle_.reset();
  if (!cycle.is_good || cycle.plan_version == 0) {
    ++dropped_;
    return std::nullopt;
  }
  Figures& figures = figures_[cycle.plan_version];
  const double with = cycle.with.seconds / cycle.with.iterations;
  const double without = cycle.without.seconds / cycle.without.iterations;
  figures.time.Add(std::log(with / without));
  figures.with_seconds.Add(with);
  figures.without_seconds.Add(without);
  const bool has_energy = cycle.with.energy_iterations == cycle.with.iterations &&
                          cycle.without.energy_iterations == cycle.without.iterations &&
                          cycle.with.joules > 0 && cycle.without.joules > 0;
  if (has_energy) {
    const double with_joules = cycle.with.joules / cycle.with.iterations;
    const double without_joules = cycle.without.joules / cycle.without.iterations;
    figures.energy.Add(std::log(with_joules / without_joules));
    figures.with_joules.Add(with_joules);
    figures.without_joules.Add(without_joules);
  }
  if (figures_.size() > kMostVersions) figures_.erase(figures_.begin());
  return cycle.plan_version;
}

std::optional<Realised> RealisedSavings::Of(std::int64_t plan_version) const {
  const auto found = figures_.find(plan_version);
  if (found == figures_.end()) return std::nullopt;
  const Figures& figures = found->second;
  Realised realised{.plan_version = plan_version,
                    .pairs = figures.time.count(),
                    .energy_pairs = figures.energy.count(),
                    .with_seconds = figures.with_seconds.mean(),
                    .without_seconds = figures.without_seconds.mean(),
                    .with_joules = figures.with_joules.mean(),
                    .without_joules = figures.without_joules.mean()};
  if (realised.pairs >= kLeastPairs) realised.slowdown = SlowdownOf(figures.time);
  if (realised.energy_pairs >= kLeastPairs) realised.saving = SavingOf(figures.energy);
  return realised;
}

std::vector<Realised> RealisedSavings::All() const {
  std::vector<Realised> all;
  for (const auto& [version, figures] : figures_) all.push_back(*Of(version));
  return all;
}

}  // namespace perseus::server
