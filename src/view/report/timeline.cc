// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "report/text.h"

namespace perseus::report {
namespace {

std::int64_t Nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// Follows the tightest predecessor from the computation that ends last. Of
// equals, the one on the same rank, then the first: fewest jumps to draw.
std::vector<int> TraceCriticalPath(const PipelineDag& dag, const Timing& timing) {
  std::vector<int> path;
  if (dag.size() == 0) return path;
  const auto last = std::max_element(timing.end_seconds.begin(), timing.end_seconds.end());
  int current = static_cast<int>(last - timing.end_seconds.begin());
  const double tolerance = 1e-9 * timing.iteration_time_seconds;
  for (;;) {
    path.push_back(current);
    int next = -1;
    for (int e = dag.first_precedence[current]; e < dag.first_precedence[current + 1]; ++e) {
      const Precedence& edge = dag.precedences[e];
      const double ready = timing.end_seconds[edge.from] + edge.delay_seconds;
      if (ready < timing.start_seconds[current] - tolerance) continue;
      const bool same_rank = dag.computations[edge.from].rank == dag.computations[current].rank;
      if (next < 0 || same_rank) next = edge.from;
    }
    if (next < 0) break;
    current = next;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

using Json = nlohmann::ordered_json;

// Numbers the distinct (knob, time, energy) triples of all runs.
class OptionPool {
 public:
  explicit OptionPool(bool joules) : joules_(joules) {}

  std::size_t Index(const TimelineRun& run, int i) {
    const std::int64_t ns = joules_ ? run.end_ns[i] - run.start_ns[i] : 0;
    const auto key = std::tuple(run.knob[i], ns, joules_ ? run.joules[i] : 0);
    const auto [entry, is_new] = index_.try_emplace(key, index_.size());
    if (is_new) {
      json_.push_back({run.knob[i]});
      if (joules_) json_.back().push_back(RoundSignificant(run.joules[i], 7));
    }
    return entry->second;
  }
  const Json& json() const { return json_; }

 private:
  const bool joules_;
  std::map<std::tuple<int, std::int64_t, double>, std::size_t> index_;
  Json json_ = Json::array();
};

Json RunJson(const TimelineRun& run, const std::vector<int>& order, OptionPool* pool) {
  Json json = {{"title", run.name}, {"time", run.iteration_ns}};
  if (run.own_end_ns) json["end"] = *run.own_end_ns;
  std::vector<std::size_t> place(order.size());
  for (const char* name : {"start", "duration", "option"}) json[name] = Json::array();
  for (std::size_t k = 0; k < order.size(); ++k) {
    const int i = order[k];
    place[i] = k;
    json["start"].push_back(run.start_ns[i]);
    json["duration"].push_back(run.end_ns[i] - run.start_ns[i]);
    json["option"].push_back(pool->Index(run, i));
    if (!run.critical.empty() && run.critical[i]) json["critical"].push_back(k);
  }
  for (const int i : run.critical_path) json["path"].push_back(place[i]);
  return json;
}

}  // namespace

TimelineRun RunOf(const CostedPipeline& pipeline, const Plan& plan, std::string name) {
  std::vector<double> durations;
  durations.reserve(plan.options.size());
  for (const CostOption& option : plan.options) durations.push_back(option.time_seconds);
  const Timing timing = Replay(pipeline.dag, durations);

  TimelineRun run;
  run.name = std::move(name);
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const CostOption& option = plan.options[i];
    run.start_ns.push_back(Nanoseconds(timing.start_seconds[i]));
    run.end_ns.push_back(Nanoseconds(timing.end_seconds[i]));
    run.knob.push_back(option.knob);
    run.joules.push_back(option.energy_joules);
    run.watts.push_back(option.time_seconds > 0 ? option.energy_joules / option.time_seconds : 0);
    if (plan.waiting == Waiting::kSetClock) run.knob_while_waiting.push_back(option.knob);
  }
  run.iteration_ns = Nanoseconds(timing.iteration_time_seconds);
  run.critical = CriticalComputations(pipeline.dag, timing);
  run.critical_path = TraceCriticalPath(pipeline.dag, timing);
  return run;
}

TimelineRun RunOf(const CostedPipeline& pipeline, const EmulatedPipeline& emulated,
                  double iteration_seconds, std::string name) {
  TimelineRun run;
  run.name = std::move(name);
  const auto count = static_cast<std::size_t>(pipeline.dag.size());
  run.start_ns.resize(count);
  run.end_ns.resize(count);
  run.knob.resize(count);
  run.joules.resize(count);
  run.watts.resize(count);
  for (const EmulatedComputation& each : emulated.computations) {
    const int i = each.computation;
    const double seconds = each.end_seconds - each.start_seconds;
    run.start_ns[i] = Nanoseconds(each.start_seconds);
    run.end_ns[i] = Nanoseconds(each.end_seconds);
    run.knob[i] = each.knob;
    run.joules[i] = each.joules;
    run.watts[i] = seconds > 0 ? each.joules / seconds : 0;
  }
  if (emulated.waiting == Waiting::kSetClock) run.knob_while_waiting = run.knob;
  run.iteration_ns = Nanoseconds(iteration_seconds);
  run.own_end_ns = Nanoseconds(emulated.end_seconds);
  return run;
}

Json TimelineChart(const CostedPipeline& pipeline, const std::vector<TimelineRun>& runs,
                   const std::string& knob_unit, bool joules, const std::string& legend,
                   int legend_of) {
  const PipelineDag& dag = pipeline.dag;
  std::vector<int> order;
  Json rank_first = Json::array({0});
  for (const std::vector<int>& of_rank : dag.rank_order) {
    order.insert(order.end(), of_rank.begin(), of_rank.end());
    rank_first.push_back(order.size());
  }
  Json kinds = Json::array();
  std::vector<int> kind_index(pipeline.tables.size());
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    const CostTable& table = pipeline.tables[t];
    if (table.same_kind_as >= 0) {
      kind_index[t] = kind_index[static_cast<std::size_t>(table.same_kind_as)];
      continue;
    }
    kind_index[t] = static_cast<int>(kinds.size());
    Json kind = {std::string(1, ComputationTypeLetter(table.type)), table.stage};
    if (table.fused_type) {
      kind.push_back(std::string(1, ComputationTypeLetter(*table.fused_type)));
      kind.push_back(table.fused_stage);
    }
    kinds.push_back(std::move(kind));
  }
  Json knobs = Json::array();
  for (const Knob& knob : pipeline.knobs) {
    knobs.push_back({{"label", knob.label}, {"value", RoundSignificant(knob.number, 12)}});
  }
  Json kind_of = Json::array(), microbatch = Json::array(), fused = Json::array();
  for (const int i : order) {
    const Computation& computation = dag.computations[i];
    kind_of.push_back(kind_index[pipeline.table_of[i]]);
    microbatch.push_back(computation.id.microbatch);
    fused.push_back(computation.fused ? computation.fused->microbatch : -1);
  }
  OptionPool pool(joules);
  Json all = Json::array();
  for (const TimelineRun& run : runs) all.push_back(RunJson(run, order, &pool));
  return {{"kind", "timeline"},
          {"isNumber", pipeline.knobs_are_numbers},
          {"unit", pipeline.knobs_are_numbers ? knob_unit : ""},
          {"knobs", std::move(knobs)},
          {"kinds", std::move(kinds)},
          {"rankStages", StagesOfRanks(dag)},
          {"rankFirst", std::move(rank_first)},
          {"kindOf", std::move(kind_of)},
          {"microbatch", std::move(microbatch)},
          {"fusedMicrobatch", std::move(fused)},
          {"options", pool.json()},
          {"runs", std::move(all)},
          {"legend", legend},
          {"legendOf", legend_of}};
}

std::string ComputationLabel(const Computation& computation) {
  const ComputationId& id = computation.id;
  std::string label = fmt::format("{}{}", ComputationTypeLetter(id.type), id.microbatch);
  if (computation.fused) {
    label += fmt::format("+{}{}", ComputationTypeLetter(computation.fused->type),
                         computation.fused->microbatch);
  }
  return label;
}

std::vector<std::vector<int>> StagesOfRanks(const PipelineDag& dag) {
  std::vector<std::set<int>> stages(dag.num_ranks);
  for (const Computation& computation : dag.computations) {
    stages[computation.rank].insert(computation.id.stage);
    if (computation.fused) stages[computation.rank].insert(computation.fused->stage);
  }
  std::vector<std::vector<int>> result;
  result.reserve(stages.size());
  for (const std::set<int>& of_rank : stages) result.emplace_back(of_rank.begin(), of_rank.end());
  return result;
}

}  // namespace perseus::report
