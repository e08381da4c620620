// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/emulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/planning.h"
#include "perseus/policy.h"

namespace perseus::sosp24 {
namespace {

// Percent of slowdown in Figure 8; Figure 7 is one of them.
constexpr int kFirstSlowdown = 1;
constexpr int kLastSlowdown = 50;
constexpr int kFigure7Slowdown = 20;

double Factor(int percent) { return (100 + percent) / 100.0; }

std::string Shown(const EmulationCase& one) {
  std::string device = one.device;
  for (char& c : device) {
    c = c == '_' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return fmt::format("{}, {}, {} microbatches", one.model, device, one.microbatches);
}

// Our plans of one cell, beside what was published.
class Case {
 public:
  Case(const Sosp24Options& options, const Planner& planner, Sosp24Emulation published)
      : options_(options),
        planner_(planner),
        waiting_watts_(planner.pipeline().total_blocking_power_watts),
        cell_(std::move(published)) {}

  Result<void> FillCell();
  Result<void> FillEnvPipePolicy();
  Result<void> PlanForStragglers(std::span<const int> slowdowns);
  void FillRow(const Situation& situation, Sosp24Straggler* row) const;

  Sosp24Emulation& cell() { return cell_; }

 private:
  Result<Plan> MakePlan(double seconds, double effort) {
    Result<Plan> plan = planner_.PlanFor(seconds, {.effort = effort});
    if (plan) plans_.push_back(*plan);
    return plan;
  }
  double HeadlineEffort() const { return kHeadlineEffort * options_.effort; }
  double BoundJoules(double seconds) const {
    const Frontier& frontier = planner_.frontier();
    return frontier.EnergyAt(std::max(seconds, frontier.fastest_seconds));
  }
  // The protocol's time where a plan can realise it, else the least that one can.
  double OwnSeconds() const {
    return std::max(cell_.published_seconds, planner_.frontier().fastest_seconds);
  }
  Result<void> FillAtPublished();
  const Plan& BestPlanWithin(double seconds) const;
  double OursUntil(double seconds) const {
    return EnergyUntil(BestPlanWithin(seconds), seconds, waiting_watts_);
  }

  const Sosp24Options& options_;
  const Planner& planner_;
  double waiting_watts_;
  Sosp24Emulation cell_;
  std::vector<Plan> plans_;  // Ours, as made so far.
  double own_joules_ = 0;    // Of our plan at OwnSeconds().
};

Result<void> Case::FillCell() {
  const Plan& baseline = planner_.baseline();
  cell_.max_clock_seconds = baseline.iteration_time_seconds;
  cell_.fastest_seconds = planner_.frontier().fastest_seconds;
  cell_.breakpoints = static_cast<int>(planner_.frontier().points.size());
  cell_.bound_saving_percent =
      SavingPercent(baseline.energy_joules, BoundJoules(cell_.max_clock_seconds));

  const double before = options_.cpu_seconds ? options_.cpu_seconds() : 0;
  Result<Plan> at_max_clock = MakePlan(cell_.max_clock_seconds, HeadlineEffort());
  if (!at_max_clock) return tl::unexpected(at_max_clock.error());
  if (options_.cpu_seconds) cell_.plan_cpu_seconds = options_.cpu_seconds() - before;
  cell_.at_max_clock = *std::move(at_max_clock);
  cell_.at_max_clock_saving_percent = cell_.at_max_clock.saving_percent;
  return FillAtPublished();
}

Result<void> Case::FillAtPublished() {
  Plan own = cell_.at_max_clock;
  if (OwnSeconds() != cell_.max_clock_seconds) {
    Result<Plan> made = MakePlan(OwnSeconds(), HeadlineEffort());
    if (!made) return tl::unexpected(made.error());
    own = *std::move(made);
  }
  own_joules_ = EnergyUntil(own, OwnSeconds(), waiting_watts_);
  if (OwnSeconds() > cell_.published_seconds) return {};
  cell_.at_published_saving_percent = SavingPercent(cell_.published_baseline_joules, own_joules_);
  cell_.bound_at_published_saving_percent =
      SavingPercent(cell_.published_baseline_joules, BoundJoules(cell_.published_seconds));
  cell_.at_published = std::move(own);
  return {};
}

Result<void> Case::FillEnvPipePolicy() {
  PolicySpec spec;
  spec.name = "envpipe";
  const auto policy = MakePolicy(spec, planner_);
  if (!policy) return tl::unexpected(policy.error());
  const Result<Plan> plan = (*policy)->PlanFor(cell_.max_clock_seconds);
  if (!plan) return tl::unexpected(plan.error());
  cell_.envpipe_seconds = plan->iteration_time_seconds;
  cell_.envpipe_joules = plan->energy_joules;
  return {};
}

Result<void> Case::PlanForStragglers(std::span<const int> slowdowns) {
  const Frontier& frontier = planner_.frontier();
  std::vector<std::pair<double, double>> wanted;  // Seconds and effort.
  for (const int percent : slowdowns) {
    const bool headline = percent == kFigure7Slowdown;
    wanted.emplace_back(Factor(percent) * cell_.published_seconds,
                        headline ? HeadlineEffort() : kCurveEffort * options_.effort);
    if (headline) wanted.emplace_back(Factor(percent) * cell_.max_clock_seconds, HeadlineEffort());
  }
  bool at_tstar = false;
  for (const auto& [seconds, effort] : wanted) {
    if (seconds < frontier.fastest_seconds) continue;
    // Beyond T* the plan is always the same.
    if (seconds >= frontier.tstar_seconds && std::exchange(at_tstar, true)) continue;
    const Result<Plan> plan = MakePlan(seconds, effort);
    if (!plan) return tl::unexpected(plan.error());
  }
  return {};
}

const Plan& Case::BestPlanWithin(double seconds) const {
  const Plan* best = nullptr;
  const auto effective = [&](const Plan& plan) {
    return plan.energy_joules - waiting_watts_ * plan.iteration_time_seconds;
  };
  for (const Plan& plan : plans_) {
    if (plan.iteration_time_seconds > seconds) continue;
    if (best == nullptr || effective(plan) < effective(*best)) best = &plan;
  }
  if (best != nullptr) return *best;
  // Below T_min: the fastest that there is.
  return *std::min_element(plans_.begin(), plans_.end(), [](const Plan& a, const Plan& b) {
    return a.iteration_time_seconds < b.iteration_time_seconds;
  });
}

// T may be a time that no plan can realise (the published planner rounds times
// down). The baseline takes it all the same, by the protocol, so every system is
// held to the same s T: the others' plans end by s T and wait until then, and the
// straggling pipeline's energy is s times that of the fastest plan where the one
// for T does not exist. Beside it stands, for Figure 7, the same with the
// all-maximum-clock time as T, which is no fiction.
void Case::FillRow(const Situation& situation, Sosp24Straggler* row) const {
  const double ours = OursUntil(situation.until());
  row->ours_pipeline_percent = SavingPercent(situation.BaselineUntil(), ours);
  row->ours_job_percent = situation.JobPercent(ours, own_joules_);
  row->bound_job_percent =
      situation.JobPercent(BoundJoules(situation.until()), BoundJoules(situation.seconds));

  if (situation.slowdown != Factor(kFigure7Slowdown)) return;
  Situation realisable = situation;
  realisable.seconds = cell_.max_clock_seconds;
  realisable.baseline_joules = planner_.baseline().energy_joules;
  row->ours_max_clock_job_percent =
      realisable.JobPercent(OursUntil(realisable.until()),
                            EnergyUntil(cell_.at_max_clock, realisable.seconds, waiting_watts_));
  row->bound_max_clock_job_percent =
      realisable.JobPercent(BoundJoules(realisable.until()), BoundJoules(realisable.seconds));
}

}  // namespace

std::vector<int> FigureSlowdowns() {
  std::vector<int> slowdowns(kLastSlowdown - kFirstSlowdown + 1);
  std::iota(slowdowns.begin(), slowdowns.end(), kFirstSlowdown);
  return slowdowns;
}

Result<void> EvaluateEmulation(const EmulationCase& one, const EnvPipeResults& envpipe,
                               const Sosp24Options& options, std::span<const int> planned_slowdowns,
                               Sosp24Evaluation* evaluation) {
  if (kGlobalBatch % one.microbatches != 0) {
    evaluation->missing.push_back(fmt::format(
        "Emulation of {}: {} microbatches in all are no whole number of pipelines, so it is left "
        "out.",
        Shown(one), kGlobalBatch));
    return {};
  }
  if (options.progress) options.progress("Table 6: " + Shown(one));
  auto points = ReadFrontier(one.frontier);
  if (!points) return tl::unexpected(points.error());
  const Result<Profile> profile = ReadStageProfile(one.profile);
  if (!profile) return tl::unexpected(profile.error());
  auto pipeline = PipelineFor(*profile, one.microbatches, kTensorParallel,
                              BlockingPowerWatts(one.device).value_or(0));
  if (!pipeline) return tl::unexpected(pipeline.error());
  const double watts = pipeline->total_blocking_power_watts;
  const PublishedFrontier frontier(*std::move(points), watts);
  Sosp24Emulation cell = PublishedCell(one, *pipeline, frontier, envpipe);
  if (cell.envpipe_published_joules == 0) {
    evaluation->missing.push_back(fmt::format(
        "Emulation of {}: no row of EnvPipe in emulation/envpipe_result.csv, so its published "
        "figures are left out.",
        Shown(one)));
  }

  const double before = options.cpu_seconds ? options.cpu_seconds() : 0;
  const Result<Planner> planner = Planner::Create(*std::move(pipeline), {});
  if (!planner) {
    return MakeError(planner.error().code,
                     fmt::format("{}: {}", one.profile.string(), planner.error().message));
  }
  if (options.cpu_seconds) cell.frontier_cpu_seconds = options.cpu_seconds() - before;
  const Plan& baseline = planner->baseline();
  if (baseline.iteration_time_seconds >= frontier.fastest_seconds()) {
    const Sosp24Point& best = frontier.LeastEffective(baseline.iteration_time_seconds);
    const double wait = baseline.iteration_time_seconds - best.iteration_time_seconds;
    cell.published_at_max_clock_saving_percent =
        SavingPercent(baseline.energy_joules, best.energy_joules + watts * wait);
  }
  Case running(options, *planner, std::move(cell));
  if (auto filled = running.FillCell(); !filled) return filled;
  if (const auto filled = running.FillEnvPipePolicy(); !filled) {
    evaluation->missing.push_back(fmt::format("Emulation of {}: EnvPipe's policy has no plan: {}.",
                                              Shown(one), filled.error().message));
  }
  if (options.progress) options.progress("Figures 7 and 8: " + Shown(one));
  if (auto planned = running.PlanForStragglers(planned_slowdowns); !planned) return planned;
  for (const int percent : FigureSlowdowns()) {
    const Situation situation = PublishedSituation(running.cell(), watts, Factor(percent));
    Sosp24Straggler row = PublishedRow(running.cell(), frontier, situation);
    running.FillRow(situation, &row);
    evaluation->stragglers.push_back(std::move(row));
  }
  evaluation->emulations.push_back(std::move(running.cell()));
  return {};
}

}  // namespace perseus::sosp24
