// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/constrained_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/word_hash.h"
#include "robust/lane_replay.h"
#include "robust/samples.h"

namespace perseus::robust {

RunSearch::RunSearch(const CostedPipeline& pipeline, const plan::KeptConstraints& kept,
                     LaneReplay* replay, std::uint64_t seed)
    : pipeline_(pipeline), kept_(kept), replay_(replay), stream_(seed) {
  const std::size_t knobs = pipeline.knobs.size();
  has_option_.assign(pipeline.tables.size() * knobs, 0);
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    std::vector<int>& useful = useful_.emplace_back();
    for (const CostOption& option : pipeline.tables[t].all_options) {
      useful.push_back(option.knob);
      has_option_[t * knobs + option.knob] = 1;
    }
    std::sort(useful.begin(), useful.end());
  }
}

// A knob beside another one, mostly the next.
int RunSearch::StepFrom(int table, int knob, int direction) {
  const std::vector<int>& knobs = useful_[table];
  const int last = static_cast<int>(knobs.size()) - 1;
  const auto at =
      static_cast<int>(std::lower_bound(knobs.begin(), knobs.end(), knob) - knobs.begin());
  const std::uint64_t bits = stream_.Next();
  int step = 1;
  if ((bits & 3) == 0) step = 2;
  if ((bits & 15) == 0) step = 3 + static_cast<int>((bits >> 8) & 7);
  return knobs[std::clamp(at + direction * step, 0, last)];
}

// Nothing where a member has no such knob, since they share it.
void RunSearch::Set(const std::vector<int>& members, int knob) {
  for (const int i : members) {
    if (has_option_[pipeline_.table_of[i] * pipeline_.knobs.size() + knob] == 0) return;
  }
  for (const int i : members) {
    if (knobs_[i] == knob) continue;
    undo_.push_back({i, knobs_[i]});
    knobs_[i] = knob;
    proposal_.push_back({i, knob});
  }
}

void RunSearch::ProposeGroup(int direction) {
  const std::vector<std::vector<int>>& groups = kept_.groups();
  const std::vector<int>& members = groups[stream_.Below(static_cast<int>(groups.size()))];
  for (const KnobChange& change : proposal_) {
    if (change.computation == members.front()) return;
  }
  const int i = members.front();
  Set(members, StepFrom(pipeline_.table_of[i], knobs_[i], direction));
}

void RunSearch::Propose() {
  proposal_.clear();
  undo_.clear();
  const std::uint64_t bits = stream_.Next();
  const int direction = (bits & 1) != 0 ? 1 : -1;
  ProposeGroup(direction);
  // Another group may give the time that this one loses.
  if ((bits & 2) != 0) ProposeGroup(-direction);
  if ((bits & 12) == 0) ProposeGroup((bits & 16) != 0 ? 1 : -1);
}

std::vector<int> RunSearch::Anneal(const SearchGoal& goal, std::int64_t work, double hot_joules,
                                   double cold_joules) {
  knobs_ = replay_->knobs();
  const auto penalty_of = [&](const LaneFigures& figures) {
    return goal.price_of_time * std::max(0.0, figures.seconds - goal.accepted_seconds);
  };
  // Changes beyond the limit: many are never taken, but the way to a better choice may lead
  // through some.
  constexpr double kBeyond = 2.5;
  const auto beyond = [&](const LaneFigures& figures) {
    return kBeyond * std::max(0.0, static_cast<double>(figures.changes - goal.most_changes));
  };
  LaneFigures now = replay_->figures();
  std::vector<int> best;
  double least = std::numeric_limits<double>::infinity();
  if (goal.Allows(now)) {
    best = knobs_;
    least = goal.Joules(now);
  }
  constexpr std::int64_t kShare = 2;  // Of a replay, what comes after a change: half.
  const std::int64_t of_one = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(pipeline_.dag.size()) * (replay_->lanes() + 8) / kShare);
  const std::int64_t moves = std::max<std::int64_t>(1, work / of_one);
  for (std::int64_t move = 0; move < moves; ++move) {
    const double through = static_cast<double>(move) / static_cast<double>(moves);
    const double warmth = hot_joules * std::pow(cold_joules / hot_joules, through);
    Propose();
    if (proposal_.empty()) continue;
    const LaneFigures then = replay_->Try(proposal_);
    const double worse = goal.Joules(then) + penalty_of(then) - goal.Joules(now) - penalty_of(now) +
                         warmth * (beyond(then) - beyond(now));
    const bool taken = worse <= 0 || stream_.Share() < std::exp(-worse / warmth);
    if (taken) {
      replay_->Commit();
      now = then;
      if (goal.Allows(now) && goal.Joules(now) < least) {
        best = knobs_;
        least = goal.Joules(now);
      }
      continue;
    }
    replay_->Discard();
    for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) {
      knobs_[undo->computation] = undo->knob;
    }
  }
  return best;
}

// The annealing of a ConstrainedSearch.

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

// Goes on from the best of the plans without conditions and of fewer changes, where that is better
// than all that it has met.
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
void ConstrainedSearch::Walk(Rung* rung, LaneReplay* replay, SearchGoal goal, std::int64_t work,
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
  if (WalksOnce() ? search_->best() == nullptr : on_paper_.empty()) return;
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
  SearchGoal goal;
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

ConstrainedSearch::ConstrainedSearch(const Planner& planner, double seconds,
                                     const RobustPlanSpec& spec, const plan::KeptConstraints& kept,
                                     const Trials& trials, double slower_percent,
                                     double price_of_time, LadderSearch* search)
    : planner_(planner),
      pipeline_(planner.pipeline()),
      seconds_(seconds),
      spec_(spec),
      kept_(kept),
      trials_(trials),
      slower_percent_(slower_percent),
      price_of_time_(price_of_time),
      search_(search) {}

// By how much the plan without conditions is late; where there is none, it is not.
double ConstrainedSearch::JudgePlan(double seconds, const PlanConstraints& constraints) {
  const auto [known, is_new] =
      late_.try_emplace({paper_effort_, static_cast<int>(constraints.granularity), seconds,
                         constraints.time_margin_fraction},
                        -std::numeric_limits<double>::infinity());
  if (!is_new || !asks_()) return known->second;
  const auto plan = planner_.PlanFor(seconds, {.constraints = constraints,
                                               .effort = paper_effort_,
                                               .progress = [&](const auto&) { return asks_(); }});
  if (plan) known->second = JudgeOnPaper(plan->options).late_percent;
  return known->second;
}

Verdict ConstrainedSearch::JudgeOnPaper(const std::vector<CostOption>& options) {
  Verdict verdict = search_->Judge(options);
  if (verdict.late_percent > 0) return verdict;
  for (const OnPaper& held : on_paper_) {
    if (held.changes <= verdict.changes && held.saving_percent >= verdict.saving_percent) {
      return verdict;
    }
  }
  std::erase_if(on_paper_, [&](const OnPaper& held) {
    return held.changes >= verdict.changes && held.saving_percent <= verdict.saving_percent;
  });
  on_paper_.push_back({KnobsOf(options), verdict.changes, verdict.saving_percent});
  return verdict;
}

bool ConstrainedSearch::Improved() {
  const double saving = search_->best() == nullptr ? -1e300 : search_->best()->saving_percent;
  const bool improved = saving > told_;
  told_ = saving;
  return improved;
}

// Planning for less time leaves slack for what conditions cost.
void ConstrainedSearch::HalveTheTime(const PlanConstraints& constraints) {
  constexpr int kHalvings = 7;
  double low = planner_.frontier().fastest_seconds;
  double high = seconds_ * (1 + spec_.conditions.max_slowdown);
  if (JudgePlan(high, constraints) <= 0) return;
  for (int k = 0; k < kHalvings; ++k) {
    const double middle = (low + high) / 2;
    (JudgePlan(middle, constraints) > 0 ? high : low) = middle;
  }
}

// So does a margin, and nothing need be as fast as it can.
void ConstrainedSearch::HalveTheMargin(const PlanConstraints& constraints) {
  constexpr int kHalvings = 7;
  constexpr double kMost = 0.16;
  double low = 0;
  double high = kMost;
  for (int k = 0; k < kHalvings; ++k) {
    const double middle = (low + high) / 2;
    PlanConstraints with = constraints;
    with.time_margin_fraction += middle;
    (JudgePlan(seconds_, with) > 0 ? low : high) = middle;
  }
}

void ConstrainedSearch::OneKnobForAll() {
  for (int knob = 0; knob < static_cast<int>(pipeline_.knobs.size()); ++knob) {
    const auto options = OptionsAt(pipeline_, std::vector<int>(pipeline_.dag.size(), knob));
    if (!options.empty()) JudgeOnPaper(options);
  }
}

// The search without constraints, of a pipeline that may have a margin.
void ConstrainedSearch::SearchAllChoices(const Planner& planner, const Trials& trials,
                                         double effort, const Progress& progress) {
  RobustPlanSpec spec = spec_;
  spec.constraints = {};
  spec.effort = effort;
  LadderSearch search(planner, spec, trials, slower_percent_, price_of_time_);
  search.Judge(planner_.baseline().options);
  search.Run([&](double share, bool better) {
    if (better && search.best() != nullptr) {
      search_->Judge(OptionsAt(pipeline_, KnobsOf(search.best()->options)));
    }
    return progress(share, Improved());
  });
}

// A margin is kept by searching a pipeline whose slowed computations last longer. That is more than
// is asked for where conditions cost time, too, so half of the work is done without.
void ConstrainedSearch::AllKnobs(const Progress& progress) {
  double share = 0;
  if (plan::GuardOf(spec_.constraints).any()) {
    share = 0.5;
    PlannerOptions options;
    options.slope_quantum_watts = {};
    options.progress = [&](const auto&) { return asks_(); };
    const auto guarded = Planner::Create(kept_.Guarded(), options);
    if (guarded) {
      // These times have the margin already. A clock that comes late can make an iteration shorter;
      // with the margin it has to be in time also where every clock comes at once.
      Trials trials = trials_;
      trials.set_least_slowdown([this](const std::vector<CostOption>& slowed) {
        const double seconds = kept_.GuardedSeconds(OptionsAt(pipeline_, KnobsOf(slowed)));
        return 100 * (seconds / planner_.baseline().iteration_time_seconds - 1);
      });
      SearchAllChoices(*guarded, trials, share * spec_.effort, [&](double through, bool better) {
        return progress(share * through, better);
      });
    }
  }
  if (!goes_on_) return;
  SearchAllChoices(planner_, trials_, (1 - share) * spec_.effort, [&](double through, bool better) {
    return progress(share + (1 - share) * through, better);
  });
}

// Plans that know no conditions, of the coarsest granularity, too.
void ConstrainedSearch::TryOnPaper(double effort) {
  const PlanConstraints& asked = spec_.constraints;
  paper_effort_ = effort;
  JudgePlan(seconds_, asked);
  HalveTheTime(asked);
  HalveTheMargin(asked);
  if (asked.granularity == Granularity::kStage) return;
  PlanConstraints coarser = asked;
  coarser.granularity = Granularity::kStage;
  HalveTheTime(coarser);
}

void ConstrainedSearch::Run(const Progress& progress) {
  double most_told = 0;
  const Progress told = [&](double share, bool better) {
    most_told = std::max(most_told, share);
    return goes_on_ = goes_on_ && progress(most_told, better);
  };
  asks_ = [&] { return told(0, Improved()); };
  OneKnobForAll();
  // More effort finds hardly better ones, but perhaps one where there was none.
  constexpr double kLeastEffort = 1.0 / 64;
  constexpr double kMoreEffort = 0.2;
  TryOnPaper(kLeastEffort);
  if (search_->best() == nullptr && spec_.effort >= kMoreEffort) TryOnPaper(kMoreEffort);
  if (!asks_()) return;
  if (spec_.constraints.granularity != Granularity::kComputation) return Anneal(told);
  AllKnobs(told);
}

}  // namespace perseus::robust
