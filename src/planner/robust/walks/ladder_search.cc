// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/walks/ladder_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/word_hash.h"
#include "robust/bounds/price_path.h"
#include "robust/knobs.h"
#include "robust/walks/clock_search.h"
#include "robust/walks/follow_path.h"
#include "robust/walks/greedy_runs.h"
#include "robust/walks/sweep_search.h"
#include "robust/walks/wave_path.h"

namespace perseus::robust {
namespace {

constexpr std::uint64_t kSeed = 0x5EA2C4;  // The search's own.
constexpr int kPriceRounds = 150;
constexpr int kLadders = 3;               // Of one lane.
constexpr int kSinglePriceRounds = 1000;  // Of one lane.
constexpr int kSingleChangeRounds = 800;  // Of one lane, where changes have a price, too.
constexpr int kFewChanges = 8;            // Runs are added one by one, and prices know nothing.
constexpr int kMostAddedChanges = 20;     // What may begin with runs that are added one by one.

}  // namespace

std::vector<int> LadderLevels(int computations) {
  std::vector<int> levels = {0};
  for (const int few : {2, 4, 6, 8}) {
    if (few < computations) levels.push_back(few);
  }
  for (int ten = 10; ten < computations; ten *= 10) {
    for (const int factor : {1, 2, 3, 5}) {
      if (factor * ten < computations) levels.push_back(factor * ten);
    }
  }
  levels.push_back(computations);
  return levels;
}

LadderSearch::LadderSearch(const Planner& planner, const RobustPlanSpec& spec, const Trials& trials,
                           double slower_percent, double price_of_time)
    : planner_(planner),
      pipeline_(planner.pipeline()),
      spec_(spec),
      trials_(trials),
      slower_percent_(slower_percent),
      price_of_time_(price_of_time),
      groups_(spec.conditions),
      samples_(DrawMixedSamples(pipeline_, groups_.noises(), spec.pipelines,
                                LanesFor(pipeline_.dag.size()), kSeed)),
      replay_(pipeline_, spec.conditions.switching, samples_) {
  if (WindowReplay::Suits(pipeline_, spec.conditions.switching, samples_)) {
    windows_.emplace(pipeline_, spec.conditions.switching, samples_);
  }
  replay_.Reset(KnobsOf(planner.baseline().options));
  lanes_baseline_seconds_ = replay_.figures().seconds;
  groups_.SetBaseline(replay_, samples_, pipeline_.dag.end_delay_seconds);
}

Verdict LadderSearch::Judge(const std::vector<CostOption>& options) {
  const int changes = CountChanges(pipeline_.dag, KnobsOf(options));
  Trials::Judged judged = trials_.Judge(options);
  const double base_joules = trials_.baseline().energy_joules;
  // Calls for waiting clocks have the same price.
  const double calls = trials_.waiting() == Waiting::kCheapest
                           ? std::max<double>(changes, judged.clock_calls)
                           : changes;
  Verdict verdict = {.late_percent = judged.slower_percent - slower_percent_,
                     .changes = changes,
                     .saving_percent = judged.saving_percent -
                                       100 * spec_.conditions.change_joules * calls / base_joules,
                     .slower_at = std::move(judged.slower_at)};
  const auto most = spec_.conditions.max_changes;
  if (verdict.late_percent > 0 || (most && changes > *most)) return verdict;
  // Only what is best for its changes is kept: searches of all choices hold many.
  for (const Candidate& held : held_) {
    if (held.changes <= changes && held.saving_percent >= verdict.saving_percent - kEqualPercent) {
      return verdict;
    }
  }
  held_.push_back({options, changes, verdict.saving_percent, judged.saving_error_percent});
  const Candidate* const best = this->best();
  if (best == nullptr || verdict.saving_percent > best->saving_percent + kEqualPercent ||
      (changes < best->changes && verdict.saving_percent > best->saving_percent - kEqualPercent)) {
    best_ = static_cast<int>(held_.size()) - 1;
  }
  return verdict;
}

// The best choice in time that keeps to the schedule of the prices for so many changes;
// empty where there is none. The lead is made faster or slower until the lanes say that
// what follows it is just in time.
std::vector<int> LadderSearch::AlongPrices(const DualBound& dual, int most_changes,
                                           double accepted_seconds) {
  constexpr int kSteps = 5;
  constexpr double kReach = 0.008;  // Of the lead's durations.
  std::vector<int> best;
  double least_joules = std::numeric_limits<double>::infinity();
  for (const double stiffness : {10.0, 100.0}) {
    double change_joules = dual.change_joules;
    double low = 1 - kReach;
    double high = 1 + kReach;
    for (int k = 0; k < kSteps; ++k) {
      const double scale = (low + high) / 2;
      Lead lead = {dual.seconds, dual.price};
      for (double& seconds : lead.seconds) seconds *= scale;
      std::vector<int> knobs =
          KnobsAlongWithin(pipeline_, lead, stiffness, most_changes, &change_joules);
      if (knobs.empty()) break;
      replay_.Reset(knobs);
      const LaneFigures& figures = replay_.figures();
      const bool in_time = figures.seconds <= accepted_seconds;
      (in_time ? low : high) = scale;
      const double joules =
          figures.effective_joules + pipeline_.total_blocking_power_watts * figures.seconds;
      if (!in_time || joules >= least_joules) continue;
      least_joules = joules;
      best = std::move(knobs);
    }
  }
  return best;
}

// Begins with runs that are added one by one, to maximum clocks or to what fewer changes gave,
// where that is better; again for less time where the trials say that it is late.
void LadderSearch::AddRuns(Level* level, const Level* below, std::vector<int>* start) {
  constexpr int kMostTries = 1500;
  constexpr int kCorrections = 2;
  RunLimits limits = {.baseline_seconds = lanes_baseline_seconds_,
                      .waiting_watts = pipeline_.total_blocking_power_watts,
                      .change_joules = spec_.conditions.change_joules,
                      .most_changes = level->most_changes,
                      .most_tries = kMostTries};
  const auto joules_of = [&](const std::vector<int>& knobs) {
    replay_.Reset(knobs);
    const LaneFigures& figures = replay_.figures();
    return limits.Allow(figures) ? limits.Joules(figures) : std::numeric_limits<double>::infinity();
  };
  for (int k = 0; k < kCorrections; ++k) {
    limits.accepted_seconds =
        lanes_baseline_seconds_ * (1 + (slower_percent_ - level->correction) / 100);
    if (level->added.empty()) {
      for (const bool from_below : {false, true}) {
        if (from_below && below == nullptr) break;
        std::vector<int> added = WithGreedyRuns(
            pipeline_, from_below ? below->knobs : KnobsOf(planner_.baseline().options), limits,
            &replay_);
        if (added.empty()) continue;
        if (level->added.empty() || joules_of(added) < joules_of(level->added)) {
          level->added = std::move(added);
        }
      }
    }
    if (level->added.empty() || joules_of(level->added) >= joules_of(*start)) return;
    const Verdict verdict = Judge(OptionsAt(pipeline_, level->added));
    if (verdict.late_percent <= 0) break;
    if (!LearnGuard(verdict.late_percent, level->added, level)) {
      if (groups_.many()) {
        LearnBias(verdict, level->added, level);
      } else {
        level->correction += verdict.late_percent;
      }
    }
    level->added.clear();
  }
  if (!level->added.empty()) *start = level->added;
}

// One search at a level, in parts: each is corrected by what the trials of the one before
// say. Returns whether there is a better plan now.
bool LadderSearch::Climb(Level* level, const Level* below, std::int64_t work, std::uint64_t seed,
                         int round) {
  const int before = best_;
  groups_.SetScales(level->bias, &samples_);
  SetGuard(level->guard);
  SearchGoal goal;
  goal.waiting_watts = pipeline_.total_blocking_power_watts;
  goal.change_joules = spec_.conditions.change_joules;
  goal.most_changes = level->most_changes;
  goal.price_of_time = price_of_time_;
  const auto penalised = [&](const std::vector<int>& knobs) {
    replay_.Reset(knobs);
    const LaneFigures& figures = replay_.figures();
    if (figures.changes > level->most_changes) return std::numeric_limits<double>::infinity();
    return figures.effective_joules + (goal.waiting_watts + goal.price_of_time) * figures.seconds +
           goal.change_joules * figures.changes;
  };
  const auto consider = [&](const std::vector<int>& knobs, std::vector<int>* best) {
    if (knobs.empty()) return;
    if (best->empty() || penalised(knobs) < penalised(*best)) *best = knobs;
  };
  std::vector<int> start = level->knobs;
  if (below != nullptr) consider(below->knobs, &start);
  if (level->most_changes > 0) {
    consider(CheapestKnobsWithin(pipeline_, prices_.price, level->most_changes), &start);
  }
  // What takes long waits for the second round: little effort is meant to be quick.
  if (round == 1 && level->most_changes > 0) {
    goal.accepted_seconds =
        lanes_baseline_seconds_ * (1 + (slower_percent_ - level->correction) / 100);
    double late = 0;
    if (level->along.empty() && level->most_changes > kFewChanges) {
      const int rounds = groups_.noisy() ? kPriceRounds : kSingleChangeRounds;
      // Prices count all lanes the same.
      const double accepted =
          goal.accepted_seconds * (groups_.mean_baseline_seconds() / lanes_baseline_seconds_);
      const DualBound dual =
          PricesForChanges(pipeline_, samples_, accepted, level->most_changes, rounds);
      const WaveLimits limits = {.accepted_seconds = goal.accepted_seconds,
                                 .waiting_watts = goal.waiting_watts,
                                 .most_changes = level->most_changes};
      level->along = {AlongPrices(dual, level->most_changes, goal.accepted_seconds),
                      BestInWaves(pipeline_, dual, limits, &replay_)};
    }
    for (const std::vector<int>& along : level->along) {
      if (along.empty()) continue;
      replay_.Reset(along);
      const LaneFigures followed = replay_.figures();
      const auto joules = [&](const LaneFigures& figures) {
        return figures.effective_joules + goal.waiting_watts * figures.seconds +
               goal.change_joules * figures.changes;
      };
      replay_.Reset(start);
      if (replay_.figures().seconds > goal.accepted_seconds ||
          joules(replay_.figures()) > joules(followed)) {
        start = along;
        late = Judge(OptionsAt(pipeline_, along)).late_percent;
      }
    }
    if (late > 0 && !groups_.many() && !trials_.has_errors()) level->correction += late;
    if (level->most_changes <= kMostAddedChanges) AddRuns(level, below, &start);
  }
  replay_.Reset(start);
  ClockSearch search(pipeline_, &replay_, seed);
  std::optional<SweepSearch> sweep;
  if (windows_) sweep.emplace(pipeline_, &*windows_, seed);
  const auto anneal = [&](const ClockSearch::Schedule& schedule) {
    if (!sweep) return search.Anneal(goal, schedule);
    windows_->Reset(replay_.knobs());
    Chosen chosen = sweep->Anneal(goal, schedule);
    replay_.Reset(windows_->knobs());
    return chosen;
  };
  const double mean_joules = trials_.baseline().energy_joules / pipeline_.dag.size();
  if (level->most_changes < pipeline_.dag.size()) {
    constexpr double kChange = 0.01;
    goal.price_of_change = kChange * mean_joules;
  }
  constexpr double kHot = 0.01;
  constexpr double kWarm = 0.002;
  constexpr double kCold = 0.0003;
  for (int part = 0; part < 3; ++part) {
    goal.accepted_seconds =
        lanes_baseline_seconds_ * (1 + (slower_percent_ - level->correction) / 100);
    const ClockSearch::Schedule schedule = {.work = part == 0 ? work / 2 : work / 4,
                                            .hot_joules = mean_joules * (part == 0 ? kHot : kWarm),
                                            .cold_joules = mean_joules * kCold};
    const Chosen chosen = anneal(schedule);
    level->knobs = chosen.knobs.empty() ? replay_.knobs() : chosen.knobs;
    if (chosen.knobs.empty()) continue;
    const Verdict verdict = Judge(OptionsAt(pipeline_, chosen.knobs));
    const double unused =
        100 * (goal.accepted_seconds - chosen.figures.seconds) / lanes_baseline_seconds_;
    Learn(verdict, unused, chosen.knobs, level);
    replay_.Reset(chosen.knobs);
  }
  return best_ != before;
}

// Tries all choices of a very small pipeline without noise. False: too many.
bool LadderSearch::TryAll(const std::function<bool(double share, bool better)>& progress) {
  constexpr double kMost = 1 << 14;
  double count = 1;
  for (int i = 0; i < pipeline_.dag.size() && count <= kMost; ++i) {
    count *= static_cast<double>(pipeline_.TableOf(i).all_options.size());
  }
  // Of one iteration; some choices take a few to settle, and some kIterationsOfPlan.
  constexpr double kMostComputations = 5e5;
  if (count > kMost || count * pipeline_.dag.size() > kMostComputations || groups_.noisy() ||
      spec_.conditions.switching.latency_spread_seconds > 0 || trials_.once()) {
    return false;
  }
  std::vector<std::size_t> digits(pipeline_.dag.size(), 0);
  std::vector<CostOption> options;
  options.reserve(pipeline_.dag.computations.size());
  for (int i = 0; i < pipeline_.dag.size(); ++i) {
    options.push_back(pipeline_.TableOf(i).all_options.front());
  }
  constexpr int kBetweenReports = 64;
  for (int tried = 0;; ++tried) {
    if (progress && tried % kBetweenReports == 0 && !progress(tried / count, false)) return true;
    Judge(options);
    int i = 0;
    for (; i < pipeline_.dag.size(); ++i) {
      const auto& all = pipeline_.TableOf(i).all_options;
      digits[i] = (digits[i] + 1) % all.size();
      options[i] = all[digits[i]];
      if (digits[i] != 0) break;
    }
    if (i < pipeline_.dag.size()) continue;
    if (progress) progress(1, true);
    return true;
  }
}

void LadderSearch::Run(const std::function<bool(double share, bool better)>& progress) {
  const int size = pipeline_.dag.size();
  const bool noisy = groups_.noisy();
  const double scale = std::max(1.0 / 32, size / 1536.0);
  // Of a level without limit, at effort 1.
  const double full = (noisy ? 4e9 : 1.5e9) * scale;
  if (TryAll(progress)) return;
  const std::int64_t most = spec_.conditions.max_changes.value_or(size);
  prices_ = BoundByPrices(pipeline_, samples_,
                          groups_.mean_baseline_seconds() * (1 + slower_percent_ / 100), 0,
                          noisy ? kPriceRounds : kSinglePriceRounds);
  if (noisy) {
    price_of_time_ =
        std::max(price_of_time_, prices_.price_of_time - pipeline_.total_blocking_power_watts);
  }
  std::vector<Level> levels;
  for (const int changes : LadderLevels(size)) {
    if (changes > most) continue;
    levels.push_back({.most_changes = changes});
    levels.back().bias.assign(groups_.noises().size(), 0.0);
  }
  if (levels.empty()) return;
  levels[0].knobs = KnobsOf(planner_.baseline().options);
  // A walk's result depends on luck. Without noise a walk is short, so several are made.
  std::vector<std::vector<Level>> ladders(windows_ && !noisy ? kLadders : 1, levels);
  double done = 0;
  // Rounds of four times the work of the one before; the first always runs.
  for (int round = 0; round == 0 || done < spec_.effort * (1 - 1e-9); ++round) {
    const double share = round == 0 ? 1.0 / 64 : 3.0 / 64 * std::pow(4.0, round - 1);
    if (round > 0 && done + share > spec_.effort * (1 + 1e-9)) break;
    for (std::size_t step = 0; step < ladders.size() * levels.size(); ++step) {
      const std::size_t ladder = step / levels.size();
      const std::size_t k = step % levels.size();
      Level& level = ladders[ladder][k];
      if (ladder > 0) level.along = ladders[0][k].along;
      if (ladder > 0) level.added = ladders[0][k].added;
      const double part = std::sqrt(std::max(0.005, level.most_changes / double(size)));
      const auto work = static_cast<std::int64_t>(full * share * part);
      // Of the level, not of how many there are below a limit.
      const std::uint64_t seed =
          WordHash(kSeed).With(round).With(ladder).With(level.most_changes).value();
      const bool better =
          Climb(&level, k == 0 ? nullptr : &ladders[ladder][k - 1], work, seed, round);
      const double through = (done + share * static_cast<double>(step + 1) /
                                         static_cast<double>(ladders.size() * levels.size())) /
                             std::max(spec_.effort, 1.0 / 64);
      if (progress && !progress(std::min(1.0, through), better)) return;
    }
    done += share;
  }
}

}  // namespace perseus::robust
