// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "policy/envpipe.h"

#include <algorithm>

namespace perseus::policy {
namespace {

// Relative to the iteration time, as in CriticalComputations().
constexpr double kSameTime = 1e-9;

// EnvPipe knows pipelines of one stage a rank that run F and B only.
bool IsKnownToEnvPipe(const PipelineDag& dag) {
  if (dag.num_stages != dag.num_ranks) return false;
  return std::all_of(dag.computations.begin(), dag.computations.end(), [](const Computation& c) {
    return !c.fused &&
           (c.id.type == ComputationType::kForward || c.id.type == ComputationType::kBackward);
  });
}

// The index of the all-maximum-clock option.
int MaximumOf(const CostTable& table) {
  const auto found = std::find_if(
      table.all_options.begin(), table.all_options.end(),
      [&table](const CostOption& option) { return option.knob == table.baseline.knob; });
  return static_cast<int>(found - table.all_options.begin());
}

int LeastEnergyOf(const CostTable& table) {
  const auto found = std::min_element(
      table.all_options.begin(), table.all_options.end(),
      [](const CostOption& a, const CostOption& b) { return a.energy_joules < b.energy_joules; });
  return static_cast<int>(found - table.all_options.begin());
}

}  // namespace

std::vector<int> LongestPath(const PipelineDag& dag, const Timing& timing) {
  const double tolerance_seconds = kSameTime * timing.iteration_time_seconds;
  std::vector<int> path;
  int last = 0;
  for (int i = 1; i < dag.size(); ++i) {
    if (timing.end_seconds[i] > timing.end_seconds[last]) last = i;
  }
  for (int next = last; next >= 0;) {
    const int to = next;
    path.push_back(to);
    next = -1;
    for (int k = dag.first_precedence[to]; k < dag.first_precedence[to + 1]; ++k) {
      const Precedence& precedence = dag.precedences[k];
      const double end = timing.end_seconds[precedence.from] + precedence.delay_seconds;
      if (end < timing.start_seconds[to] - tolerance_seconds) continue;
      const bool other_rank = dag.computations[precedence.from].rank != dag.computations[to].rank;
      if (next < 0 || other_rank) next = precedence.from;
      if (other_rank) break;
    }
  }
  return path;
}

std::vector<bool> OuterEnvelope(const CostedPipeline& pipeline) {
  const PipelineDag& dag = pipeline.dag;
  std::vector<bool> outer(dag.size());
  if (!IsKnownToEnvPipe(dag)) {
    std::vector<double> durations;
    durations.reserve(dag.size());
    for (const int table : pipeline.table_of) {
      durations.push_back(pipeline.tables[table].baseline.time_seconds);
    }
    for (const int i : LongestPath(dag, Replay(dag, durations))) outer[i] = true;
    return outer;
  }
  for (int i = 0; i < dag.size(); ++i) {
    const ComputationId& id = dag.computations[i].id;
    const bool is_forward = id.type == ComputationType::kForward;
    outer[i] = id.stage == dag.num_stages - 1 ||
               id.microbatch == (is_forward ? 0 : dag.num_microbatches - 1);
  }
  return outer;
}

std::vector<CostOption> EnvPipeOptions(const CostedPipeline& pipeline) {
  const PipelineDag& dag = pipeline.dag;
  const std::vector<bool> outer = OuterEnvelope(pipeline);
  std::vector<int> maximum;
  std::vector<int> least;
  for (const CostTable& table : pipeline.tables) {
    maximum.push_back(MaximumOf(table));
    least.push_back(LeastEnergyOf(table));
  }
  std::vector<int> chosen(dag.size());  // Indices into all_options.
  std::vector<double> durations(dag.size());
  const auto choose = [&](int i, int option) {
    chosen[i] = option;
    durations[i] = pipeline.TableOf(i).all_options[option].time_seconds;
  };
  for (int i = 0; i < dag.size(); ++i) {
    const int table = pipeline.table_of[i];
    choose(i, outer[i] ? maximum[table] : least[table]);
  }

  for (;;) {  // Ends: every step raises a computation.
    std::vector<int> path = LongestPath(dag, Replay(dag, durations));
    std::erase_if(path, [&](int i) { return chosen[i] == maximum[pipeline.table_of[i]]; });
    if (path.empty()) break;
    const auto knob_of = [&](int i) { return pipeline.TableOf(i).all_options[chosen[i]].knob; };
    int lowest = knob_of(path.front());
    for (const int i : path) lowest = std::max(lowest, knob_of(i));  // Clocks descend.
    for (const int i : path) {
      if (knob_of(i) != lowest) continue;
      // Labels: in the order of the file, towards the one that counts as maximum.
      choose(i, chosen[i] + (chosen[i] > maximum[pipeline.table_of[i]] ? -1 : 1));
    }
  }

  std::vector<CostOption> options;
  options.reserve(dag.size());
  for (int i = 0; i < dag.size(); ++i) {
    options.push_back(pipeline.TableOf(i).all_options[chosen[i]]);
  }
  return options;
}

}  // namespace perseus::policy
