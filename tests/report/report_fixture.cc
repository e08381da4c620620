// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report_fixture.h"

#include <algorithm>
#include <optional>
#include <set>

#include "perseus/pipeline.h"
#include "perseus/schedule.h"

namespace perseus::report {
namespace {

constexpr double kBlockingWatts = 84;
constexpr int kHighestMhz = 1410;
constexpr int kLowestMhz = 900;
constexpr int kStepMhz = 30;

// Time falls and power rises with the clock.
CostOption OptionAt(double work_seconds, int knob, double mhz) {
  const double clock = mhz / kHighestMhz;
  const double seconds = work_seconds * (0.25 + 0.75 / clock);
  const double watts = 120 + 260 * clock * clock * clock;
  return {knob, seconds, watts * seconds};
}

int TableOf(CostedPipeline* pipeline, const Computation& computation) {
  for (std::size_t t = 0; t < pipeline->tables.size(); ++t) {
    const CostTable& table = pipeline->tables[t];
    if (table.stage == computation.id.stage && table.type == computation.id.type &&
        table.fused_type.has_value() == computation.fused.has_value()) {
      return static_cast<int>(t);
    }
  }
  CostTable table;
  table.stage = computation.id.stage;
  table.type = computation.id.type;
  table.blocking_power_watts = kBlockingWatts;
  double work = table.type == ComputationType::kForward    ? 0.05
                : table.type == ComputationType::kBackward ? 0.095
                                                           : 0.0475;
  if (computation.fused) {
    table.fused_type = computation.fused->type;
    table.fused_stage = computation.fused->stage;
    work += 0.095;
  }
  // Uneven stages, as real models have.
  work *= 1 + 0.02 * (table.stage % 3) - 0.05 * (table.stage == 0 ? 1 : 0);
  for (std::size_t knob = 0; knob < pipeline->knobs.size(); ++knob) {
    table.options.push_back(OptionAt(work, static_cast<int>(knob), pipeline->knobs[knob].number));
  }
  table.baseline = table.options.front();
  pipeline->tables.push_back(std::move(table));
  return static_cast<int>(pipeline->tables.size()) - 1;
}

Plan MakePlan(const CostedPipeline& pipeline, std::vector<CostOption> options) {
  Plan plan;
  std::vector<double> durations;
  double busy_joules = 0;
  std::set<int> knobs;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const double watts = pipeline.rank_blocking_power_watts[pipeline.dag.computations[i].rank];
    durations.push_back(options[i].time_seconds);
    busy_joules += options[i].energy_joules - watts * options[i].time_seconds;
    knobs.insert(options[i].knob);
  }
  plan.iteration_time_seconds = Replay(pipeline.dag, durations).iteration_time_seconds;
  plan.requested_time_seconds = plan.iteration_time_seconds;
  plan.energy_joules =
      busy_joules + plan.iteration_time_seconds * pipeline.total_blocking_power_watts;
  plan.lower_bound_joules = plan.energy_joules * 0.999;
  plan.gap_percent = 100 * (plan.energy_joules / plan.lower_bound_joules - 1);
  plan.average_power_watts = plan.energy_joules / plan.iteration_time_seconds;
  plan.distinct_knobs = static_cast<int>(knobs.size());
  for (const std::vector<int>& order : pipeline.dag.rank_order) {
    for (std::size_t k = 1; k < order.size(); ++k) {
      plan.knob_changes += options[order[k]].knob != options[order[k - 1]].knob ? 1 : 0;
    }
  }
  plan.options = std::move(options);
  return plan;
}

// Backwards in time, each computation as slow as its latest end allows.
Plan ReclaimSlack(const CostedPipeline& pipeline, const Plan& baseline, double deadline_seconds) {
  const PipelineDag& dag = pipeline.dag;
  std::vector<double> durations;
  for (const CostOption& option : baseline.options) durations.push_back(option.time_seconds);
  const Timing timing = Replay(dag, durations);
  std::vector<double> latest_end(dag.size(), deadline_seconds - dag.end_delay_seconds);
  std::vector<CostOption> options = baseline.options;
  for (int i = dag.size() - 1; i >= 0; --i) {
    for (const CostOption& option : pipeline.TableOf(i).options) {
      if (timing.start_seconds[i] + option.time_seconds <= latest_end[i]) options[i] = option;
    }
    const double latest_start = latest_end[i] - options[i].time_seconds;
    for (int e = dag.first_precedence[i]; e < dag.first_precedence[i + 1]; ++e) {
      const Precedence& edge = dag.precedences[e];
      latest_end[edge.from] = std::min(latest_end[edge.from], latest_start - edge.delay_seconds);
    }
  }
  return MakePlan(pipeline, std::move(options));
}

}  // namespace

ReportInput Sample::Input() const {
  ReportInput input;
  input.profile = &profile;
  input.pipeline = &pipeline;
  input.frontier = &frontier;
  input.baseline = &baseline;
  input.chosen = &chosen;
  input.rows = rows;
  input.title = "Sample";
  input.remarks = {"The sample profile is modelled, not measured."};
  return input;
}

Sample MakeSample(const std::string& schedule, int stages, int virtual_stages, int microbatches) {
  Sample sample;
  sample.profile.source = "folder/sample.csv";
  sample.profile.sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  sample.profile.num_stages = stages;
  const Schedule order =
      BuildSchedule({schedule, stages, virtual_stages, microbatches, std::nullopt}).value();
  sample.pipeline.dag = BuildDag(order, FixedTimes{}).value();
  CostedPipeline& pipeline = sample.pipeline;
  for (int mhz = kHighestMhz; mhz >= kLowestMhz; mhz -= kStepMhz) {
    pipeline.knobs.push_back({std::to_string(mhz), static_cast<double>(mhz)});
  }
  for (const Computation& computation : pipeline.dag.computations) {
    pipeline.table_of.push_back(TableOf(&pipeline, computation));
  }
  pipeline.rank_blocking_power_watts.assign(pipeline.dag.num_ranks, kBlockingWatts);
  pipeline.total_blocking_power_watts = kBlockingWatts * pipeline.dag.num_ranks;

  std::vector<CostOption> fastest;
  fastest.reserve(pipeline.dag.size());
  for (int i = 0; i < pipeline.dag.size(); ++i) fastest.push_back(pipeline.TableOf(i).baseline);
  sample.baseline = MakePlan(pipeline, fastest);
  const double base_seconds = sample.baseline.iteration_time_seconds;
  const double base_joules = sample.baseline.energy_joules;

  const struct {
    const char* label;
    double factor;
  } targets[] = {{"no slowdown", 1.0}, {"+1 %", 1.01},        {"+2 %", 1.02}, {"+5 %", 1.05},
                 {"+10 %", 1.1},       {"min energy", 1.125}, {"T*", 1.3}};
  for (const auto& target : targets) {
    Plan plan = ReclaimSlack(pipeline, sample.baseline, base_seconds * target.factor);
    plan.saving_percent = 100 * (1 - plan.energy_joules / base_joules);
    sample.rows.push_back(MakeReportRow(target.label, plan));
    sample.frontier.points.push_back({plan.iteration_time_seconds, plan.lower_bound_joules, 100});
    if (target.factor == 1.0) {
      sample.rows.back().chosen = true;
      sample.chosen = plan;
    }
  }
  sample.frontier.points.back().slope_watts = 0;
  sample.frontier.fastest_seconds = sample.frontier.points.front().iteration_time_seconds;
  sample.frontier.min_energy_seconds = sample.frontier.points[5].iteration_time_seconds;
  sample.frontier.tstar_seconds = sample.frontier.points.back().iteration_time_seconds;
  return sample;
}

std::vector<nlohmann::json> EmbeddedCharts(const std::string& html) {
  const std::string open = "<script type=\"application/json\">";
  std::vector<nlohmann::json> charts;
  for (std::size_t at = 0; (at = html.find(open, at)) != std::string::npos;) {
    at += open.size();
    charts.push_back(nlohmann::json::parse(html.substr(at, html.find("</script>", at) - at)));
  }
  return charts;
}

}  // namespace perseus::report
