// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/ladder_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "common/word_hash.h"
#include "robust/bounds.h"
#include "robust/clock_search.h"
#include "robust/paths.h"
#include "robust/samples.h"

namespace perseus::robust {
NoiseGroups::NoiseGroups(const Conditions& conditions) {
  const std::vector<Conditions> corners = CornersOf(conditions);
  for (std::size_t k = corners.size() > 1 ? 1 : 0; k < corners.size(); ++k) {
    const TimeNoise& noise = corners[k].noise;
    if (std::find(noises_.begin(), noises_.end(), noise) == noises_.end()) noises_.push_back(noise);
  }
  std::reverse(noises_.begin(), noises_.end());
}

bool NoiseGroups::noisy() const {
  return std::any_of(noises_.begin(), noises_.end(),
                     [](const TimeNoise& noise) { return noise.any(); });
}

std::vector<double> NoiseGroups::SecondsOf(const LaneReplay& replay, const Samples& samples) const {
  std::vector<double> seconds = replay.GroupSums();
  for (std::size_t k = 0; k < seconds.size(); ++k) {
    seconds[k] = seconds[k] / std::max(1, samples.jobs_of[k]) + end_delay_;
  }
  return seconds;
}

void NoiseGroups::SetBaseline(const LaneReplay& replay, const Samples& samples, double end_delay) {
  end_delay_ = end_delay;
  baselines_ = SecondsOf(replay, samples);
  baseline_seconds_ = replay.figures().seconds;
  mean_baseline_seconds_ = baseline_seconds_;
  if (!many()) return;
  mean_baseline_seconds_ = 0;
  for (std::size_t k = 0; k < baselines_.size(); ++k) {
    mean_baseline_seconds_ += baselines_[k] * samples.jobs_of[k] / samples.jobs();
  }
}

void NoiseGroups::SetScales(const std::vector<double>& bias, Samples* samples) const {
  if (!many()) return;
  for (std::size_t k = 0; k < baselines_.size(); ++k) {
    samples->scale[k] = baseline_seconds_ / baselines_[k] * (1 + bias[k] / 100);
  }
}

void NoiseGroups::LearnBias(const Trials& trials, const std::vector<double>& slower_at,
                            const LaneReplay& replay, const Samples& samples,
                            std::vector<double>* bias) const {
  constexpr double kLittle = 0.001;
  const std::vector<double> seconds = SecondsOf(replay, samples);
  std::vector<double> slower(noises_.size(), -std::numeric_limits<double>::infinity());
  for (int k = 1; k < trials.corners(); ++k) {
    const auto found = std::find(noises_.begin(), noises_.end(), trials.corner(k).noise);
    double& own = slower[static_cast<std::size_t>(found - noises_.begin())];
    own = std::max(own, slower_at[k]);
  }
  for (std::size_t k = 0; k < slower.size(); ++k) {
    if (samples.jobs_of[k] == 0) continue;
    const double found = slower[k] - 100 * (seconds[k] / baselines_[k] - 1) + kLittle;
    // Believe at once that a plan is later than it seemed.
    (*bias)[k] = found > (*bias)[k] ? found : (found + (*bias)[k]) / 2;
  }
}

}  // namespace perseus::robust

// Lessons of the search from verdicts: effects that the lanes do not know, and choices that it has
// learned by heart from the lanes.
namespace perseus::robust {

void LadderSearch::SetGuard(double errors) {
  replay_.SetGuard(errors);
  if (windows_) windows_->SetGuard(errors);
}

double LadderSearch::PercentOfGuard(const std::vector<int>& knobs, double guard) {
  constexpr double kStep = 0.25;
  const auto seconds = [&](double errors) {
    SetGuard(errors);
    replay_.Reset(knobs);
    return replay_.figures().seconds;
  };
  const double more = seconds(guard + kStep);
  return 100 * (more - seconds(guard)) / kStep / lanes_baseline_seconds_;
}

// From a verdict on knobs, where the lanes have groups.
void LadderSearch::LearnBias(const Verdict& verdict, const std::vector<int>& knobs, Level* level) {
  replay_.Reset(knobs);
  groups_.LearnBias(trials_, verdict.slower_at, replay_, samples_, &level->bias);
  groups_.SetScales(level->bias, &samples_);
}

// Errors of the profile make a plan late where it has no slack beside slowed computations. To plan
// for less time takes slack where there is none to take, and in the end leaves less time than
// maximum clocks need. So the lanes take slowed computations to last longer, by as many standard
// errors as it needs for a choice to hold. False: that is not it.
bool LadderSearch::LearnGuard(double excess_percent, const std::vector<int>& knobs, Level* level) {
  constexpr double kMost = 4;      // Standard errors.
  constexpr double kMostStep = 1;  // Likewise.
  constexpr double kLeast = 0.01;  // Per cent: what one standard error does not change.
  if (!trials_.has_errors()) return false;
  const double percent = PercentOfGuard(knobs, level->guard);
  if (percent < kLeast) return false;
  double step = std::clamp(excess_percent / percent, -kMostStep, kMostStep);
  if (excess_percent < 0) step /= 2;
  // Between a guard that was too little and one that was too much, on the line between both.
  const double other = level->excess_before;
  if (excess_percent * other < 0) {
    step = (level->guard_before - level->guard) * excess_percent / (excess_percent - other);
  }
  const double guard = std::clamp(level->guard + step, 0.0, kMost);
  if (guard == level->guard) return false;
  level->guard_before = level->guard;
  level->excess_before = excess_percent;
  level->guard = guard;
  SetGuard(guard);
  return true;
}

void LadderSearch::Learn(const Verdict& verdict, double unused_percent,
                         const std::vector<int>& knobs, Level* level) {
  constexpr double kLittle = 0.001;
  const double late = verdict.late_percent;
  // A plan in time says something only where it used all that it might.
  const double excess = late > 0 ? late : std::min(0.0, late + unused_percent);
  if (LearnGuard(excess, knobs, level)) return;
  if (groups_.many()) {
    LearnBias(verdict, knobs, level);
  } else if (late > 0) {
    const double spare = slower_percent_ - level->correction;
    level->correction += late + kLittle;
    // Slowdown drawn once per job is a multiple of the plan's own: to take all of it off would
    // leave less time than maximum clocks take.
    if (trials_.once() && spare > 0 && slower_percent_ > 0 &&
        level->correction >= slower_percent_) {
      level->correction =
          slower_percent_ - spare * slower_percent_ / (slower_percent_ + late + kLittle);
    }
  } else if (excess < -kLittle) {
    level->correction += excess / 2;
  }
}

}  // namespace perseus::robust

// Results of the search.
namespace perseus::robust {

const Candidate& LadderSearch::Taken() const {
  const Candidate* chosen = best();
  const double least = chosen->saving_percent - chosen->error_percent;
  for (const Candidate& each : held_) {
    const bool better = each.changes != chosen->changes
                            ? each.changes < chosen->changes
                            : each.saving_percent > chosen->saving_percent;
    if (each.saving_percent >= least && better) chosen = &each;
  }
  return *chosen;
}

std::vector<ChangePricePoint> LadderSearch::PriceCurve() const {
  std::vector<ChangePricePoint> points;
  for (const Candidate& candidate : held_) {
    points.push_back({candidate.changes, candidate.saving_percent});
  }
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
    return a.changes != b.changes ? a.changes < b.changes : a.saving_percent > b.saving_percent;
  });
  std::vector<ChangePricePoint> curve;
  for (const ChangePricePoint& point : points) {
    if (curve.empty() || point.saving_percent > curve.back().saving_percent + kEqualPercent) {
      curve.push_back(point);
    }
  }
  return curve;
}

namespace {

constexpr std::uint64_t kSeed = 0x5EA2C4;  // The search's own.
constexpr int kPriceRounds = 150;
constexpr int kLadders = 3;               // Of one lane.
constexpr int kSinglePriceRounds = 1000;  // Of one lane.
constexpr int kSingleChangeRounds = 800;  // Of one lane, where changes have a price, too.
constexpr int kFewChanges = 8;            // Of which prices know nothing.

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
  // Leave slow searches to the second round: little effort is meant to be quick.
  if (round == 1 && level->most_changes > 0) {
    goal.accepted_seconds =
        lanes_baseline_seconds_ * (1 + (slower_percent_ - level->correction) / 100);
    if (!level->has_along && level->most_changes > kFewChanges) {
      const int rounds = groups_.noisy() ? kPriceRounds : kSingleChangeRounds;
      // Prices count all lanes the same.
      const double accepted =
          goal.accepted_seconds * (groups_.mean_baseline_seconds() / lanes_baseline_seconds_);
      const DualBound dual =
          PricesForChanges(pipeline_, samples_, accepted, level->most_changes, rounds);
      level->along = AlongPrices(dual, level->most_changes, goal.accepted_seconds);
      level->has_along = true;
    }
    double late = 0;
    if (!level->along.empty()) {
      replay_.Reset(level->along);
      const double followed = goal.Joules(replay_.figures());
      replay_.Reset(start);
      if (replay_.figures().seconds > goal.accepted_seconds ||
          goal.Joules(replay_.figures()) > followed) {
        start = level->along;
        late = Judge(OptionsAt(pipeline_, start)).late_percent;
      }
    }
    if (late > 0 && !groups_.many() && !trials_.has_errors()) level->correction += late;
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
      if (ladder > 0) {
        level.along = ladders[0][k].along;
        level.has_along = ladders[0][k].has_along;
      }
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
