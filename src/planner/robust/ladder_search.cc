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
namespace {

// Of a rank, [begin, end) in its order, at one knob.
struct OneRun {
  int rank = -1;
  int begin = 0;
  int end = 0;
  int knob = 0;
  double joules = std::numeric_limits<double>::infinity();  // Of the iteration with it.
};

class RunAdder {
 public:
  RunAdder(const CostedPipeline& pipeline, const RunLimits& limits, LaneReplay* replay)
      : pipeline_(pipeline), limits_(limits), replay_(replay) {
    for (const std::vector<int>& order : pipeline.dag.rank_order) {
      knobs_.push_back(KnobsOfRank(order));
    }
  }

  // Until nothing more saves within so much time.
  void AddWithin(double accepted_seconds) {
    accepted_seconds_ = accepted_seconds;
    while (tries_ < limits_.most_tries) {
      const double now = limits_.Joules(replay_->figures());
      OneRun best;
      for (const Possible& run : PossibleRuns()) {
        if (now - run.most_joules >= best.joules) break;
        Improve(&best, run.rank, run.begin, run.end);
      }
      if (best.rank < 0) return;
      MoveBorders(&best);
      if (best.joules >= now * (1 - kLeastGain)) return;
      replay_->Try(Changes(best.rank, best.begin, best.end, best.knob));
      replay_->Commit();
    }
  }

 private:
  static constexpr double kLeastGain = 1e-6;

  // Knobs that all of its computations can take, from fast to slow, as far as slower saves for any.
  std::vector<int> KnobsOfRank(const std::vector<int>& order) const {
    std::vector<double> seconds(pipeline_.knobs.size(), 0.0);
    std::vector<int> counts(pipeline_.knobs.size(), 0);
    std::vector<char> saves(pipeline_.knobs.size(), 0);
    for (const int i : order) {
      const CostTable& table = pipeline_.TableOf(i);
      const CostOption* least = nullptr;
      for (const CostOption& option : table.all_options) {
        seconds[option.knob] += option.time_seconds;
        ++counts[option.knob];
        if (least == nullptr || EffectiveEnergy(table, option) < EffectiveEnergy(table, *least)) {
          least = &option;
        }
      }
      for (const CostOption& option : table.all_options) {
        if (option.time_seconds <= least->time_seconds) saves[option.knob] = 1;
      }
    }
    std::vector<int> knobs;
    for (int knob = 0; knob < static_cast<int>(pipeline_.knobs.size()); ++knob) {
      if (saves[knob] != 0 && counts[knob] == static_cast<int>(order.size())) {
        knobs.push_back(knob);
      }
    }
    std::sort(knobs.begin(), knobs.end(), [&](int a, int b) {
      return seconds[a] != seconds[b] ? seconds[a] < seconds[b] : a < b;
    });
    return knobs;
  }

  struct Possible {
    int rank = 0;
    int begin = 0;
    int end = 0;
    double most_joules = 0;  // More is not saved, whatever its knob.
  };

  // Runs with the largest possible saving first.
  std::vector<Possible> PossibleRuns() const {
    std::vector<Possible> runs;
    std::vector<double> sums;
    for (int rank = 0; rank < pipeline_.dag.num_ranks; ++rank) {
      sums.assign(1, 0.0);
      for (const int i : pipeline_.dag.rank_order[rank]) {
        const auto joules_at = [&](int knob) {
          return replay_->ExpectedOf(i, knob, knob).effective_joules;
        };
        const double now = joules_at(replay_->knobs()[i]);
        double least = now;
        for (const int knob : knobs_[rank]) least = std::min(least, joules_at(knob));
        sums.push_back(sums.back() + now - least);
      }
      const std::vector<int> cuts = CutsOf(rank);
      for (std::size_t i = 0; i < cuts.size(); ++i) {
        for (std::size_t j = i + 1; j < cuts.size(); ++j) {
          runs.push_back({rank, cuts[i], cuts[j], sums[cuts[j]] - sums[cuts[i]]});
        }
      }
    }
    std::stable_sort(runs.begin(), runs.end(), [](const Possible& a, const Possible& b) {
      return a.most_joules > b.most_joules;
    });
    return runs;
  }

  // Near the ends of its order, where its phases meet, and where its clock changes now.
  std::vector<int> CutsOf(int rank) const {
    const std::vector<int>& order = pipeline_.dag.rank_order[rank];
    const int size = static_cast<int>(order.size());
    std::vector<int> cuts = {0, 1, 2, size - 2, size - 1, size};
    const auto type_of = [&](int at) { return pipeline_.dag.computations[order[at]].id.type; };
    int first = 0;
    while (first < size && type_of(first) == type_of(0)) ++first;
    int last = size;
    while (last > 0 && type_of(last - 1) == type_of(size - 1)) --last;
    cuts.push_back(first);
    cuts.push_back(last);
    constexpr int kMostBorders = 6;
    int borders = 0;
    for (int k = 1; k < size && borders < kMostBorders; ++k) {
      if (replay_->knobs()[order[k]] == replay_->knobs()[order[k - 1]]) continue;
      cuts.push_back(k);
      ++borders;
    }
    std::erase_if(cuts, [&](int cut) { return cut < 0 || cut > size; });
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    return cuts;
  }

  const std::vector<KnobChange>& Changes(int rank, int begin, int end, int knob) {
    changes_.clear();
    const std::vector<int>& order = pipeline_.dag.rank_order[rank];
    for (int k = begin; k < end; ++k) {
      if (replay_->knobs()[order[k]] != knob) changes_.push_back({order[k], knob});
    }
    return changes_;
  }

  // The run at the slowest knob that is in time, where that is better than the best so far.
  bool Improve(OneRun* best, int rank, int begin, int end) {
    bool better = false;
    int low = 0;
    int high = static_cast<int>(knobs_[rank].size());
    while (low < high && tries_ < limits_.most_tries) {
      const int middle = (low + high) / 2;
      const int knob = knobs_[rank][middle];
      const std::vector<KnobChange>& changes = Changes(rank, begin, end, knob);
      if (changes.empty()) {
        low = middle + 1;
        continue;
      }
      ++tries_;
      const LaneFigures tried = replay_->Try(changes);
      replay_->Discard();
      // Another knob leaves as many changes, but where a neighbour has the same.
      if (tried.changes > limits_.most_changes + 2) return better;
      const bool in_time = tried.seconds <= accepted_seconds_;
      (in_time ? low : high) = in_time ? middle + 1 : middle;
      if (!in_time || tried.changes > limits_.most_changes) continue;
      const double joules = limits_.Joules(tried);
      if (joules >= best->joules) continue;
      *best = {rank, begin, end, knob, joules};
      better = true;
    }
    return better;
  }

  void MoveBorders(OneRun* best) {
    struct Move {
      int begin;
      int end;
    };
    constexpr Move kMoves[] = {{-1, 0}, {1, 0},  {0, -1}, {0, 1}, {-1, -1},
                               {1, 1},  {-1, 1}, {1, -1}, {3, 0}, {0, -3}};
    const int size = static_cast<int>(pipeline_.dag.rank_order[best->rank].size());
    for (bool moved = true; moved && tries_ < limits_.most_tries;) {
      moved = false;
      for (const Move& move : kMoves) {
        const int begin = best->begin + move.begin;
        const int end = best->end + move.end;
        if (begin < 0 || end > size || begin >= end) continue;
        if (Improve(best, best->rank, begin, end)) moved = true;
      }
    }
  }

  const CostedPipeline& pipeline_;
  const RunLimits& limits_;
  LaneReplay* replay_;
  std::vector<std::vector<int>> knobs_;  // [rank]: from fast to slow.
  std::vector<KnobChange> changes_;
  double accepted_seconds_ = 0;
  int tries_ = 0;
};

}  // namespace

std::vector<int> WithGreedyRuns(const CostedPipeline& pipeline, const std::vector<int>& knobs,
                                const RunLimits& limits, LaneReplay* replay) {
  std::vector<int> best;
  double least = std::numeric_limits<double>::infinity();
  const double spare = limits.accepted_seconds - limits.baseline_seconds;
  for (const double share : {1.0, 0.5, 0.1}) {
    replay->Reset(knobs);
    RunAdder adder(pipeline, limits, replay);
    adder.AddWithin(limits.baseline_seconds + share * spare);
    if (share < 1) adder.AddWithin(limits.accepted_seconds);
    const LaneFigures& figures = replay->figures();
    const double joules = limits.Joules(figures);
    if (!limits.Allow(figures) || joules >= least) continue;
    least = joules;
    best = replay->knobs();
  }
  return best;
}

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
  // Leave slow searches to the second round: little effort is meant to be quick.
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
