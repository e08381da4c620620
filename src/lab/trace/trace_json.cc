// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/json_text.h"
#include "formats/note_json.h"
#include "trace/trace_answer.h"

namespace perseus::trace {
namespace {

using TraceJson = nlohmann::ordered_json;

// Null: too many to be replayed each.
TraceJson MapOf(const std::vector<double>& slowdowns) {
  if (slowdowns.empty()) return nullptr;
  TraceJson json = TraceJson::object();
  for (std::size_t i = 0; i < slowdowns.size(); ++i) json[fmt::format("{}", i)] = slowdowns[i];
  return json;
}

TraceJson SizesJson(const Recording& recording) {
  return {{"tp", recording.gpus_per_rank},
          {"dp", recording.pipelines},
          {"pp", recording.stages},
          {"virtual_stages", recording.virtual_stages},
          {"microbatches", recording.microbatches},
          {"gpus", recording.gpus_per_rank * recording.places()},
          {"steps", recording.steps.size()},
          {"operations", recording.operations.size()}};
}

TraceJson EnergyJson(const TraceAnswer& answer) {
  const TraceEnergy& energy = *answer.energy;
  TraceJson json = {{"profile", answer.costs.name},
                    {"costs", kRelativeCosts},
                    {"blocking_power_w", answer.costs.blocking_power_watts},
                    {"gpus_per_rank", answer.costs.gpus_per_rank},
                    {"step_s", energy.step_seconds},
                    {"energy_j", energy.energy_joules},
                    {"useful_j", energy.useful_joules},
                    {"intrinsic_bloat_j", energy.intrinsic_joules},
                    {"extrinsic_bloat_j", energy.extrinsic_joules},
                    {"blocking_j", energy.blocking_joules},
                    {"length_error", energy.length_error},
                    {"detector_steps", answer.costs.detector_steps},
                    {"steps_with_known_stragglers", energy.stragglers_answered}};
  if (!answer.costs.modelled.empty()) json["profile_modelled"] = answer.costs.modelled;
  json["plans"] = TraceJson::array();
  for (const TracePlanOutcome& plan : energy.plans) {
    json["plans"].push_back({{"plan", plan.key},
                             {"step_s", plan.step_seconds},
                             {"slowdown_percent", plan.slowdown_percent},
                             {"energy_j", plan.energy_joules},
                             {"saving_percent", plan.saving_percent}});
  }
  json["steps"] = TraceJson::array();
  for (std::size_t i = 0; i < energy.steps.size(); ++i) {
    TraceJson step = {{"step", energy.steps[i].step},
                      {"intrinsic_bloat_j", energy.steps[i].intrinsic_joules},
                      {"extrinsic_bloat_j", energy.steps[i].extrinsic_joules}};
    for (const TracePlanOutcome& plan : energy.plans) {
      step[plan.key] = {{"step_s", plan.step_seconds_each[i]}, {"energy_j", plan.step_joules[i]}};
    }
    json["steps"].push_back(std::move(step));
  }
  return json;
}

}  // namespace

std::string FormatTraceJson(const TraceAnswer& answer) {
  const Recording& recording = *answer.recording;
  const WhatIf& what_if = answer.what_if;
  TraceJson json = {{"schema_version", 1}, {"trace", answer.name}, {"sizes", SizesJson(recording)}};
  json["notes"] = TraceJson::parse(formats::NotesJson(answer.notes));
  json["steps"] = TraceJson::array();
  for (const StepTimes& step : what_if.steps) {
    json["steps"].push_back({{"step", step.step},
                             {"recorded_s", step.recorded_seconds},
                             {"replayed_s", step.replayed_seconds},
                             {"without_stragglers_s", step.without_stragglers_seconds}});
  }
  json["recorded_s"] = what_if.recorded_seconds;
  json["replayed_s"] = what_if.replayed_seconds;
  json["without_stragglers_s"] = what_if.without_stragglers_seconds;
  json["launch_slowdown"] = what_if.launch_slowdown;
  json["blocking_slowdown"] = what_if.blocking_slowdown;
  json["blocking_by_stage"] = MapOf(what_if.by_stage);
  json["blocking_by_operation"] = TraceJson::object();
  for (const NamedSlowdown& each : what_if.by_operation) {
    json["blocking_by_operation"][each.name] = each.slowdown;
  }
  json["blocking_by_pipeline"] = MapOf(what_if.by_pipeline);
  json["blocking_by_rank"] = nullptr;
  for (int place = 0; place < static_cast<int>(what_if.by_place.size()); ++place) {
    json["blocking_by_rank"].push_back({{"rank", recording.rank_of[place]},
                                        {"pipeline", place / recording.stages},
                                        {"stage", place % recording.stages},
                                        {"slowdown", what_if.by_place[place]}});
  }
  json["launch_delays"] = TraceJson::array();
  for (const LaunchDelay& delay : what_if.launch_delays) {
    json["launch_delays"].push_back({{"operation", delay.operation},
                                     {"stage", delay.stage},
                                     {"seconds_per_step", delay.seconds}});
  }
  json["other_chain_s"] = what_if.other_chain_seconds;
  if (answer.energy) json["energy"] = EnergyJson(answer);
  return FormatIndented(json);
}

}  // namespace perseus::trace
