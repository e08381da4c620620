// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/plan_waiting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "common/printable.h"
#include "model/waiting.h"
#include "perseus/costed_pipeline.h"

namespace perseus::cli {

// What waiting draws in both plans beyond the least, from what the file says of its ranks.
Result<void> AddDearerWaiting(const PlanDocument& plan, const PipelineDag& dag,
                              const std::vector<const Knob*>& baseline_knobs, const Timing& before,
                              const Timing& after, const std::string& path, ExplainInput* input) {
  if (plan.ranks.empty() || plan.ranks.front().waiting.empty()) return {};
  CostedPipeline costs;
  costs.dag = dag;
  for (const PlannedWaiting& each : plan.ranks.front().waiting) costs.knobs.push_back(each.knob);
  for (const PlannedRank& rank : plan.ranks) {
    std::vector<double>& watts = costs.rank_waiting_watts.emplace_back();
    for (const PlannedWaiting& each : rank.waiting) {
      watts.push_back(each.watts * plan.tensor_parallel);
    }
    costs.rank_blocking_power_watts.push_back(rank.blocking_power_watts * plan.tensor_parallel);
    if (watts.size() == costs.knobs.size()) continue;
    return InvalidInput(fmt::format(
        "{}: ranks[{}].waiting lists {} knobs, and that of the first rank {}; write the plan again "
        "with 'perseus plan -o DIR'",
        path, costs.rank_waiting_watts.size() - 1, watts.size(), costs.knobs.size()));
  }
  const auto joules = [&](const auto& knob_of, Waiting waiting,
                          const Timing& timing) -> Result<double> {
    std::vector<CostOption> options;
    for (int node = 0; node < dag.size(); ++node) {
      const Knob& knob = knob_of(node);
      const auto found = std::find_if(costs.knobs.begin(), costs.knobs.end(),
                                      [&](const Knob& known) { return known.label == knob.label; });
      if (found == costs.knobs.end()) {
        return InvalidInput(fmt::format(
            "{}: ranks[].waiting does not say what waiting at {} draws; write the plan again with "
            "'perseus plan -o DIR'",
            path, knob.label));
      }
      options.push_back({.knob = static_cast<int>(found - costs.knobs.begin())});
    }
    double sum = 0;
    for (const double each : model::DearerWaitingJoules(costs, options, waiting, timing)) {
      sum += each;
    }
    return sum;
  };
  const auto planned_knob = [&](int node) -> const Knob& {
    const Computation& computation = dag.computations[node];
    return plan.ranks[computation.rank].computations[computation.position].knob;
  };
  const auto baseline_knob = [&](int node) -> const Knob& { return *baseline_knobs[node]; };
  const Waiting waiting = plan.ranks.front().waiting_knob ? Waiting::kCheapest : Waiting::kSetClock;
  const Result<double> baseline = joules(baseline_knob, Waiting::kSetClock, before);
  if (!baseline) return tl::unexpected(baseline.error());
  const Result<double> planned = joules(planned_knob, waiting, after);
  if (!planned) return tl::unexpected(planned.error());
  input->baseline_dearer_waiting_joules = *baseline;
  input->dearer_waiting_joules = *planned;
  return {};
}

// At which clocks ranks wait; empty where that makes no difference.
std::string WaitingClocksText(const PlanDocument& plan) {
  if (plan.ranks.empty() || plan.ranks.front().waiting.empty()) return "";
  if (!plan.ranks.front().waiting_knob) {
    return "Ranks wait at the clock of the computation before.";
  }
  const std::string unit = plan.knobs_are_numbers ? " MHz" : "";
  std::vector<std::string> labels;
  labels.reserve(plan.ranks.size());
  for (const PlannedRank& rank : plan.ranks) {
    labels.push_back(Printable(rank.waiting_knob ? rank.waiting_knob->label : "-") + unit);
  }
  const bool same = std::all_of(labels.begin(), labels.end(),
                                [&](const std::string& label) { return label == labels.front(); });
  return same ? fmt::format("Ranks wait at {}.", labels.front())
              : fmt::format("Ranks wait at, in their order: {}.", fmt::join(labels, ", "));
}

}  // namespace perseus::cli
