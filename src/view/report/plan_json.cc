// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/plan_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/plan_json.h"
#include "model/plan_figures.h"
#include "perseus/report.h"
#include "report/check_input.h"
#include "report/text.h"

namespace perseus::report {
namespace {

using Json = nlohmann::ordered_json;

template <typename Of>
void AddFigures(const Of& of, bool required, Json* json) {
  for (const model::Figure<Of>& figure : model::Figures<Of>()) {
    if (figure.required != required) continue;
    figure.On(of, [&](auto value) { (*json)[std::string(figure.name)] = value; });
  }
}

// Those that every plan.json has come first.
template <typename Of>
Json FiguresJson(const Of& of) {
  Json json;
  AddFigures<Of>(of, true, &json);
  AddFigures<Of>(of, false, &json);
  return json;
}

Json RowFigures(const ReportRow& row) {
  Json json = FiguresJson<PlanFigures>(row);
  if (row.shared_knobs) json[std::string(model::kSharedKnobGroup)] = FiguresJson(*row.shared_knobs);
  if (row.saving_interval) {
    json[std::string(model::kSavingIntervalGroup)] = FiguresJson(*row.saving_interval);
  }
  if (row.default_clocks)
    json[std::string(model::kDefaultClocksGroup)] = FiguresJson(*row.default_clocks);
  if (row.discrete_bound) {
    json[std::string(model::kDiscreteBoundGroup)] = FiguresJson(*row.discrete_bound);
  }
  return json;
}

// The input, and today's figures.
Json InputToJson(const ReportInput& input) {
  const Profile& profile = *input.profile;
  const CostedPipeline& pipeline = *input.pipeline;
  const PipelineDag& dag = pipeline.dag;
  const Plan& baseline = *input.baseline;
  const OptionCounts counts = CountOptions(pipeline);
  Json json = {{"schema_version", 1},
               {"schedule", dag.schedule_name},
               {"stages", dag.num_stages},
               {"virtual_stages", dag.num_stages / std::max(dag.num_ranks, 1)},
               {"microbatches", dag.num_microbatches},
               {"computations", dag.size()},
               {"tensor_parallel", pipeline.tensor_parallel},
               {"blocking_power_w", pipeline.total_blocking_power_watts}};
  json["profile"] = {{"file", FileName(profile.source)},
                     {"sha256", profile.sha256},
                     {"rows", profile.rows},
                     {"stages", profile.num_stages},
                     {"knobs", profile.knobs.size()},
                     {"options_kept", counts.kept},
                     {"options_dominated", counts.dominated}};
  json["profile"]["split_ratio"] = counts.split ? Json(input.split_ratio) : Json(nullptr);
  if (!pipeline.modelled.empty()) json["profile"]["modelled"] = pipeline.modelled;
  json["baseline"] = {{"iteration_time_s", baseline.iteration_time_seconds},
                      {"energy_j", baseline.energy_joules},
                      {"average_power_w", baseline.average_power_watts}};
  return json;
}

void AddConditions(const ReportInput& input, Json* json) {
  (*json)["conditions"] = Json::parse(formats::ConditionsJson(*input.conditions));
  (*json)["expected"] = Json::parse(formats::ExpectedJson(input.expected));
  Json paper = FiguresOfPlan(*input.paper_plan);
  paper["expected"] = Json::parse(formats::ExpectedJson(input.expected_of_paper_plan));
  (*json)["paper_plan"] = std::move(paper);
  (*json)["bound"] = {{"saving_percent", input.bound_percent}, {"proven", input.bound_is_proven}};
  (*json)["price_curve"] = Json::array();
  for (const auto& [changes, saving] : input.price_curve) {
    (*json)["price_curve"].push_back({{"changes", changes}, {"saving_percent", saving}});
  }
}

std::string Indented(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

OptionCounts CountOptions(const CostedPipeline& pipeline) {
  OptionCounts counts;
  for (const CostTable& table : pipeline.tables) {
    if (table.same_kind_as >= 0) continue;  // The same options, of other work.
    counts.kept += static_cast<int>(table.options.size());
    counts.dominated += table.dominated;
    counts.split = counts.split || table.split;
  }
  return counts;
}

Json FiguresOfPlan(const Plan& plan) { return RowFigures(MakeReportRow("", plan)); }

}  // namespace perseus::report

namespace perseus {
inline namespace v0 {

using Json = nlohmann::ordered_json;

Result<std::string> FormatPlanSummaryJson(const ReportInput& input) {
  if (auto good = report::CheckInput(input, true); !good) return tl::unexpected(good.error());
  const Frontier& frontier = *input.frontier;
  Json json = report::InputToJson(input);
  json["at"] = input.at;
  json.update(report::FiguresOfPlan(*input.chosen));
  json["frontier"] = {{"breakpoints", frontier.points.size()},
                      {"t_min_s", frontier.fastest_seconds},
                      {"t_min_energy_s", frontier.min_energy_seconds},
                      {"t_star_s", frontier.tstar_seconds},
                      {"certified_error", frontier.certified_error}};
  json["points"] = Json::array();
  for (const ReportRow& each : input.rows) {
    Json row = {{"name", each.name},
                {"chosen", each.chosen},
                {"feasible", each.feasible},
                {"requested_time_s", each.requested_time_seconds}};
    if (each.feasible) row.update(report::RowFigures(each));
    json["points"].push_back(std::move(row));
  }
  json["constraints"] = Json::array();
  for (const ConstraintPrice& price : input.prices) {
    json["constraints"].push_back({{"constraint", price.constraint},
                                   {"extra_energy_percent", price.energy_percent},
                                   {"extra_time_percent", price.time_percent}});
  }
  if (input.conditions) report::AddConditions(input, &json);
  const double pipelines = input.data_parallel;
  json["job"] = {{"pipelines", input.data_parallel},
                 {"baseline_energy_j", pipelines * input.baseline->energy_joules},
                 {"energy_j", pipelines * input.chosen->energy_joules}};
  json["notes"] = Json::parse(formats::NotesJson(input.notes));
  json["remarks"] = input.remarks;
  json["files"] = input.files;
  return report::Indented(json);
}

Result<std::string> FormatFrontierJson(const ReportInput& input) {
  if (auto good = report::CheckInput(input, false); !good) return tl::unexpected(good.error());
  const Frontier& frontier = *input.frontier;
  Json json = report::InputToJson(input);
  json["t_min_s"] = frontier.fastest_seconds;
  json["t_min_energy_s"] = frontier.min_energy_seconds;
  json["t_star_s"] = frontier.tstar_seconds;
  json["certified_error"] = frontier.fitted ? Json(nullptr) : Json(frontier.certified_error);
  json["cost_curve"] = frontier.fitted ? "exponential" : "measured";
  json["frontier"] = Json::array();
  for (const FrontierPoint& point : frontier.points) {
    json["frontier"].push_back({{"iteration_time_s", point.iteration_time_seconds},
                                {"energy_j", point.energy_joules},
                                {"slope_w", point.slope_watts}});
  }
  json["notes"] = Json::parse(formats::NotesJson(input.notes));
  json["remarks"] = input.remarks;
  return report::Indented(json);
}

}  // namespace v0
}  // namespace perseus
