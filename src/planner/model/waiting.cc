// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/waiting.h"

#include <algorithm>
#include <cstddef>

namespace perseus::model {

std::vector<double> DearerWaitingJoules(const CostedPipeline& pipeline,
                                        const std::vector<CostOption>& options, Waiting waiting,
                                        const Timing& timing) {
  std::vector<double> joules;
  if (!pipeline.waiting_depends_on_clock() || waiting == Waiting::kCheapest) return joules;
  joules.reserve(pipeline.dag.rank_order.size());
  for (std::size_t rank = 0; rank < pipeline.dag.rank_order.size(); ++rank) {
    const std::vector<int>& order = pipeline.dag.rank_order[rank];
    double& sum = joules.emplace_back(0);
    if (order.empty()) continue;
    const auto add = [&](int set_by, double from, double to) {
      sum += pipeline.DearerWatts(static_cast<int>(rank), options[set_by].knob) *
             std::max(0.0, to - from);
    };
    int before = order.back();
    double end = 0;
    for (const int i : order) {
      add(before, end, timing.start_seconds[i]);
      before = i;
      end = timing.end_seconds[i];
    }
    add(before, end, timing.iteration_time_seconds);
  }
  return joules;
}

double IterationEnergy(const CostedPipeline& pipeline, const std::vector<CostOption>& chosen,
                       double iteration_time_seconds) {
  std::vector<double> busy(pipeline.dag.num_ranks, 0);
  double energy = 0;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    energy += chosen[i].energy_joules;
    busy[pipeline.dag.computations[i].rank] += chosen[i].time_seconds;
  }
  for (int rank = 0; rank < pipeline.dag.num_ranks; ++rank) {
    energy += pipeline.rank_blocking_power_watts[rank] * (iteration_time_seconds - busy[rank]);
  }
  return energy;
}

double IterationEnergy(const CostedPipeline& pipeline, const std::vector<CostOption>& chosen,
                       Waiting waiting, const Timing& timing) {
  double energy = IterationEnergy(pipeline, chosen, timing.iteration_time_seconds);
  for (const double joules : DearerWaitingJoules(pipeline, chosen, waiting, timing)) {
    energy += joules;
  }
  return energy;
}

}  // namespace perseus::model
