// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/trace_policies.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "trace/trace_replay.h"

namespace perseus::trace {
namespace {

double MiddleOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

Result<StaticPlans> StaticPlans::Create(const Recording& recording, const PipelineMaker& maker,
                                        std::vector<double> own_seconds,
                                        const TraceEnergySpec& spec) {
  // Transfers as usual, computations by the mean of their block and type.
  std::vector<double> usual = UsualSeconds(recording, own_seconds);
  std::map<std::pair<int, OperationKind>, std::pair<double, double>> sums;
  for (std::size_t i = 0; i < own_seconds.size(); ++i) {
    const Operation& operation = recording.operations[i];
    if (!IsComputation(operation.kind)) continue;
    auto& [seconds, count] = sums[{operation.block, operation.kind}];
    seconds += own_seconds[i];
    count += 1;
  }
  const RecordedPipeline pipeline = maker.Make(0, 0, usual);
  std::vector<double> seconds;
  for (const int operation : pipeline.operations) {
    const Operation& each = recording.operations[operation];
    const auto& [sum, count] = sums[{each.block, each.kind}];
    seconds.push_back(sum / count);
  }
  auto costed = CostRecorded(pipeline, seconds, spec.costs);
  if (!costed) return tl::unexpected(costed.error());
  auto planner = Planner::Create(*std::move(costed), {});
  if (!planner) return tl::unexpected(planner.error());
  // One plan, not thousands.
  return StaticPlans(*std::move(planner), std::max(spec.effort, 1.0));
}

Result<const StaticPlans::Knobs*> StaticPlans::For(double factor) {
  constexpr double kSteps = 1000;
  constexpr double kMostFactor = 1e6;  // All clocks are at their lowest long before.
  const double bounded = factor > 1 ? std::min(factor, kMostFactor) : 1.0;
  const int key = static_cast<int>(std::floor(bounded * kSteps + 1e-9));
  if (const auto known = known_.find(key); known != known_.end()) return &known->second;
  const double seconds = planner_.baseline().iteration_time_seconds * (key / kSteps);
  const Result<Plan> plan = planner_.PlanFor(seconds, {.effort = effort_});
  if (!plan) return tl::unexpected(plan.error());
  Knobs knobs;
  const PipelineDag& dag = planner_.pipeline().dag;
  for (int i = 0; i < dag.size(); ++i) {
    const ComputationId& id = dag.computations[i].id;
    knobs.of[{id.stage, id.type, id.microbatch}] = plan->options[i].knob;
  }
  return &known_.emplace(key, std::move(knobs)).first->second;
}

std::vector<double> StragglerWatch::Known() const {
  std::vector<double> factors;
  for (const std::vector<double>& seen : slow_by_) {
    double factor = 1;
    if (seen.size() >= static_cast<std::size_t>(steps_)) {
      const std::vector<double> newest(seen.end() - steps_, seen.end());
      const auto slow = std::count_if(newest.begin(), newest.end(),
                                      [&](double each) { return each > 1 + threshold_; });
      if (4 * slow >= 3 * static_cast<std::ptrdiff_t>(steps_)) factor = MiddleOf(newest);
    }
    factors.push_back(factor);
  }
  return factors;
}

void StragglerWatch::Add(const std::vector<double>& seconds) {
  const double middle = MiddleOf(seconds);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    slow_by_[i].push_back(middle > 0 ? seconds[i] / middle : 1);
  }
}

}  // namespace perseus::trace
