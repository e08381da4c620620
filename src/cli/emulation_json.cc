// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/emulation_answers.h"
#include "cli/emulation_summary.h"
#include "cli/plan_summary.h"
#include "common/json_text.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

Json SplitToJson(const EnergySplit& split) {
  return {{"useful_j", split.useful_joules},
          {"intrinsic_bloat_j", split.intrinsic_bloat_joules},
          {"extrinsic_bloat_j", split.extrinsic_bloat_joules},
          {"blocking_j", split.blocking_joules}};
}

// The figures of a whole emulated run.
Json EmulationFigures(const Emulation& emulation) {
  Json json = {{"time_s", emulation.time_seconds}, {"energy_j", emulation.energy.total_joules()}};
  json.update(SplitToJson(emulation.energy));
  json.update(Json{{"average_w", emulation.average_watts},
                   {"peak_w", emulation.peak_watts},
                   {"gpu_average_w", emulation.gpu_average_watts},
                   {"gpu_peak_w", emulation.gpu_peak_watts},
                   {"power_interval_s", emulation.power.interval_seconds},
                   {"clock_calls", emulation.clock_calls},
                   {"late_computations", emulation.late_computations},
                   {"stragglers", emulation.stragglers},
                   {"replans", emulation.replans}});
  return json;
}

Json IterationsToJson(const Emulation& emulation) {
  Json rows = Json::array();
  for (const IterationRecord& each : emulation.iterations) {
    Json row = {{"start_s", each.start_seconds},
                {"time_s", each.time_seconds},
                {"target_s", each.target_seconds},
                {"straggling_pipelines", each.straggling_pipelines}};
    row.update(SplitToJson(each.energy));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// The figures of a row that was refused mean nothing.
Json FiguresOrNull(Json figures, const std::string& why_not) {
  if (!why_not.empty()) {
    for (auto& [name, value] : figures.items()) value = nullptr;
  }
  return figures;
}

Json PoliciesToJson(const EmulationSummary& summary) {
  Json rows = Json::array();
  for (const PolicyRow& each : summary.policies) {
    Json row = {
        {"policy", each.policy}, {"summary", each.summary}, {"why_not", TextOrNull(each.why_not)}};
    Json figures = {{"time_s", each.time_seconds}, {"energy_j", each.energy.total_joules()}};
    figures.update(SplitToJson(each.energy));
    figures.update(Json{{"slowdown_percent", each.slowdown_percent},
                        {"saving_percent", each.saving_percent},
                        {"average_w", each.average_watts},
                        {"peak_w", each.peak_watts}});
    row.update(FiguresOrNull(std::move(figures), each.why_not));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json PartitionsToJson(const EmulationSummary& summary) {
  Json rows = Json::array();
  for (const PartitionResult& each : summary.partitions) {
    Json row = {
        {"name", each.name}, {"why_not", TextOrNull(each.why_not)}, {"layers", each.layers}};
    row.update(FiguresOrNull({{"imbalance", each.imbalance},
                              {"baseline_time_s", each.baseline_seconds},
                              {"baseline_energy_j", each.baseline_joules},
                              {"iteration_time_s", each.iteration_time_seconds},
                              {"energy_j", each.energy_joules},
                              {"saving_percent", each.saving_percent}},
                             each.why_not));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json SweepToJson(const EmulationSummary& summary) {
  Json rows = Json::array();
  for (const SweepRow& each : summary.sweep) {
    Json row = {{"schedule", each.schedule.name},
                {"stages", each.schedule.num_stages},
                {"virtual_stages", each.schedule.virtual_stages},
                {"microbatches", each.schedule.num_microbatches},
                {"why_not", TextOrNull(each.why_not)}};
    row.update(FiguresOrNull({{"baseline_time_s", each.baseline_seconds},
                              {"baseline_energy_j", each.baseline_joules},
                              {"bubble_percent", each.bubble_percent},
                              {"iteration_time_s", each.iteration_time_seconds},
                              {"energy_j", each.energy_joules},
                              {"lower_bound_j", each.lower_bound_joules},
                              {"saving_percent", each.saving_percent},
                              {"time_per_microbatch_s", each.seconds_per_microbatch},
                              {"energy_per_microbatch_j", each.joules_per_microbatch}},
                             each.why_not));
    rows.push_back(std::move(row));
  }
  return rows;
}

// A plan that answers a question; energy and power are of the whole job.
Json AnswerFigures(const EmulationSummary& summary, const PlanAnswer& answer) {
  const Plan& plan = answer.plan;
  return {{"iteration_time_s", plan.iteration_time_seconds},
          {"energy_j", plan.energy_joules * summary.spec.pipelines},
          {"average_w", plan.average_power_watts * summary.spec.pipelines},
          {"saving_percent", plan.saving_percent},
          {"slowdown_percent", PercentOver(plan.iteration_time_seconds,
                                           summary.max_clocks_plan->iteration_time_seconds)},
          {"wait_s", answer.wait_seconds},
          {"at_s", PlanSeconds(answer)}};
}

Json PowerBudgetToJson(const EmulationSummary& summary) {
  if (!summary.power_budget) return nullptr;
  Json json = {{"budget_w", summary.power_budget->budget_watts}};
  json.update(AnswerFigures(summary, summary.power_budget->answer));
  return json;
}

Json DeadlineToJson(const EmulationSummary& summary) {
  if (!summary.deadline) return nullptr;
  const DeadlineAnswer& answer = *summary.deadline;
  const auto iterations = static_cast<double>(answer.iterations);
  Json json = {{"deadline_s", answer.deadline_seconds}, {"iterations", answer.iterations}};
  json.update(AnswerFigures(summary, answer.answer));
  json["run_time_s"] = answer.answer.plan.iteration_time_seconds * iterations;
  json["run_energy_j"] = answer.answer.plan.energy_joules * summary.spec.pipelines * iterations;
  return json;
}

Json RunToJson(const EmulationSummary& summary) {
  if (!summary.run_cost) return nullptr;
  const auto figures = [&](const RunCost& cost) {
    return Json{
        {"gpu_hours", cost.gpu_hours},
        {"energy_mwh", cost.mwh},
        {"price", summary.run.price_per_kwh < 0 ? Json(nullptr) : Json(cost.price)},
        {"carbon_kg", summary.run.carbon_g_per_kwh < 0 ? Json(nullptr) : Json(cost.carbon_kg)}};
  };
  return {{"currency", TextOrNull(summary.currency)},
          {"max_clocks", figures(*summary.run_at_max_clocks)},
          {"policy", figures(*summary.run_cost)}};
}

}  // namespace

std::string FormatEmulationJson(const EmulationSummary& summary) {
  const PipelineDag& dag = summary.pipeline->dag;
  const Emulation& emulation = *summary.emulation;
  const Emulation& baseline = *summary.max_clocks;
  Json json = {{"schema_version", 1},
               {"profile",
                {{"file", std::filesystem::path(summary.profile->source).filename().string()},
                 {"sha256", summary.profile->sha256}}},
               {"schedule", dag.schedule_name},
               {"stages", dag.num_stages},
               {"virtual_stages", summary.virtual_stages},
               {"microbatches", dag.num_microbatches},
               {"tensor_parallel", summary.pipeline->tensor_parallel},
               {"pipelines", summary.spec.pipelines},
               {"gpus", emulation.gpus},
               {"policy", summary.policy},
               {"seed", summary.spec.seed},
               {"target_s", summary.spec.target_seconds}};
  json.update(EmulationFigures(emulation));
  json["baseline"] = EmulationFigures(baseline);
  json["saving_percent"] =
      PercentSaved(emulation.energy.total_joules(), baseline.energy.total_joules());
  json["slowdown_percent"] = PercentOver(emulation.time_seconds, baseline.time_seconds);
  json["iterations"] = IterationsToJson(emulation);
  json["power_w"] = emulation.power.watts;
  json["policies"] = PoliciesToJson(summary);
  json["partitions"] = PartitionsToJson(summary);
  json["sweep"] = SweepToJson(summary);
  json["power_budget"] = PowerBudgetToJson(summary);
  json["deadline"] = DeadlineToJson(summary);
  json["run"] = RunToJson(summary);
  json["notes"] = summary.notes;
  json["files"] = summary.files;
  return FormatByLine(json);
}

}  // namespace perseus::cli
