// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/page_data.h"

#include <map>
#include <tuple>
#include <vector>

#include "model/iteration_energy.h"
#include "report/text.h"
#include "report/timeline.h"

namespace perseus::report {
namespace {

using Json = nlohmann::ordered_json;

// Numbers the distinct (knob, time, energy) triples of both plans.
class OptionPool {
 public:
  int Index(const CostOption& option) {
    const auto key = std::tuple(option.knob, option.time_seconds, option.energy_joules);
    const auto [entry, is_new] = index_.try_emplace(key, static_cast<int>(index_.size()));
    if (is_new) {
      json_.push_back({option.knob, RoundSignificant(option.energy_joules, 7),
                       option.time_seconds > 0
                           ? RoundSignificant(option.energy_joules / option.time_seconds, 6)
                           : 0.0});
    }
    return entry->second;
  }
  const Json& json() const { return json_; }

 private:
  std::map<std::tuple<int, double, double>, int> index_;
  Json json_ = Json::array();
};

// [rank] The mean power of its waits, where that depends on the clock.
Json WaitingPower(const CostedPipeline& pipeline, const Plan& plan) {
  Json watts = Json::array();
  std::vector<double> durations;
  durations.reserve(plan.options.size());
  for (const CostOption& option : plan.options) durations.push_back(option.time_seconds);
  const Timing timing = Replay(pipeline.dag, durations);
  const auto dearer = model::DearerWaitingJoules(pipeline, plan.options, plan.waiting, timing);
  for (std::size_t rank = 0; rank < dearer.size(); ++rank) {
    double seconds = timing.iteration_time_seconds;
    for (const int i : pipeline.dag.rank_order[rank]) seconds -= durations[i];
    const double mean = seconds > 0 ? dearer[rank] / seconds : 0;
    watts.push_back(RoundSignificant(pipeline.rank_blocking_power_watts[rank] + mean, 6));
  }
  return watts;
}

Json PlanData(const ReportInput& input, const Plan& plan, std::string_view name,
              const std::vector<int>& order, OptionPool& pool) {
  const Timeline timeline = LayOut(*input.pipeline, plan);
  Json start = Json::array();
  Json duration = Json::array();
  Json option = Json::array();
  Json critical = Json::array();
  std::vector<int> place(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    const int i = order[k];
    place[i] = static_cast<int>(k);
    start.push_back(timeline.start_ns[i]);
    duration.push_back(timeline.end_ns[i] - timeline.start_ns[i]);
    option.push_back(pool.Index(plan.options[i]));
    if (timeline.critical[i]) critical.push_back(k);
  }
  Json path = Json::array();
  for (const int i : timeline.critical_path) path.push_back(place[i]);
  Json data = {{"name", name},     {"time", timeline.iteration_ns},
               {"start", start},   {"duration", duration},
               {"option", option}, {"critical", critical},
               {"path", path},     {"power", RoundSignificant(plan.average_power_watts, 6)}};
  if (Json waiting = WaitingPower(*input.pipeline, plan); !waiting.empty()) {
    data["rankPower"] = std::move(waiting);
  }
  return data;
}

}  // namespace

Json PageData(const ReportInput& input, const FrontierPlot& plot) {
  const CostedPipeline& pipeline = *input.pipeline;
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
    kinds.push_back(kind);
  }
  Json knobs = Json::array();
  for (const Knob& knob : pipeline.knobs) {
    knobs.push_back({{"label", knob.label}, {"value", RoundSignificant(knob.number, 12)}});
  }
  Json kind = Json::array();
  Json microbatch = Json::array();
  Json fused_microbatch = Json::array();
  for (const int i : order) {
    const Computation& computation = dag.computations[i];
    kind.push_back(kind_index[pipeline.table_of[i]]);
    microbatch.push_back(computation.id.microbatch);
    fused_microbatch.push_back(computation.fused ? computation.fused->microbatch : -1);
  }
  Json rank_power = Json::array();
  for (const double watts : pipeline.rank_blocking_power_watts) {
    rank_power.push_back(RoundSignificant(watts, 6));
  }

  OptionPool pool;
  Json plans = Json::array();
  plans.push_back(PlanData(input, *input.baseline, "before", order, pool));
  plans.push_back(PlanData(input, *input.chosen, "after", order, pool));
  return {{"knobsAreNumbers", pipeline.knobs_are_numbers},
          {"knobUnit", pipeline.knobs_are_numbers ? input.knob_unit : ""},
          {"knobs", knobs},
          {"kinds", kinds},
          {"rankStages", StagesOfRanks(dag)},
          {"rankPower", rank_power},
          {"rankFirst", rank_first},
          {"kind", kind},
          {"microbatch", microbatch},
          {"fusedMicrobatch", fused_microbatch},
          {"options", pool.json()},
          {"plans", plans},
          {"plot", plot.hover}};
}

}  // namespace perseus::report
