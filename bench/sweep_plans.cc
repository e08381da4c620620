// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perseus/profile.h"
#include "profile/rows.h"

namespace perseus::measure {
namespace {

// Of all ranks, as a server does: a rank that does not know waiting by clock has that of the
// others.
std::string WaitingRows(const SimulatedResult& result) {
  std::map<int, std::vector<double>> all;
  for (const SimulatedRank& rank : result.ranks) {
    for (const WaitingRow& row : rank.waiting) all[row.mhz].push_back(row.power.watts);
  }
  std::string csv;
  for (std::size_t stage = 0; stage < result.ranks.size(); ++stage) {
    std::map<int, std::vector<double>> own;
    for (const WaitingRow& row : result.ranks[stage].waiting) own[row.mhz] = {row.power.watts};
    for (auto& [mhz, watts] : own.empty() ? all : own) {
      std::vector<double> sorted = watts;
      std::sort(sorted.begin(), sorted.end());
      csv += fmt::format("{},blocking,{},1,{},,,\n", stage, mhz, sorted[sorted.size() / 2]);
    }
  }
  return csv;
}

// As the server writes it.
std::string ErrorSources(const Estimate& row) {
  const double time = row.seconds_std / row.seconds;
  const double energy = row.joules_std / row.joules;
  OptionErrors errors;
  errors.time_std = time;
  errors.power_std = std::sqrt(std::max(0.0, energy * energy - time * time));
  errors.time_sources = row.time_errors;
  errors.power_sources = row.power_errors;
  return profile::FormatErrorSources(errors);
}

Result<Planner> PlannerOf(const Profile& profile, const SimulatedPipeline& pipeline,
                          std::vector<double> blocking) {
  Result<PipelineDag> dag = DagOf(pipeline);
  if (!dag) return tl::unexpected(dag.error());
  CostSpec costs;
  costs.blocking_power_watts = std::move(blocking);
  Result<CostedPipeline> costed = CostPipeline(profile, *std::move(dag), costs);
  if (!costed) return tl::unexpected(costed.error());
  return Planner::Create(*std::move(costed), {});
}

// The truth, scaled.
Profile ScaledTruth(const SimulatedPipeline& pipeline) {
  Profile profile = pipeline.truth;
  for (OptionTable& table : profile.tables) {
    for (Option& option : table.options) {
      option.time_seconds *= pipeline.scale;
      option.energy_joules *= pipeline.scale;
    }
  }
  if (pipeline.waiting_share == 0) return profile;
  profile.waiting.clear();
  for (const Knob& knob : profile.knobs) {
    profile.waiting.push_back(
        {.stage = {}, .knob = knob, .watts = WaitingWatts(pipeline, knob.number)});
  }
  return profile;
}

}  // namespace

std::string SweptCsv(const SimulatedResult& result) {
  std::string csv = "stage,instruction,frequency,time,energy,time_std,energy_std,error_sources\n";
  for (const SimulatedRank& rank : result.ranks) {
    for (const Estimate& row : rank.rows) {
      csv += fmt::format("{},{},{},{},{},{},{},{}\n", row.kind.stage,
                         ComputationTypeName(row.kind.type), row.mhz, row.seconds, row.joules,
                         row.seconds_std, row.joules_std, ErrorSources(row));
    }
  }
  return csv + WaitingRows(result);
}

std::vector<double> SweptBlocking(const SimulatedResult& result) {
  std::vector<double> known;
  for (const SimulatedRank& rank : result.ranks) {
    if (rank.blocking) known.push_back(rank.blocking->watts);
  }
  std::sort(known.begin(), known.end());
  const double median = known.empty() ? 0 : known[(known.size() - 1) / 2];
  std::vector<double> blocking;
  for (const SimulatedRank& rank : result.ranks) {
    blocking.push_back(rank.blocking ? rank.blocking->watts : median);
  }
  return blocking;
}

TrueTable::TrueTable(SimulatedPipeline pipeline, Planner planner, Plan best, double effort)
    : pipeline_(std::move(pipeline)),
      planner_(std::move(planner)),
      best_(std::move(best)),
      effort_(effort) {}

Result<TrueTable> TrueTable::Create(const SimulatedPipeline& pipeline, double effort) {
  Result<Planner> planner = PlannerOf(ScaledTruth(pipeline), pipeline, {pipeline.blocking_watts});
  if (!planner) return tl::unexpected(planner.error());
  Result<Plan> best = planner->PlanFor(planner->baseline().iteration_time_seconds,
                                       {.constraints = {}, .effort = effort});
  if (!best) return tl::unexpected(best.error());
  return TrueTable(pipeline, *std::move(planner), *std::move(best), effort);
}

Result<JudgedPlan> TrueTable::Judge(const SimulatedResult& result) const {
  const Result<Profile> recovered = ParseProfile(SweptCsv(result), "recovered");
  if (!recovered) return tl::unexpected(recovered.error());
  const Result<Planner> planner = PlannerOf(*recovered, pipeline_, SweptBlocking(result));
  if (!planner) return tl::unexpected(planner.error());
  const Result<Plan> plan = planner->PlanFor(planner->baseline().iteration_time_seconds,
                                             {.constraints = {}, .effort = effort_});
  if (!plan) return tl::unexpected(plan.error());
  std::vector<CostOption> options;
  for (int i = 0; i < planner->pipeline().dag.size(); ++i) {
    const auto knob = static_cast<std::size_t>(plan->options[static_cast<std::size_t>(i)].knob);
    const double mhz = planner->pipeline().knobs[knob].number;
    for (const CostOption& option : planner_.pipeline().TableOf(i).all_options) {
      const auto other = static_cast<std::size_t>(option.knob);
      if (planner_.pipeline().knobs[other].number == mhz) options.push_back(option);
    }
  }
  Result<Plan> achieved = planner_.Evaluate(std::move(options), plan->waiting);
  if (!achieved) return tl::unexpected(achieved.error());
  JudgedPlan judged;
  judged.predicted_percent = plan->saving_percent;
  judged.late_percent =
      100 * (achieved->iteration_time_seconds / planner_.baseline().iteration_time_seconds - 1);
  judged.achieved = *std::move(achieved);
  return judged;
}

}  // namespace perseus::measure
