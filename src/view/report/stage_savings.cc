// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/stage_savings.h"

namespace perseus::report {

std::vector<StageSavings> ComputeStageSavings(const CostedPipeline& pipeline, const Plan& baseline,
                                              const Plan& chosen) {
  const PipelineDag& dag = pipeline.dag;
  std::vector<StageSavings> stages(dag.num_stages);
  std::vector<double> forward_seconds(dag.num_stages);
  std::vector<double> backward_seconds(dag.num_stages);
  for (int s = 0; s < dag.num_stages; ++s) stages[s].stage = s;

  for (int i = 0; i < dag.size(); ++i) {
    const Computation& computation = dag.computations[i];
    StageSavings& stage = stages[computation.id.stage];
    const CostOption& before = baseline.options[i];
    const CostOption& after = chosen.options[i];
    const CostTable& table = pipeline.TableOf(i);
    const double saved = EffectiveEnergy(table, before) - EffectiveEnergy(table, after);
    const double clock_seconds = pipeline.knobs[after.knob].number * after.time_seconds;
    stage.rank = computation.rank;
    stage.busy_seconds_before += before.time_seconds;
    stage.busy_seconds_after += after.time_seconds;
    const bool is_forward = computation.id.type == ComputationType::kForward;
    if (is_forward && !computation.fused) {
      stage.forward_joules += saved;
      stage.forward_clock += clock_seconds;
      forward_seconds[stage.stage] += after.time_seconds;
    } else {
      (is_forward ? stage.fused_joules : stage.backward_joules) += saved;
      stage.backward_clock += clock_seconds;
      backward_seconds[stage.stage] += after.time_seconds;
    }
  }
  for (int s = 0; s < dag.num_stages; ++s) {
    if (forward_seconds[s] > 0) stages[s].forward_clock /= forward_seconds[s];
    if (backward_seconds[s] > 0) stages[s].backward_clock /= backward_seconds[s];
  }
  return stages;
}

}  // namespace perseus::report
