// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulation_fixture.h"

#include <utility>
#include <vector>

#include "perseus/pipeline.h"

namespace perseus::report {
namespace {

EmulatedPipeline Run(const CostedPipeline& pipeline, const Plan& plan, int number, double slow) {
  EmulatedPipeline ran;
  ran.pipeline = number;
  ran.straggles = slow > 1;
  std::vector<double> durations;
  for (const CostOption& option : plan.options) durations.push_back(option.time_seconds * slow);
  const Timing timing = Replay(pipeline.dag, durations);
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    ran.computations.push_back({i, plan.options[i].knob, timing.start_seconds[i],
                                timing.end_seconds[i], plan.options[i].energy_joules * slow});
  }
  ran.end_seconds = timing.iteration_time_seconds;
  return ran;
}

PolicyRow RowOf(std::string policy, double joules, double saving_percent) {
  PolicyRow row;
  row.policy = std::move(policy);
  row.time_seconds = 100;
  row.energy = {0.8 * joules, 0.1 * joules, 0.05 * joules, 0.05 * joules};
  row.saving_percent = saving_percent;
  row.average_watts = joules / 100;
  row.peak_watts = joules / 80;
  return row;
}

}  // namespace

EmulatedSample MakeEmulatedSample(std::int64_t iterations, int power_values) {
  EmulatedSample made;
  made.sample = MakeSample("1f1b", 4, 1, 8);
  const CostedPipeline& pipeline = made.sample.pipeline;
  const Plan& plan = made.sample.chosen;
  made.spec.pipelines = 3;
  made.spec.iterations = iterations;
  made.spec.target_seconds = plan.iteration_time_seconds;
  Emulation& emulation = made.emulation;
  for (std::int64_t i = 0; i < iterations; ++i) {
    const bool straggles = i >= iterations / 3 && i < 2 * iterations / 3;
    IterationRecord record;
    record.start_seconds = emulation.time_seconds;
    record.time_seconds = plan.iteration_time_seconds * (straggles ? 1.25 : 1);
    record.target_seconds = plan.iteration_time_seconds;
    record.straggling_pipelines = straggles ? 1 : 0;
    record.energy = {8000, 400, straggles ? 600.5 : 0, 1000};
    emulation.time_seconds += record.time_seconds;
    emulation.energy.useful_joules += record.energy.useful_joules;
    emulation.energy.intrinsic_bloat_joules += record.energy.intrinsic_bloat_joules;
    emulation.energy.extrinsic_bloat_joules += record.energy.extrinsic_bloat_joules;
    emulation.energy.blocking_joules += record.energy.blocking_joules;
    emulation.iterations.push_back(record);
  }
  emulation.gpus = 12;
  emulation.average_watts = emulation.energy.total_joules() / emulation.time_seconds;
  emulation.peak_watts = 5000;
  emulation.gpu_average_watts = emulation.average_watts / 12;
  emulation.gpu_peak_watts = 380;
  emulation.stragglers = 1;
  emulation.power.interval_seconds = emulation.time_seconds / power_values;
  for (int i = 0; i < power_values; ++i) {
    emulation.power.watts.push_back(i == power_values / 2 ? 5000 : 3000 + i % 7 * 100);
  }
  emulation.timeline.iteration = iterations / 3;
  emulation.timeline.pipelines = {Run(pipeline, plan, 2, 1.25), Run(pipeline, plan, 0, 1)};
  emulation.timeline.time_seconds = emulation.timeline.pipelines[0].end_seconds;
  return made;
}

EmulationReportInput EmulatedSample::Bare() const {
  EmulationReportInput input;
  input.profile = &sample.profile;
  input.pipeline = &sample.pipeline;
  input.spec = &spec;
  input.emulation = &emulation;
  input.baseline = &emulation;
  return input;
}

EmulationReportInput EmulatedSample::Full() const {
  EmulationReportInput input = Bare();
  input.title = "A job";
  input.policy = "perseus";
  input.label = "perseus";
  const double joules = emulation.energy.total_joules();
  input.policies = {RowOf("max-clocks", joules / 0.8, 0), RowOf("perseus", joules, 20),
                    RowOf("perseus (stage)", joules / 0.96, 16.75)};
  input.remarks = {"A note of the caller."};
  return input;
}

}  // namespace perseus::report
