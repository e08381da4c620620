// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/questions/policy_runs.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <utility>

#include "cli/planning/summary.h"
#include "common/file.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/work.h"

namespace perseus::cli {
namespace {

// Every policy, and perseus at every granularity, in the order of the table.
std::vector<PolicySpec> AllPolicies(const PlanConstraints& constraints, double effort) {
  std::vector<PolicySpec> specs;
  for (const std::string_view name : PolicyNames()) {
    PolicySpec spec;
    spec.name = name;
    spec.effort = effort;
    if (name != kPerseus) {
      specs.push_back(std::move(spec));
      continue;
    }
    spec.constraints = constraints;
    for (const Granularity granularity : {Granularity::kStage, Granularity::kStageType,
                                          Granularity::kPhase, Granularity::kComputation}) {
      spec.constraints.granularity = granularity;
      specs.push_back(spec);
    }
  }
  return specs;
}

// A plan knows how long its microbatches are; the job that replays it may say otherwise.
void NoteOtherWork(const std::string& path, const PlanDocument& plan,
                   const CostedPipeline& pipeline, std::vector<std::string>* notes) {
  constexpr double kRounding = 1e-9;
  const Work work = WorkOf(plan);
  bool same = true;
  bool alike = true;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const Computation& each = pipeline.dag.computations[i];
    const CostTable& table = pipeline.TableOf(i);
    const auto differs = [&](double factor, double replayed) {
      alike = alike && replayed == 1;
      return std::abs(factor - replayed) > kRounding * replayed;
    };
    if (differs(work.FactorOf(each.id), table.work)) same = false;
    if (each.fused && differs(work.FactorOf(*each.fused), table.fused_work)) same = false;
  }
  if (same) return;
  const std::string name = std::filesystem::path(path).filename().string();
  if (alike) {
    notes->push_back(fmt::format(
        "{} was made for microbatches that differ, and is replayed as if they were alike; give the "
        "work table that it was made with (--work).",
        name));
  } else {
    notes->push_back(fmt::format(
        "{} was made for {}: its clocks are replayed with the work of "
        "this job.",
        name, work.empty() ? "microbatches that are alike" : "microbatches of other lengths"));
  }
}

}  // namespace

Result<std::unique_ptr<Policy>> ReadPolicy(const std::string& path, const Planner& planner,
                                           const Profile& profile,
                                           std::optional<Conditions>* conditions,
                                           std::vector<std::string>* notes) {
  if (path.ends_with(".json")) {
    const Result<PlanDocument> plan = ReadPlan(path);
    if (!plan) return tl::unexpected(plan.error());
    *conditions = plan->conditions;
    Result<std::unique_ptr<Policy>> policy = MakePolicyFromPlan(*plan, planner);
    if (!policy && policy.error().message.find(path) == std::string::npos) {
      policy.error().message = fmt::format("{}: {}", path, policy.error().message);
    }
    if (policy && plan->profile_sha256 != profile.sha256) {
      notes->push_back(
          fmt::format("{} was made from another profile ({}): its clocks are replayed at the times "
                      "and energies "
                      "of {}.",
                      std::filesystem::path(path).filename().string(), plan->profile_source,
                      std::filesystem::path(profile.source).filename().string()));
    }
    if (policy) NoteOtherWork(path, *plan, planner.pipeline(), notes);
    return policy;
  }
  if (!path.ends_with(".py")) {
    return InvalidInput(fmt::format(
        "--plan: expected a plan.json, or a Python plan of Zeus or lowtime (.py), got '{}'", path));
  }
  const Result<std::string> text = ReadWholeFile(path, kMaxZeusPlanFileBytes);
  if (!text) return tl::unexpected(text.error());
  return MakePolicyFromZeusPlan(*text, path, planner);
}

std::string LabelOf(const PolicySpec& spec) {
  if (spec.constraints.granularity == Granularity::kComputation) return spec.name;
  return fmt::format("{} ({})", spec.name, GranularityName(spec.constraints.granularity));
}

std::string SummaryOf(const PolicySpec& spec) {
  switch (spec.constraints.granularity) {
    case Granularity::kComputation:
      break;
    case Granularity::kPhase:
      return "As perseus, with one clock for a stage, type and phase (warm-up, steady, cool-down).";
    case Granularity::kStageType:
      return "As perseus, with one clock for a stage and type of computation.";
    case Granularity::kStage:
      return "As perseus, with one clock for a stage.";
  }
  return std::string(PolicySummary(spec.name));
}

Result<Emulation> Scenario::Run(const std::string& label, const Policy& policy) const {
  progress_->SetWhat(label);
  return Emulate(planner_, policy, spec_, progress_->Function());
}

Result<Emulation> Scenario::Run(const PolicySpec& spec) const {
  progress_->SetWhat(LabelOf(spec));
  const Result<std::unique_ptr<Policy>> policy = MakePolicy(spec, planner_);
  if (!policy) return tl::unexpected(policy.error());
  return Run(LabelOf(spec), **policy);
}

PolicyRow MakeRow(std::string label, std::string_view says, const Emulation& emulation,
                  const Emulation& baseline) {
  PolicyRow row;
  row.policy = std::move(label);
  row.summary = says;
  row.time_seconds = emulation.time_seconds;
  row.energy = emulation.energy;
  row.slowdown_percent = PercentOver(emulation.time_seconds, baseline.time_seconds);
  row.saving_percent =
      PercentSaved(emulation.energy.total_joules(), baseline.energy.total_joules());
  row.average_watts = emulation.average_watts;
  row.peak_watts = emulation.peak_watts;
  row.shape = emulation.power_shape;
  return row;
}

Result<std::vector<PolicyRow>> Compare(const Scenario& scenario, const PlanConstraints& constraints,
                                       double effort, const EmulationSummary& summary) {
  std::vector<PolicyRow> rows;
  bool has_chosen = false;
  for (const PolicySpec& spec : AllPolicies(constraints, effort)) {
    const std::string label = LabelOf(spec);
    const std::string says = SummaryOf(spec);
    const bool is_chosen = spec.name == summary.policy && label == summary.label;
    has_chosen = has_chosen || is_chosen;
    if (is_chosen || spec.name == kMaxClocks) {
      rows.push_back(MakeRow(label, says, is_chosen ? *summary.emulation : *summary.baseline,
                             *summary.baseline));
      continue;
    }
    const Result<Emulation> emulation = scenario.Run(spec);
    if (emulation) {
      rows.push_back(MakeRow(label, says, *emulation, *summary.baseline));
      continue;
    }
    const ErrorCode code = emulation.error().code;
    if (code != ErrorCode::kInfeasible && code != ErrorCode::kInvalidInput) {
      return tl::unexpected(emulation.error());
    }
    PolicyRow row;
    row.policy = label;
    row.summary = says;
    row.why_not = emulation.error().message;
    rows.push_back(std::move(row));
  }
  if (!has_chosen) {
    rows.push_back(
        MakeRow(summary.label, summary.policy_summary, *summary.emulation, *summary.baseline));
  }
  return rows;
}

}  // namespace perseus::cli
