// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/busy_times.h"

#include <algorithm>
#include <cstddef>

#include "perseus/costed_pipeline.h"
#include "perseus/pipeline.h"

namespace perseus::server {

std::vector<SecondsByType> BusyTimes(const Curve& curve, const CurvePlan* plan) {
  const CostedPipeline& pipeline = curve.job().pipeline;
  const PipelineDag& dag = pipeline.dag;
  std::vector<SecondsByType> busy(static_cast<std::size_t>(dag.num_ranks));
  for (int i = 0; i < dag.size(); ++i) {
    const auto& table = pipeline.TableOf(i);
    double seconds = table.baseline.time_seconds;
    if (plan != nullptr) {
      const int knob = plan->knobs[static_cast<std::size_t>(i)];
      const auto option = std::find_if(table.all_options.begin(), table.all_options.end(),
                                       [&](const CostOption& each) { return each.knob == knob; });
      if (option != table.all_options.end()) seconds = option->time_seconds;
    }
    const Computation& computation = dag.computations[static_cast<std::size_t>(i)];
    busy[static_cast<std::size_t>(computation.rank)]
        [static_cast<std::size_t>(computation.id.type)] += seconds;
  }
  return busy;
}

}  // namespace perseus::server
