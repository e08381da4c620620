// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/held_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/framework/table.h"
#include "cli/planning/job.h"
#include "cli/planning/plan_summary.h"
#include "cli/planning/scenario_text.h"
#include "perseus/emulator.h"
#include "report/figures.h"

namespace perseus::cli {
namespace {

// As it is printed, so that what is printed adds up.
double Rounded(double percent) { return std::round(100 * percent) / 100; }

bool HasPrice(const HeldPlan& held) { return held.robust.conditions.change_joules > 0; }

// The saving of emulated figures with the price of their clock calls.
double NetSaving(double change_joules, const ExpectedFigures& figures,
                 const ExpectedFigures& baseline) {
  // As it is emulated where nothing is added.
  if (!(change_joules > 0)) return figures.saving_percent;
  return report::PercentSaved(figures.energy_joules + change_joules * figures.clock_calls,
                              baseline.energy_joules + change_joules * baseline.clock_calls);
}

double NetSaving(const HeldPlan& held, const ExpectedFigures& figures) {
  return NetSaving(held.robust.conditions.change_joules, figures, held.baseline);
}

// " in the same time (+0.3 %)", where that is not the target's.
std::string ComparedHow(const HeldPlan& held) {
  if (!held.at_own_time) return "";
  return fmt::format(" in the same time ({})",
                     FormatSignedPercent(held.on_paper.slowdown_percent, 3));
}

// What the conditions cost.
std::string Cost(const HeldPlan& held) {
  const RobustPlan& robust = held.robust;
  const double paper = Rounded(held.on_paper.net_saving_percent);
  const double here = Rounded(NetSaving(held, held.expected));
  const double most = Rounded(robust.bound.saving_without_switching_percent);
  const std::string without = fmt::format("without the conditions a plan would save {}{}",
                                          FormatPercent(paper, 2), ComparedHow(held));
  const std::string both = HasPrice(held) ? " (both with the price of their changes)" : "";
  if (here >= paper) return fmt::format("{}, no more than this one{}.", without, both);
  std::string text =
      fmt::format("{}, and this one saves {}{}.", without, FormatPercent(here, 2), both);
  // Where nothing is known but what a plan without conditions saves, or less than was found.
  if (most >= paper || most <= here) return text;
  return fmt::format("{} {}, no plan can save more than {}{}.", text,
                     robust.conditions.noise.any() ? "With this noise" : "Whatever the latency",
                     FormatPercent(most, 2), robust.conditions.noise.any() ? " (an estimate)" : "");
}

// A slowdown to accept, as a flag takes it: two digits, and not less.
std::string AsAccepted(double share) {
  const double digit = std::pow(10, std::floor(std::log10(100 * share)) - 1);
  return fmt::format("{:.6g}%", std::ceil(100 * share / digit - 1e-9) * digit);
}

// Noise that is drawn once for a job is no mean over iterations: where little may be slowed for
// it, more accepted slowdown gains most. Empty where that is not so.
std::string WhatWouldHelp(const HeldPlan& held) {
  constexpr double kWorthSaying = 0.5;  // Points.
  const RobustPlan& robust = held.robust;
  const Conditions& conditions = robust.conditions;
  if (!conditions.noise.once() ||
      NetSaving(held, held.paper) < NetSaving(held, held.expected) + kWorthSaying ||
      robust.paper_max_slowdown <= conditions.max_slowdown) {
    return "";
  }
  const bool may_be_taken =
      !conditions.max_changes || held.paper_changes <= *conditions.max_changes;
  const std::string_view what = conditions.noise.per_gpu == 0     ? "stages"
                                : conditions.noise.per_stage == 0 ? "GPUs"
                                                                  : "stages and GPUs";
  const std::string confidence = NameOf(held.settings, "confidence");
  const std::string more =
      may_be_taken
          ? fmt::format(
                "If you accept {}, the plan without conditions is good enough and saves {}{}. A "
                "lower {} also helps",
                SettingOf(held.settings, "max_slowdown", AsAccepted(robust.paper_max_slowdown)),
                FormatPercent(NetSaving(held, held.paper), 2),
                HasPrice(held) ? " with the price of its changes" : "", confidence)
          : fmt::format("A higher {} or a lower {} lets more computations be slowed",
                        NameOf(held.settings, "max_slowdown"), confidence);
  return fmt::format(
      "nobody knows beforehand which {0} of a job are slow. If at least {1:g} % of all jobs must "
      "be at most {2:g} % slower, {3} can be slowed down. {4}.",
      what, 100 * conditions.confidence, 100 * conditions.max_slowdown,
      NetSaving(held, held.expected) < kWorthSaying ? "hardly anything" : "only little", more);
}

// Of calls in another mode, where they save more.
std::string OtherCalls(const HeldPlan& held) {
  const OtherCallMode& other = *held.other_calls;
  return fmt::format("with {}{} instead of {}, a plan would save at least {}{}, and be {} slower.",
                     SettingOf(held.settings, "call_ahead", CallAheadName(other.call_ahead)),
                     other.call_ahead == CallAhead::kPredicted ? " (as Perseus' client calls)" : "",
                     CallAheadName(held.robust.conditions.switching.call_ahead),
                     FormatPercent(other.net_saving_percent, 2),
                     HasPrice(held) ? " with the price of its changes" : "",
                     FormatPercent(other.expected.slowdown_percent, 3));
}

// "an iteration with 100 changes of clock saves 11.20 %, with 200 changes 12.01 %", a few of many.
std::string PriceCurve(const std::vector<ChangePricePoint>& curve, bool priced) {
  constexpr std::size_t kMost = 8;
  // Points that print alike are one: the one with the fewest changes.
  std::vector<std::pair<int, std::string>> differing;
  for (const ChangePricePoint& point : curve) {
    std::string saving = FormatPercent(point.saving_percent, 2);
    if (differing.empty() || differing.back().second != saving) {
      differing.emplace_back(point.changes, std::move(saving));
    }
  }
  std::vector<std::string> points;
  const std::size_t shown = std::min(kMost, differing.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const auto& [changes, saving] =
        differing[shown == 1 ? 0 : k * (differing.size() - 1) / (shown - 1)];
    const std::string with =
        changes == 0 ? "without changes" : "with " + CountOf(changes, "change");
    points.push_back(k == 0 ? fmt::format("an iteration {} of clock saves {}", with, saving)
                            : fmt::format("{} {}", with, saving));
  }
  return fmt::format("{}{}.", fmt::join(points, ", "),
                     priced ? " (the price of the changes is subtracted)" : "");
}

// In no other figure.
std::string PriceOfCalls(const HeldPlan& held) {
  const ExpectedFigures& expected = held.expected;
  return PriceOfChangesText(
      held.robust.conditions.change_joules, NameOf(held.settings, "change_price"),
      {held.baseline.clock_calls, held.baseline.energy_joules},
      {expected.clock_calls, expected.energy_joules}, " an iteration of a pipeline");
}

// What the plan comes to where conditions are not those of the middle.
std::string Corners(const HeldPlan& held) {
  return fmt::format(
      "these figures are of the middle of the conditions' ranges. At their corners, the plan saves "
      "at least {}; its slowdown is at most {}.",
      FormatPercent(held.expected.least_saving_percent, 2),
      FormatSignedPercent(held.expected.most_slowdown_percent, 3));
}

// Each under a name of its own.
std::vector<std::pair<std::string_view, std::string>> Sentences(const HeldPlan& held) {
  const ExpectedFigures& expected = held.expected;
  std::vector<std::pair<std::string_view, std::string>> sentences;
  sentences.emplace_back("Under", ConditionsInWords(held.robust.conditions));
  sentences.emplace_back("Emulated",
                         fmt::format("{}; against all clocks at maximum under the same conditions.",
                                     ExpectedInWords(expected)));
  if (held.robust.with_profile_errors) {
    sentences.emplace_back(
        "Profile", fmt::format("it also holds if times at lowered clocks are off by the standard "
                               "errors that the profile states; without that: {}.",
                               SettingOf(held.settings, "profile_errors", "false")));
  }
  if (held.robust.conditions.ranges.any()) sentences.emplace_back("Range", Corners(held));
  if (held.robust.conditions.change_joules > 0) {
    sentences.emplace_back("Price", PriceOfCalls(held));
  }
  sentences.emplace_back("Cost", Cost(held));
  if (std::string help = WhatWouldHelp(held); !help.empty()) {
    sentences.emplace_back("Helps", std::move(help));
  }
  if (held.other_calls) sentences.emplace_back("Calls", OtherCalls(held));
  std::string paper = fmt::format(
      "a plan made without the conditions promises to save {}. Emulated under them: {}.",
      FormatPercent(held.robust.paper_plan.saving_percent, 2), ExpectedInWords(held.paper));
  if (HasPrice(held)) {
    paper += fmt::format(" With the price of its changes the saving is {}.",
                         FormatPercent(NetSaving(held, held.paper), 2));
  }
  sentences.emplace_back("Otherwise", std::move(paper));
  if (!held.robust.price_curve.empty()) {
    sentences.emplace_back(
        "Changes", PriceCurve(held.robust.price_curve, held.robust.conditions.change_joules > 0));
  }
  return sentences;
}

Result<RobustPlan> Search(const Planner& planner, double seconds, const RobustPlanSpec& spec,
                          ProgressLine* progress) {
  return PlanUnder(planner, seconds, spec, progress->Function());
}

PaperPlan OnPaper(const Planner& planner, const Plan& plan, double seconds, double change_joules) {
  const Plan& baseline = planner.baseline();
  const auto joules = [&](const Plan& of) {
    return of.energy_joules +
           change_joules * CountKnobChanges(planner.pipeline().dag, of.options)->all();
  };
  PaperPlan paper;
  paper.slowdown_percent = report::PercentOver(seconds, baseline.iteration_time_seconds);
  paper.net_saving_percent = change_joules > 0
                                 ? report::PercentSaved(joules(plan), joules(baseline))
                                 : plan.saving_percent;
  return paper;
}

// A plan that may take more time than the target is compared with one on paper for that time:
// always where it would seem to give up nothing, else where the difference is more than the
// slowdown that is usual (0.1 %).
void CompareOnPaper(const Planner& planner, double seconds, const PlanConstraints& constraints,
                    double effort, HeldPlan* held) {
  constexpr double kRounding = 0.0005;  // Points, as slowdowns are printed.
  constexpr double kUsual = 0.15;
  const double change_joules = held->robust.conditions.change_joules;
  held->on_paper = OnPaper(planner, held->robust.paper_plan, seconds, change_joules);
  const double slower = held->expected.slowdown_percent - held->on_paper.slowdown_percent;
  const bool seems_free =
      Rounded(NetSaving(*held, held->expected)) >= Rounded(held->on_paper.net_saving_percent);
  if (slower <= (seems_free ? kRounding : kUsual)) return;
  const double taken =
      planner.baseline().iteration_time_seconds * (1 + held->expected.slowdown_percent / 100);
  const Result<Plan> plan = planner.PlanFor(taken, {.constraints = constraints, .effort = effort});
  // More time than the target allows a plan whenever the target did.
  if (!plan) return;
  held->on_paper = OnPaper(planner, *plan, taken, change_joules);
  held->at_own_time = true;
}

// What clocks that are asked for in other modes would save, by a sixteenth of the search: what
// it finds is the least that they save.
Result<void> TryOtherCalls(const Job& job, const Planner& planner, double seconds, double effort,
                           ProgressLine* progress, HeldPlan* held) {
  constexpr double kShare = 1.0 / 16;
  constexpr double kLeastEffort = 1.0 / 64;
  constexpr double kWorthTrying = 0.5;  // Points that late clocks may cost.
  constexpr double kWorthSaying = 0.1;
  const RobustPlan& robust = held->robust;
  const ClockSwitching& switching = robust.conditions.switching;
  // The price of this plan's changes would be on both sides.
  if (!(switching.latency_seconds > 0) || robust.bound.saving_without_switching_percent <
                                              held->expected.saving_percent + kWorthTrying) {
    return {};
  }
  double most = NetSaving(*held, held->expected) + kWorthSaying;
  for (const CallAhead mode : {CallAhead::kNone, CallAhead::kEnd, CallAhead::kPredicted}) {
    if (mode == switching.call_ahead) continue;
    progress->SetWhat(fmt::format("the same with --call-ahead {}", CallAheadName(mode)));
    RobustPlanSpec spec = RobustSpecOf(job.settings);
    spec.conditions.switching.call_ahead = mode;
    spec.effort = std::max(kLeastEffort, kShare * effort);
    spec.with_bound = false;
    const Result<RobustPlan> found = Search(planner, seconds, spec, progress);
    if (!found && found.error().code == ErrorCode::kInfeasible) continue;
    if (!found) return tl::unexpected(found.error());
    const auto figures = EmulateUnder(planner, {&found->plan, &planner.baseline()},
                                      {.conditions = spec.conditions, .pipelines = spec.pipelines});
    if (!figures) return tl::unexpected(figures.error());
    const double net = NetSaving(spec.conditions.change_joules, (*figures)[0], (*figures)[1]);
    if (net <= most) continue;
    most = net;
    held->other_calls = {mode, (*figures)[0], net};
  }
  return {};
}

}  // namespace

Result<RobustPlan> SearchThatHolds(const Job& job, const Planner& planner, double seconds,
                                   double effort, bool with_bound, ProgressLine* progress) {
  progress->SetWhat("plan that holds");
  RobustPlanSpec spec = RobustSpecOf(job.settings);
  spec.effort = effort;
  spec.with_bound = with_bound;
  return Search(planner, seconds, spec, progress);
}

Result<HeldPlan> PlanThatHolds(const Job& job, const Planner& planner, double seconds,
                               double effort, ProgressLine* progress) {
  Result<RobustPlan> robust = SearchThatHolds(job, planner, seconds, effort, true, progress);
  if (!robust) return tl::unexpected(robust.error());
  HeldPlan held;
  held.robust = *std::move(robust);
  progress->SetWhat("emulation");
  const auto figures =
      EmulateUnder(planner, {&held.robust.plan, &held.robust.paper_plan, &planner.baseline()},
                   {.conditions = held.robust.conditions, .pipelines = held.robust.pipelines});
  if (!figures) return tl::unexpected(figures.error());
  held.expected = (*figures)[0];
  held.paper = (*figures)[1];
  held.baseline = (*figures)[2];
  held.settings = job.settings;
  held.paper_changes =
      CountKnobChanges(planner.pipeline().dag, held.robust.paper_plan.options)->all();
  CompareOnPaper(planner, seconds, RobustSpecOf(job.settings).constraints, effort, &held);
  if (auto tried = TryOtherCalls(job, planner, seconds, effort, progress, &held); !tried) {
    return tl::unexpected(tried.error());
  }
  return held;
}

std::vector<std::string> HeldPlanNotes(const HeldPlan& held) {
  std::vector<std::string> notes;
  for (const auto& [name, sentence] : Sentences(held)) notes.push_back(sentence);
  return notes;
}

std::string FormatHeldPlan(const HeldPlan& held, const Style& style) {
  std::string out;
  for (const auto& [name, sentence] : Sentences(held)) {
    out += Fact(name, sentence, style);
  }
  return out;
}

}  // namespace perseus::cli
