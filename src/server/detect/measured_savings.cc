// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/measured_savings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace perseus::server {
namespace {

// Of sorted values, without `cut` of them at either end.
double MeanWithout(const std::vector<double>& sorted, std::size_t cut) {
  const auto begin = sorted.begin() + static_cast<std::ptrdiff_t>(cut);
  const auto end = sorted.end() - static_cast<std::ptrdiff_t>(cut);
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
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

double TrimmedMean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  return MeanWithout(values, count < 3 ? 0 : (count + 4) / 5);
}

MeanInterval TrimmedInterval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  const std::size_t cut = 3 * count / 20;
  const double mean = MeanWithout(values, cut);
  for (std::size_t i = 0; i < cut; ++i) {
    values[i] = values[cut];
    values[count - 1 - i] = values[count - 1 - cut];
  }
  const double middle = MeanWithout(values, 0);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  const auto n = static_cast<double>(count);
  const auto kept = static_cast<double>(count - 2 * cut);
  const double error = std::sqrt(squares / (n - 1) / n) * n / kept;
  return {.mean = mean,
          .half_width = error * StudentT95(static_cast<std::int64_t>(count - 2 * cut) - 1)};
}
namespace {

constexpr double kMostMissing = 0.1;  // Of the ranks, in an iteration.
// Of growth, in half widths of its interval. Rare by chance, so that few are told in vain to
// compare for longer.
constexpr double kClearly = 1.5;
// Growth that is over by the last quarter leaves less than this share of itself there.
constexpr double kOver = 0.1;

Settling SettlingOf(const MeanInterval& growth, const MeanInterval& late_growth, int phase) {
  const bool grows = std::abs(growth.mean) > kClearly * growth.half_width;
  if (!grows) return phase < MeasuredSavings::kLongPhase ? Settling::kUnknown : Settling::kOver;
  const double late = std::abs(late_growth.mean) + late_growth.half_width;
  return late < kOver * std::abs(growth.mean) ? Settling::kOver : Settling::kGoesOn;
}

ShareEstimate ChangeOf(const MeanInterval& logs) {
  return {.share = std::expm1(logs.mean),
          .least = std::expm1(logs.mean - logs.half_width),
          .most = std::expm1(logs.mean + logs.half_width)};
}

// More with is less saved.
ShareEstimate SavingOf(const ShareEstimate& change) {
  return {.share = -change.share, .least = -change.most, .most = -change.least};
}

}  // namespace

void MeasuredSavings::Set(const ComparisonBlocks& blocks) {
  if (blocks == blocks_) return;
  *this = MeasuredSavings();
  blocks_ = blocks;
}

bool MeasuredSavings::Belongs(const ComparedIteration& iteration) {
  const std::int64_t number = blocks_.CycleOf(iteration.iteration);
  if (number == dropped_cycle_) return false;
  const bool at_maximum = blocks_.AtMaximum(iteration.iteration);
  // The plan version of a rank at default clocks says nothing.
  const bool as_ordered = iteration.is_known && at_maximum == (iteration.plan_version == 0);
  const bool continues =
      !chain_.empty() && iteration.iteration == next_ &&
      (at_maximum || plan_version_ == 0 || plan_version_ == iteration.plan_version) &&
      iteration.ranks >= (1 - kMostMissing) * most_ranks_;
  if (as_ordered && continues) return true;
  const bool is_begin = iteration.iteration == number * blocks_.every;
  // The cycle before ended early.
  if (!chain_.empty() && blocks_.CycleOf(next_ - 1) != number && next_ % blocks_.every != 0) {
    ++dropped_;
  }
  chain_.clear();
  plan_version_ = 0;
  most_ranks_ = 0;
  if (as_ordered && is_begin) return true;
  dropped_cycle_ = number;
  ++dropped_;
  return false;
}

void MeasuredSavings::Append(const ComparedIteration& iteration, bool at_maximum) {
  if (!at_maximum) plan_version_ = iteration.plan_version;
  most_ranks_ = std::max(most_ranks_, iteration.ranks);
  next_ = iteration.iteration + 1;
  Run& run = chain_.back();
  ++run.length;
  run.has_energy = run.has_energy && iteration.energy_ranks > 0 && iteration.joules > 0 &&
                   iteration.energy_ranks >= (1 - kMostMissing) * most_ranks_;
  const Run::Logs logs = {.seconds = std::log(iteration.seconds),
                          .joules = run.has_energy ? std::log(iteration.joules) : 0};
  if (run.first.size() < Run::kMostKept) run.first.push_back(logs);
  run.last.push_back(logs);
  if (run.last.size() > Run::kMostKept) run.last.pop_front();
}

std::optional<std::int64_t> MeasuredSavings::Add(const ComparedIteration& iteration) {
  if (!blocks_.is_on() || !Belongs(iteration)) return std::nullopt;
  const bool at_maximum = blocks_.AtMaximum(iteration.iteration);
  std::optional<std::int64_t> changed;
  if (chain_.empty() || chain_.back().at_maximum != at_maximum) {
    if (chain_.size() == 3) {
      AddSample();
      changed = plan_version_;
      chain_.erase(chain_.begin(), chain_.begin() + 2);
    } else if (chain_.size() == 1 && !at_maximum) {
      chain_.clear();  // A phase at default clocks without a plan before it.
    }
    chain_.push_back({.at_maximum = at_maximum});
  }
  Append(iteration, at_maximum);
  return changed;
}

MeasuredSavings::Compared MeasuredSavings::Compare(double Run::Logs::*value) const {
  // The trimmed mean of a part of a run, and the place of its middle.
  struct Part {
    double log = 0;
    double middle = 0;
  };
  const auto part_of = [&](const auto& logs, std::int64_t begin, std::int64_t end,
                           std::int64_t offset = 0) {
    std::vector<double> values;
    for (std::int64_t i = begin; i < end; ++i) {
      values.push_back(logs[static_cast<std::size_t>(i)].*value);
    }
    return Part{.log = TrimmedMean(std::move(values)),
                .middle = static_cast<double>(2 * offset + begin + end) / 2};
  };
  const auto kept = [](const auto& logs) { return static_cast<std::int64_t>(logs.size()); };
  const Run& before = chain_[0];
  const Run& maximum = chain_[1];
  const Run& after = chain_[2];
  const std::int64_t settling =
      std::min(blocks_.iterations / 2, static_cast<int>(Run::kMostKept) / 2);
  // Places count from the begin of the run at default clocks.
  const std::int64_t last = kept(before.last);
  const Part first =
      part_of(before.last, last - std::min(last, (before.length + 1) / 2), last, -last);
  const Part middle = part_of(maximum.first, settling, kept(maximum.first));
  const std::int64_t half = std::min(kept(after.first), std::max(after.length / 2, settling + 1));
  const Part second = part_of(after.first, std::min(settling, half - 1), half, maximum.length);
  const double to_first = middle.middle - first.middle;
  const double to_second = second.middle - middle.middle;
  Compared compared = {
      .with = (first.log * to_second + second.log * to_first) / (to_first + to_second),
      .without = middle.log};
  // The same iterations after either change of clocks, so that a trend cancels out.
  const std::int64_t quarter = std::min(kept(maximum.first), kept(after.first)) / 4;
  if (quarter == 0) return compared;
  const auto growth = [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t half_way = (begin + end) / 2;
    const auto of = [&](const Run& run) {
      return part_of(run.first, half_way, end).log - part_of(run.first, begin, half_way).log;
    };
    return of(maximum) - of(after);
  };
  // In the first iteration of a run, clocks change.
  compared.growth = growth(quarter > 1 ? 1 : 0, 4 * quarter);
  compared.late_growth = growth(2 * quarter, 4 * quarter);
  return compared;
}

void MeasuredSavings::AddSample() {
  Samples& samples = samples_[plan_version_];
  const auto add = [](std::deque<Compared>* to, const Compared& compared) {
    to->push_back(compared);
    if (to->size() > kMostSamples) to->pop_front();
  };
  add(&samples.seconds, Compare(&Run::Logs::seconds));
  ++samples.pairs;
  if (std::all_of(chain_.begin(), chain_.end(), [](const Run& run) { return run.has_energy; })) {
    add(&samples.joules, Compare(&Run::Logs::joules));
    ++samples.energy_pairs;
  }
  if (samples.pairs >= kJudgedPairs &&
      std::has_single_bit(static_cast<std::uint64_t>(samples.pairs))) {
    is_too_short_ = is_too_short_ || Of(plan_version_)->settling == Settling::kGoesOn;
  }
  if (samples_.size() > kMostVersions) samples_.erase(samples_.begin());
}

std::optional<ComparisonBlocks> MeasuredSavings::Longer() const {
  const ComparisonBlocks longer = {.every = 2 * blocks_.every,
                                   .iterations = 2 * blocks_.iterations};
  if (!is_too_short_ || longer.iterations > kLongestByItself || !longer.is_valid()) {
    return std::nullopt;
  }
  return longer;
}

MeasuredSavings::Figures MeasuredSavings::FiguresOf(const std::deque<Compared>& samples) const {
  const auto series = [&](auto&& of) {
    std::vector<double> values;
    values.reserve(samples.size());
    for (const Compared& each : samples) values.push_back(of(each));
    return values;
  };
  Figures figures = {
      .with = std::exp(TrimmedMean(series([](const Compared& of) { return of.with; }))),
      .without = std::exp(TrimmedMean(series([](const Compared& of) { return of.without; })))};
  if (samples.size() < static_cast<std::size_t>(kLeastPairs)) return figures;
  figures.change =
      ChangeOf(TrimmedInterval(series([](const Compared& of) { return of.with - of.without; })));
  figures.settling =
      SettlingOf(TrimmedInterval(series([](const Compared& of) { return of.growth; })),
                 TrimmedInterval(series([](const Compared& of) { return of.late_growth; })),
                 blocks_.iterations);
  return figures;
}

std::optional<MeasuredSaving> MeasuredSavings::Of(std::int64_t plan_version) const {
  const auto found = samples_.find(plan_version);
  if (found == samples_.end()) return std::nullopt;
  const Samples& samples = found->second;
  const Figures time = FiguresOf(samples.seconds);
  MeasuredSaving measured{.plan_version = plan_version,
                          .pairs = samples.pairs,
                          .energy_pairs = samples.energy_pairs,
                          .with_seconds = time.with,
                          .without_seconds = time.without,
                          .slowdown = time.change,
                          .settling = time.settling};
  if (samples.joules.empty()) return measured;
  const Figures energy = FiguresOf(samples.joules);
  measured.with_joules = energy.with;
  measured.without_joules = energy.without;
  if (energy.change) measured.saving = SavingOf(*energy.change);
  measured.settling = std::max(measured.settling, energy.settling);
  return measured;
}

std::vector<MeasuredSaving> MeasuredSavings::All() const {
  std::vector<MeasuredSaving> all;
  for (const auto& [version, samples] : samples_) all.push_back(*Of(version));
  return all;
}

}  // namespace perseus::server
