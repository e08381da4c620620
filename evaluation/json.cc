// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "report/plan_json.h"

namespace perseus::sosp24 {
namespace {

using report::FiguresOfPlan;

using Json = nlohmann::ordered_json;

// Null where a figure is missing.
Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
Json IfPositive(double value) { return value > 0 ? Json(value) : Json(nullptr); }
Json IfMeasured(double value) { return value >= 0 ? Json(value) : Json(nullptr); }

Json ToJson(const Sosp24Point& point) {
  return {{"iteration_time_s", point.iteration_time_seconds}, {"energy_j", point.energy_joules}};
}

Json ToJson(const std::vector<Sosp24Point>& points) {
  Json rows = Json::array();
  for (const Sosp24Point& point : points) rows.push_back(ToJson(point));
  return rows;
}

Json ToJson(const Sosp24Emulation& each) {
  return {{"model", each.model},
          {"device", each.device},
          {"microbatches", each.microbatches},
          {"pipelines", each.pipelines},
          {"gpus", each.gpus},
          {"published_time_s", each.published_seconds},
          {"published_baseline_j", each.published_baseline_joules},
          {"published_j", each.published_joules},
          {"published_saving_percent", each.published_saving_percent},
          {"published_at_max_clock_saving_percent", each.published_at_max_clock_saving_percent},
          {"max_clock_time_s", each.max_clock_seconds},
          {"fastest_time_s", each.fastest_seconds},
          {"at_published", each.at_published ? FiguresOfPlan(*each.at_published) : Json(nullptr)},
          {"at_published_saving_percent",
           each.at_published ? Json(each.at_published_saving_percent) : Json(nullptr)},
          {"at_max_clock", FiguresOfPlan(each.at_max_clock)},
          {"at_max_clock_saving_percent", each.at_max_clock_saving_percent},
          {"bound_saving_percent", each.bound_saving_percent},
          {"bound_at_published_saving_percent",
           each.at_published ? Json(each.bound_at_published_saving_percent) : Json(nullptr)},
          {"envpipe_published_time_s", IfPositive(each.envpipe_published_seconds)},
          {"envpipe_published_j", IfPositive(each.envpipe_published_joules)},
          {"envpipe_time_s", IfPositive(each.envpipe_seconds)},
          {"envpipe_j", IfPositive(each.envpipe_joules)},
          {"frontier_cpu_s", IfMeasured(each.frontier_cpu_seconds)},
          {"plan_cpu_s", IfMeasured(each.plan_cpu_seconds)},
          {"breakpoints", each.breakpoints}};
}

Json ToJson(const Sosp24Straggler& each) {
  return {{"model", each.model},
          {"device", each.device},
          {"microbatches", each.microbatches},
          {"slowdown", each.slowdown},
          {"published_pipeline_percent", each.published_pipeline_percent},
          {"published_job_percent", each.published_job_percent},
          {"published_time_over_t", each.published_time_over_t},
          {"effective_job_percent", each.effective_job_percent},
          {"effective_time_over_t", each.effective_time_over_t},
          {"rules_are_brute_force_best", each.rules_are_brute_force_best},
          {"ours_pipeline_percent", each.ours_pipeline_percent},
          {"ours_job_percent", each.ours_job_percent},
          {"bound_job_percent", each.bound_job_percent},
          {"ours_max_clock_job_percent", OrNull(each.ours_max_clock_job_percent)},
          {"bound_max_clock_job_percent", OrNull(each.bound_max_clock_job_percent)},
          {"envpipe_artifact_pipeline_percent", each.envpipe_artifact_pipeline_percent},
          {"envpipe_artifact_job_percent", each.envpipe_artifact_job_percent},
          {"envpipe_job_percent", each.envpipe_job_percent}};
}

Json ToJson(const Sosp24Job& each) {
  Json json = {{"gpu", each.gpu},
               {"model", each.model},
               {"layout", each.layout},
               {"stages", each.stages},
               {"microbatch_size", each.microbatch_size},
               {"microbatches", each.microbatches},
               {"baseline", ToJson(each.baseline)},
               {"perseus", ToJson(each.perseus)},
               {"perseus_from_summary", each.summarised},
               {"envpipe", each.envpipe ? ToJson(*each.envpipe) : Json(nullptr)},
               {"zeus_global", ToJson(each.zeus_global)},
               {"zeus_per_stage", ToJson(each.zeus_per_stage)},
               {"perseus_saving_percent", OrNull(each.perseus_saving_percent)},
               {"perseus_slowdown_percent", OrNull(each.perseus_slowdown_percent)},
               {"envpipe_saving_percent", OrNull(each.envpipe_saving_percent)},
               {"envpipe_slowdown_percent", OrNull(each.envpipe_slowdown_percent)},
               {"derived", nullptr}};
  if (each.has_derived) {
    json["derived"] = {{"baseline_time_s", each.derived_baseline_seconds},
                       {"baseline_energy_j", each.derived_baseline_joules},
                       {"plan", FiguresOfPlan(each.ours)},
                       {"bound_saving_percent", each.ours_bound_percent},
                       {"frontier", ToJson(each.ours_frontier)}};
  }
  json["replay_error_percent"] = each.replay_error_percent;
  json["replay_energy_error_percent"] = each.replay_energy_error_percent;
  json["replay_saving_percent"] = OrNull(each.replay_saving_percent);
  json["replay_slowdown_percent"] = OrNull(each.replay_slowdown_percent);
  return json;
}

Json ToJson(const Sosp24JobStraggler& each) {
  return {{"gpu", each.gpu},
          {"model", each.model},
          {"slowdown", each.slowdown},
          {"perseus_percent", OrNull(each.perseus_percent)},
          {"envpipe_percent", OrNull(each.envpipe_percent)},
          {"ours_percent", OrNull(each.ours_percent)}};
}

template <typename Row>
Json Rows(const std::vector<Row>& rows) {
  Json json = Json::array();
  for (const Row& row : rows) json.push_back(ToJson(row));
  return json;
}

}  // namespace

std::string FormatEvaluationJson(const Sosp24Evaluation& evaluation, const std::string& command) {
  return FormatByLine({{"schema_version", 1},
                       {"command", command},
                       {"emulations", Rows(evaluation.emulations)},
                       {"stragglers", Rows(evaluation.stragglers)},
                       {"jobs", Rows(evaluation.jobs)},
                       {"job_stragglers", Rows(evaluation.job_stragglers)},
                       {"missing", evaluation.missing}});
}

}  // namespace perseus::sosp24
