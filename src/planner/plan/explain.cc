// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/explain.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>
#include <utility>

namespace perseus {
inline namespace v0 {
namespace {

double Saving(const ExplainedComputation& computation) {
  return computation.baseline_joules - computation.joules -
         computation.blocking_power_watts * (computation.baseline_seconds - computation.seconds);
}

void Add(const ExplainedComputation& computation, SavingShare* share) {
  ++share->computations;
  if (computation.seconds > computation.baseline_seconds) ++share->slowed;
  if (computation.baseline_critical) {
    ++share->baseline_critical;
    share->baseline_critical_seconds += computation.baseline_seconds;
  }
  if (computation.critical) ++share->critical;
  share->baseline_seconds += computation.baseline_seconds;
  share->seconds += computation.seconds;
  share->saving_joules += Saving(computation);
}

template <typename Key>
std::vector<SavingShare> InOrder(std::map<Key, SavingShare> groups, double total) {
  std::vector<SavingShare> shares;
  for (auto& [key, share] : groups) {
    share.share_percent = total == 0 ? 0 : 100 * share.saving_joules / total;
    shares.push_back(std::move(share));
  }
  return shares;
}

}  // namespace

Explanation ExplainSaving(const ExplainInput& input) {
  constexpr std::array<std::string_view, 3> kPhases = {"warm-up", "steady", "cool-down"};
  std::map<int, SavingShare> stages;
  std::map<std::string, SavingShare> types;
  std::map<Phase, SavingShare> phases;
  Explanation explanation;
  for (const ExplainedComputation& computation : input.computations) {
    SavingShare& stage = stages[computation.stage];
    stage.label = fmt::format("{}", computation.stage);
    Add(computation, &stage);
    SavingShare& type = types[computation.type];
    type.label = computation.type;
    Add(computation, &type);
    SavingShare& phase = phases[computation.phase];
    phase.label = kPhases[static_cast<std::size_t>(computation.phase)];
    Add(computation, &phase);
    explanation.computation_saving_joules += Saving(computation);
  }
  double most = -1;
  for (const auto& [stage, share] : stages) {
    if (share.baseline_critical_seconds <= most) continue;
    most = share.baseline_critical_seconds;
    explanation.critical_stage = stage;
  }
  const double total = explanation.computation_saving_joules;
  explanation.iteration_saving_joules =
      input.total_blocking_power_watts *
      (input.baseline_iteration_seconds - input.iteration_seconds);
  explanation.waiting_saving_joules =
      input.baseline_dearer_waiting_joules - input.dearer_waiting_joules;
  explanation.saving_joules =
      total + explanation.iteration_saving_joules + explanation.waiting_saving_joules;
  explanation.stages = InOrder(std::move(stages), total);
  explanation.types = InOrder(std::move(types), total);
  explanation.phases = InOrder(std::move(phases), total);
  return explanation;
}

}  // namespace v0
}  // namespace perseus
