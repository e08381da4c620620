// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/constrained_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>

#include "common/word_hash.h"
#include "plan/cost_options.h"
#include "robust/few_knobs.h"
#include "robust/lane_replay.h"
#include "robust/price_path.h"
#include "robust/run_search.h"
#include "robust/samples.h"

namespace perseus::robust {
namespace {

constexpr std::uint64_t kConstrainedSeed = 0xC0257A;
// Of plans that know no conditions: always the same, whatever the search's effort.
constexpr double kPaperEffort = 0.2;

// Fewer lanes where there are very many computations.
int LanesToAnneal(int computations) {
  constexpr int kMostCells = 1 << 22;
  return std::clamp(kMostCells / std::max(1, computations), 8, 128);
}

// The options of all computations at one knob each; empty where one has no such option.
std::vector<CostOption> OptionsOrNone(const CostedPipeline& pipeline,
                                      const std::vector<int>& knobs) {
  std::vector<CostOption> options;
  options.reserve(knobs.size());
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const CostOption* const option = plan::FindOption(pipeline.TableOf(i), knobs[i]);
    if (option == nullptr) return {};
    options.push_back(*option);
  }
  return options;
}

std::vector<int> KnobsIn(const std::vector<CostOption>& options) {
  std::vector<int> knobs;
  knobs.reserve(options.size());
  for (const CostOption& option : options) knobs.push_back(option.knob);
  return knobs;
}

}  // namespace

ConstrainedSearch::ConstrainedSearch(const Planner& planner, double seconds,
                                     const RobustPlanSpec& spec, const KeptConstraints& kept,
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

double ConstrainedSearch::Judge(const std::vector<CostOption>& options) {
  return search_->Judge(options, CountChanges(pipeline_.dag, KnobsIn(options)));
}

// By how much the plan on paper is late; where there is none, it is not.
double ConstrainedSearch::JudgePlan(double seconds, const PlanConstraints& constraints) {
  const auto plan = planner_.PlanFor(seconds, constraints, kPaperEffort);
  return plan ? Judge(plan->options) : -std::numeric_limits<double>::infinity();
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

// With few knobs neither makes plans that get faster step by step, so halving may miss the good
// ones.
void ConstrainedSearch::TryStepByStep(const PlanConstraints& constraints) {
  constexpr int kSteps = 12;
  constexpr double kStep = 0.005;
  for (int k = 1; k <= kSteps; ++k) {
    PlanConstraints with = constraints;
    with.time_margin_fraction += kStep * k;
    JudgePlan(seconds_, with);
  }
}

void ConstrainedSearch::OneKnobForAll() {
  for (int knob = 0; knob < static_cast<int>(pipeline_.knobs.size()); ++knob) {
    const auto options = OptionsOrNone(pipeline_, std::vector<int>(pipeline_.dag.size(), knob));
    if (!options.empty()) Judge(options);
  }
}

// The search without constraints among few knobs. Which ones is decided by the least effort.
void ConstrainedSearch::FewKnobs(const Progress& progress) {
  constexpr double kLeastEffort = 1.0 / 64;
  constexpr int kRounds = 150;
  constexpr int kLanes = 32;
  const std::vector<bool> all(pipeline_.knobs.size(), true);
  std::set<std::vector<bool>> sets;
  const auto most = static_cast<std::ptrdiff_t>(spec_.constraints.max_knobs);
  if (most == 0) {
    sets.insert(all);
  } else {
    const std::vector<bool> needed = UsedBy(pipeline_, planner_.baseline().options);
    if (std::count(needed.begin(), needed.end(), true) > most) return Anneal(progress);
    if (search_->best() != nullptr) {
      std::vector<bool> used = UsedBy(pipeline_, search_->best()->options);
      for (std::size_t knob = 0; knob < used.size(); ++knob) {
        used[knob] = used[knob] || needed[knob];
      }
      if (std::count(used.begin(), used.end(), true) <= most) sets.insert(used);
    }
    const Samples samples =
        DrawSamples(pipeline_, spec_.conditions.noise, spec_.pipelines, kLanes, kConstrainedSeed);
    const double accepted =
        planner_.baseline().iteration_time_seconds * (1 + slower_percent_ / 100);
    const DualBound prices = BoundByPrices(pipeline_, samples, accepted, 0, kRounds);
    sets.insert(CheapestFew(pipeline_, prices.price, needed, spec_.constraints.max_knobs));
  }
  struct Few {
    Planner planner;
    double saving_percent = 0;
  };
  std::vector<Few> few;
  PlannerOptions options;
  options.slope_quantum_watts = -1;
  for (const std::vector<bool>& knobs : sets) {
    auto planner = planner_;
    if (knobs != all) {
      auto made = Planner::Create(WithKnobs(pipeline_, knobs), options);
      if (!made) continue;
      planner = *std::move(made);
    }
    few.push_back({std::move(planner), 0});
  }
  const auto run = [&](Few* each, double effort, const Progress& told) {
    RobustPlanSpec spec = spec_;
    spec.constraints = {};
    spec.effort = effort;
    LadderSearch search(each->planner, spec, trials_, slower_percent_, price_of_time_);
    search.Judge(planner_.baseline().options,
                 CountChanges(pipeline_.dag, KnobsIn(planner_.baseline().options)));
    search.Run([&](double share, bool better) {
      if (better && search.best() != nullptr) Judge(search.best()->options);
      return told(share, Improved());
    });
    each->saving_percent = search.best() == nullptr ? -1e300 : search.best()->saving_percent;
  };
  bool goes_on = true;
  for (Few& each : few) {
    if (few.size() < 2 || !goes_on) break;
    run(&each, kLeastEffort,
        [&](double /*share*/, bool better) { return goes_on = progress(0, better); });
  }
  const auto best = std::max_element(few.begin(), few.end(), [](const Few& a, const Few& b) {
    return a.saving_percent < b.saving_percent;
  });
  if (!goes_on) return;
  if (best == few.end()) return Anneal(progress);
  constexpr double kFirst = 0.2;  // Of the work.
  // From what does not depend on the effort, with other knobs, too.
  if (most > 0) {
    Anneal(
        [&](double through, bool better) { return goes_on = progress(kFirst * through, better); });
  }
  if (!goes_on) return;
  // Among few there is less to search.
  constexpr double kMany = 8;
  const double share = most == 0 ? 1.0 : std::min(1.0, static_cast<double>(most) / kMany);
  run(&*best, share * spec_.effort, [&](double through, bool better) {
    return progress(most == 0 ? through : kFirst + (1 - kFirst) * through, better);
  });
}

// As LadderSearch does: each part is corrected by what the trials of the one before say, and
// rounds have four times the work of the one before.
void ConstrainedSearch::Anneal(const Progress& progress) {
  if (search_->best() == nullptr) return;
  std::vector<int> knobs = KnobsIn(search_->best()->options);
  if (!kept_.Keep(knobs)) return;
  const bool noisy = spec_.conditions.noise.any();
  const Samples samples = DrawSamples(pipeline_, spec_.conditions.noise, spec_.pipelines,
                                      LanesToAnneal(pipeline_.dag.size()), kConstrainedSeed);
  LaneReplay replay(pipeline_, spec_.conditions.switching, samples);
  replay.Reset(KnobsIn(planner_.baseline().options));
  const double baseline_seconds = replay.figures().seconds;
  const double full = (noisy ? 8e9 : 1e9) * std::max(1.0 / 32, pipeline_.dag.size() / 1536.0);
  const double mean_joules = trials_.baseline().energy_joules / pipeline_.dag.size();
  constexpr double kTooLate = 3;
  constexpr double kLittle = 0.001;
  RunGoal goal;
  goal.least_seconds =
      least_seconds_ / planner_.baseline().iteration_time_seconds * baseline_seconds;
  goal.waiting_watts = pipeline_.total_blocking_power_watts;
  goal.price_of_time = kTooLate * std::max(price_of_time_, goal.waiting_watts);
  goal.change_joules = spec_.conditions.change_joules;
  goal.most_changes = spec_.conditions.max_changes.value_or(pipeline_.dag.size());
  constexpr int kParts = 4;
  double correction = 0;
  double done = 0;
  for (int round = 0; round == 0 || done < spec_.effort * (1 - 1e-9); ++round) {
    const double share = round == 0 ? 1.0 / 64 : 3.0 / 64 * std::pow(4.0, round - 1);
    if (round > 0 && done + share > spec_.effort * (1 + 1e-9)) break;
    for (int part = 0; part < kParts; ++part) {
      goal.accepted_seconds = baseline_seconds * (1 + (slower_percent_ - correction) / 100);
      replay.Reset(knobs);
      RunSearch anneal(pipeline_, kept_, &replay,
                       WordHash(kConstrainedSeed).With(round).With(part).value());
      const double hot = mean_joules * (part == 0 ? 0.3 : 0.03);
      const std::vector<int> found = anneal.Anneal(
          goal, static_cast<std::int64_t>(full * share / kParts), hot, 0.003 * mean_joules);
      knobs = found.empty() ? replay.knobs() : found;
      if (found.empty()) {
        goal.price_of_time *= 2;
      } else {
        replay.Reset(found);
        const double unused =
            100 * (goal.accepted_seconds - replay.figures().seconds) / baseline_seconds;
        const double late = Judge(OptionsOrNone(pipeline_, found));
        if (late > 0) {
          correction += late + kLittle;
        } else if (unused + late < -kLittle) {
          correction += (unused + late) / 2;
        }
      }
      const double through = (done + share * (part + 1) / kParts) / std::max(spec_.effort, share);
      if (!progress(std::min(1.0, through), Improved())) return;
    }
    done += share;
  }
}

void ConstrainedSearch::Run(const Progress& progress) {
  const PlanConstraints& asked = spec_.constraints;
  OneKnobForAll();
  std::vector<PlanConstraints> all = {asked};
  for (const Granularity coarser :
       {Granularity::kPhase, Granularity::kStageType, Granularity::kStage}) {
    // In this order each is coarser than the one before. Few knobs take long for each.
    if (coarser <= asked.granularity) continue;
    if (asked.max_knobs > 0 && coarser != Granularity::kStage) continue;
    all.push_back(asked);
    all.back().granularity = coarser;
  }
  for (const PlanConstraints& constraints : all) {
    if (!progress(0, Improved())) return;
    HalveTheTime(constraints);
    if (constraints.granularity == asked.granularity) HalveTheMargin(constraints);
  }
  if (asked.max_knobs > 0) TryStepByStep(asked);
  if (!progress(0, Improved())) return;
  const bool each_its_own =
      asked.granularity == Granularity::kComputation && asked.min_dwell_seconds == 0;
  each_its_own ? FewKnobs(progress) : Anneal(progress);
}

}  // namespace perseus::robust
