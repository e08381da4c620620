// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "common/json_text.h"
#include "formats/plan_json.h"
#include "perseus/report.h"
#include "report/check_input.h"
#include "report/text.h"

namespace perseus {
inline namespace v0 {
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

// Disturbances of the job; conditions by the keys of plan.json.
Json ScenarioToJson(const EmulationReportInput& input) {
  const EmulationSpec& spec = *input.spec;
  const TimeNoise& noise = spec.noise;
  const ClockSwitching& switching = spec.switching;
  Json stragglers = Json::array();
  for (const Straggler& each : spec.stragglers) {
    stragglers.push_back({{"kind", StragglerKindName(each.kind)},
                          {"value", each.value},
                          {"pipeline", each.pipeline},
                          {"rank", each.rank ? Json(*each.rank) : Json(nullptr)},
                          {"from", each.first_iteration},
                          {"for", each.iterations ? Json(*each.iterations) : Json(nullptr)}});
  }
  const RandomStragglers& random = spec.random_stragglers;
  Json by_chance = nullptr;
  if (random.share_of_gpus_per_day > 0) {
    by_chance = {{"rate_per_day", random.share_of_gpus_per_day},
                 {"duration_s", random.duration_seconds},
                 {"kind", StragglerKindName(random.kind)},
                 {"value", random.value}};
  }
  Json scenario = {{"in_words", TextOrNull(input.scenario)},
                   {"iterations", spec.iterations},
                   {"noise", noise.per_computation},
                   {"stage_noise", noise.per_stage},
                   {"gpu_noise", noise.per_gpu},
                   {"switch_latency_s", switching.latency_seconds},
                   {"switch_latency_spread_s", switching.latency_spread_seconds},
                   {"switch_stall_s", switching.stall_seconds},
                   {"call_ahead", CallAheadName(switching.call_ahead)},
                   {"max_early_loss", switching.max_early_loss},
                   {"min_call_interval_s", switching.min_interval_seconds},
                   {"change_price_j", input.change_joules},
                   {"stragglers", std::move(stragglers)},
                   {"random_stragglers", std::move(by_chance)},
                   {"reacts", spec.control.reacts},
                   {"reaction_delay_s", spec.control.delay_seconds}};
  for (const ClockLatency& each : switching.latency_at) {
    scenario["switch_latency_at_s"].push_back({each.clock, each.seconds});
  }
  if (noise.per_rank > 0) scenario["rank_noise"] = noise.per_rank;
  if (noise.correlation > 0) scenario["noise_correlation"] = noise.correlation;
  if (noise.has_rare()) {
    scenario["rare_noise"] = noise.rare_length;
    scenario["rare_noise_share"] = noise.rare_share;
  }
  return scenario;
}

Json PoliciesToJson(const EmulationReportInput& input) {
  Json rows = Json::array();
  for (const PolicyRow& each : input.policies) {
    Json row = {{"policy", each.policy},
                {"time_s", each.time_seconds},
                {"energy_j", each.energy.total_joules()}};
    row.update(SplitToJson(each.energy));
    row.update(Json{{"slowdown_percent", each.slowdown_percent},
                    {"saving_percent", each.saving_percent},
                    {"average_w", each.average_watts},
                    {"peak_w", each.peak_watts}});
    rows.push_back(std::move(row));
  }
  return rows;
}

// Apart from all energies: it is what the user says that a call is worth.
Json PriceOfChangesToJson(const EmulationReportInput& input) {
  const double after = input.change_joules * static_cast<double>(input.emulation->clock_calls);
  const double before = input.change_joules * static_cast<double>(input.baseline->clock_calls);
  return {{"change_price_j", input.change_joules},
          {"price_j", after},
          {"baseline_price_j", before},
          {"saving_percent", report::PercentSaved(input.emulation->energy.total_joules() + after,
                                                  input.baseline->energy.total_joules() + before)}};
}

}  // namespace

Result<std::string> FormatEmulationJson(const EmulationReportInput& input) {
  if (auto good = report::CheckInput(input); !good) return tl::unexpected(good.error());
  const PipelineDag& dag = input.pipeline->dag;
  const Emulation& emulation = *input.emulation;
  const Emulation& baseline = *input.baseline;
  Json json = {
      {"schema_version", 1},
      {"profile",
       {{"file", report::FileName(input.profile->source)}, {"sha256", input.profile->sha256}}},
      {"schedule", dag.schedule_name},
      {"stages", dag.num_stages},
      {"virtual_stages", dag.num_stages / std::max(dag.num_ranks, 1)},
      {"microbatches", dag.num_microbatches},
      {"tensor_parallel", input.pipeline->tensor_parallel},
      {"pipelines", input.spec->pipelines},
      {"gpus", emulation.gpus},
      {"policy", input.policy},
      {"seed", input.spec->seed},
      {"target_s", input.spec->target_seconds},
      {"scenario", ScenarioToJson(input)}};
  const std::string& modelled = input.pipeline->modelled;
  if (!modelled.empty()) json["profile"]["modelled"] = modelled;
  json.update(EmulationFigures(emulation));
  json["baseline"] = EmulationFigures(baseline);
  json["saving_percent"] =
      report::PercentSaved(emulation.energy.total_joules(), baseline.energy.total_joules());
  json["slowdown_percent"] = report::PercentOver(emulation.time_seconds, baseline.time_seconds);
  if (input.change_joules > 0) json["price_of_changes"] = PriceOfChangesToJson(input);
  json["iterations"] = IterationsToJson(emulation);
  json["power_w"] = emulation.power.watts;
  json["policies"] = PoliciesToJson(input);
  json["notes"] = Json::parse(formats::NotesJson(input.notes));
  json["remarks"] = input.remarks;
  json["files"] = input.files;
  return FormatByLine(json);
}

// fmt writes the shortest digits that read back as the same number.

std::string FormatIterationsCsv(const Emulation& emulation) {
  std::string csv =
      "iteration,start_s,time_s,target_s,straggling_pipelines,useful_j,intrinsic_bloat_j,"
      "extrinsic_bloat_j,blocking_j\n";
  for (std::size_t i = 0; i < emulation.iterations.size(); ++i) {
    const IterationRecord& record = emulation.iterations[i];
    fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{},{},{},{}\n", i, record.start_seconds,
                   record.time_seconds, record.target_seconds, record.straggling_pipelines,
                   record.energy.useful_joules, record.energy.intrinsic_bloat_joules,
                   record.energy.extrinsic_bloat_joules, record.energy.blocking_joules);
  }
  return csv;
}

std::string FormatPowerCsv(const Emulation& emulation) {
  std::string csv = "start_s,power_w\n";
  for (std::size_t i = 0; i < emulation.power.watts.size(); ++i) {
    fmt::format_to(std::back_inserter(csv), "{},{}\n",
                   static_cast<double>(i) * emulation.power.interval_seconds,
                   emulation.power.watts[i]);
  }
  return csv;
}

}  // namespace v0
}  // namespace perseus
