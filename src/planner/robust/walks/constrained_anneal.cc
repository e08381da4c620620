// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The annealing of a ConstrainedSearch.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/word_hash.h"
#include "robust/knobs.h"
#include "robust/replay/lane_replay.h"
#include "robust/replay/samples.h"
#include "robust/walks/constrained_search.h"
#include "robust/walks/run_search.h"

namespace perseus::robust {
namespace {

constexpr double kAllRungs = 1.6;  // Work of all rungs together, of a walk without a limit.

}  // namespace

// Which limits on changes are tried, and with how much of the work: neither depends on the limit
// asked for, which only says where to stop. Without a limit, one walk.
std::vector<ConstrainedSearch::Rung> ConstrainedSearch::Rungs() const {
  const int size = pipeline_.dag.size();
  const auto most = std::min<std::int64_t>(size, spec_.conditions.max_changes.value_or(size));
  if (WalksOnce()) return {{.most_changes = static_cast<int>(most)}};
  constexpr double kLeastShare = 1.0 / 6;
  std::vector<int> levels = {0};
  for (int ten = 1; ten < size; ten *= 10) {
    for (const int factor : {2, 5, 10}) {
      if (factor * ten < size) levels.push_back(factor * ten);
    }
  }
  levels.push_back(size);
  std::vector<Rung> rungs;
  double sum = 0;
  for (const int level : levels) {
    const double share = std::max(kLeastShare, level / static_cast<double>(size));
    sum += share;
    if (level <= most) rungs.push_back({.most_changes = level, .share = share});
  }
  for (Rung& rung : rungs) rung.share *= kAllRungs / sum;
  return rungs;
}

// Goes on from the best of the plans on paper and of fewer changes, where that is better than
// all that it has met.
void ConstrainedSearch::Begin(Rung* rung, const Rung* below) const {
  const auto consider = [&](const std::vector<int>& knobs, double saving) {
    if (knobs.empty() || saving <= rung->saving_percent) return;
    rung->knobs = rung->best = knobs;
    rung->saving_percent = saving;
  };
  if (WalksOnce()) {
    const Candidate* const best = search_->best();
    if (rung->knobs.empty() && best != nullptr) {
      consider(KnobsOf(best->options), best->saving_percent);
    }
    return;
  }
  for (const OnPaper& held : on_paper_) {
    if (held.changes <= rung->most_changes) consider(held.knobs, held.saving_percent);
  }
  if (below != nullptr) consider(below->best, below->saving_percent);
}

// One part of a rung's walk, corrected by what the trials of the one before say.
void ConstrainedSearch::Walk(Rung* rung, LaneReplay* replay, RunGoal goal, std::int64_t work,
                             double hot_joules, std::uint64_t seed) {
  constexpr double kLittle = 0.001;
  constexpr double kColdShare = 0.003;
  const double baseline_seconds = goal.accepted_seconds;
  goal.accepted_seconds *= 1 + (slower_percent_ - rung->correction) / 100;
  goal.price_of_time *= rung->dearer;
  goal.most_changes = rung->most_changes;
  replay->Reset(rung->knobs);
  RunSearch anneal(pipeline_, kept_, replay, seed);
  const double mean_joules = trials_.baseline().energy_joules / pipeline_.dag.size();
  const std::vector<int> found = anneal.Anneal(goal, work, hot_joules, kColdShare * mean_joules);
  rung->knobs = found.empty() ? replay->knobs() : found;
  if (found.empty()) {
    rung->dearer *= 2;
    return;
  }
  replay->Reset(found);
  const double unused =
      100 * (goal.accepted_seconds - replay->figures().seconds) / baseline_seconds;
  const Verdict verdict = search_->Judge(OptionsAt(pipeline_, found));
  const double late = verdict.late_percent;
  if (late > 0) {
    rung->correction += late + kLittle;
  } else if (unused + late < -kLittle) {
    rung->correction += (unused + late) / 2;
  }
  if (late <= 0 && verdict.saving_percent > rung->saving_percent) {
    rung->saving_percent = verdict.saving_percent;
    rung->best = found;
  }
}

// As LadderSearch does: rounds have four times the work of the one before.
void ConstrainedSearch::Anneal(const Progress& progress) {
  const bool has_second_round = spec_.effort >= kSecondRoundEffort * (1 - 1e-9);
  const auto has_begin = [&] {
    return WalksOnce() ? search_->best() != nullptr : !on_paper_.empty();
  };
  if (!has_begin() && has_second_round) TryMoreOnPaper();
  if (!has_begin()) return;
  const bool noisy = spec_.conditions.noise.any();
  const Samples samples = DrawSamples(pipeline_, spec_.conditions.noise, spec_.pipelines,
                                      LanesFor(pipeline_.dag.size()), kConstrainedSeed);
  LaneReplay replay(pipeline_, spec_.conditions.switching, samples);
  replay.Reset(KnobsOf(planner_.baseline().options));
  const double baseline_seconds = replay.figures().seconds;
  const double full = (noisy ? 8e9 : 1e9) * std::max(1.0 / 32, pipeline_.dag.size() / 1536.0);
  const double mean_joules = trials_.baseline().energy_joules / pipeline_.dag.size();
  constexpr double kTooLate = 3;
  constexpr double kHot = 0.3;
  constexpr double kWarm = 0.03;
  RunGoal goal;
  goal.accepted_seconds = baseline_seconds;  // Of which Walk() makes what it accepts.
  goal.least_seconds =
      least_seconds_ / planner_.baseline().iteration_time_seconds * baseline_seconds;
  goal.waiting_watts = pipeline_.total_blocking_power_watts;
  goal.price_of_time = kTooLate * std::max(price_of_time_, goal.waiting_watts);
  goal.change_joules = spec_.conditions.change_joules;
  constexpr int kParts = 4;
  std::vector<Rung> rungs = Rungs();
  const double parts = static_cast<double>(kParts) * static_cast<double>(rungs.size());
  double done = 0;
  for (int round = 0; round == 0 || done < spec_.effort * (1 - 1e-9); ++round) {
    const double share = round == 0 ? 1.0 / 64 : 3.0 / 64 * std::pow(4.0, round - 1);
    if (round > 0 && done + share > spec_.effort * (1 + 1e-9)) break;
    if (round == 1 && TryMoreOnPaper() && WalksOnce()) {
      rungs[0].knobs = KnobsOf(better_on_paper_);
    }
    for (std::size_t k = 0; k < rungs.size(); ++k) {
      Rung& rung = rungs[k];
      Begin(&rung, k == 0 ? nullptr : &rungs[k - 1]);
      const auto work = static_cast<std::int64_t>(full * rung.share * share / kParts);
      for (int part = 0; part < kParts && !rung.knobs.empty(); ++part) {
        const WordHash hash = WordHash(kConstrainedSeed).With(round).With(part);
        const std::uint64_t seed = (WalksOnce() ? hash : hash.With(rung.most_changes)).value();
        Walk(&rung, &replay, goal, work, mean_joules * (part == 0 ? kHot : kWarm), seed);
        const double of_round = (static_cast<double>(k) * kParts + part + 1) / parts;
        const double through = (done + share * of_round) / std::max(spec_.effort, share);
        if (!progress(std::min(1.0, through), Improved())) return;
      }
    }
    done += share;
  }
}

}  // namespace perseus::robust
