// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/walks/constrained_search.h"

#include <algorithm>
#include <limits>

#include "robust/knobs.h"

namespace perseus::robust {
namespace {

constexpr double kLeastEffort = 1.0 / 64;
// Of plans that know no conditions, where there is a second round.
constexpr double kPaperEffort = 0.2;

}  // namespace

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

// By how much the plan on paper is late; where there is none, it is not.
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

// Plans that know no conditions.
void ConstrainedSearch::TryOnPaper(double effort, bool all) {
  const PlanConstraints& asked = spec_.constraints;
  paper_effort_ = effort;
  JudgePlan(seconds_, asked);
  HalveTheTime(asked);
  HalveTheMargin(asked);
  // In this order each is coarser than the one before.
  for (const Granularity coarser :
       {Granularity::kPhase, Granularity::kStageType, Granularity::kStage}) {
    if (coarser <= asked.granularity) continue;
    if (coarser != Granularity::kStage && !all) continue;
    PlanConstraints constraints = asked;
    constraints.granularity = coarser;
    HalveTheTime(constraints);
  }
}

// What is too dear for the least effort. Returns whether that was better than all before.
bool ConstrainedSearch::TryMoreOnPaper() {
  const auto saving = [&] {
    return search_->best() == nullptr ? -1e300 : search_->best()->saving_percent;
  };
  const double before = saving();
  TryOnPaper(kPaperEffort, true);
  if (saving() <= before) return false;
  better_on_paper_ = search_->best()->options;
  return true;
}

void ConstrainedSearch::Run(const Progress& progress) {
  double most_told = 0;
  const Progress told = [&](double share, bool better) {
    most_told = std::max(most_told, share);
    return goes_on_ = goes_on_ && progress(most_told, better);
  };
  asks_ = [&] { return told(0, Improved()); };
  OneKnobForAll();
  TryOnPaper(kLeastEffort, false);
  if (!asks_()) return;
  if (spec_.constraints.granularity != Granularity::kComputation) return Anneal(told);
  if (spec_.effort >= kSecondRoundEffort * (1 - 1e-9)) TryMoreOnPaper();
  if (goes_on_) AllKnobs(told);
}

}  // namespace perseus::robust
