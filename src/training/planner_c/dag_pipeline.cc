// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "planner_c/dag_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <queue>
#include <string>
#include <utility>

#include "plan/limits.h"

namespace perseus::planner_c {
namespace {

constexpr std::size_t kMostPrecedences = std::size_t{1} << 26;

Result<void> CheckDag(const perseus_dag& dag) {
  if (dag.reserved != 0) return InvalidInput("'reserved' of the graph is not 0");
  if (dag.num_operations < 1 || dag.num_operations > plan::kMostComputations) {
    return InvalidInput(fmt::format("the graph has {} operations; expected 1 to {}",
                                    dag.num_operations, plan::kMostComputations));
  }
  if (dag.num_curves < 1 || dag.num_curves > dag.num_operations) {
    return InvalidInput(fmt::format(
        "the graph has {} tables of options; expected 1 to the number of operations, {}",
        dag.num_curves, dag.num_operations));
  }
  if (dag.num_precedences > kMostPrecedences) {
    return InvalidInput(fmt::format("the graph has {} edges; expected at most {}",
                                    dag.num_precedences, kMostPrecedences));
  }
  if (dag.curve_of == nullptr || dag.first_option == nullptr || dag.option_time == nullptr ||
      dag.option_cost == nullptr ||
      (dag.num_precedences > 0 && (dag.from == nullptr || dag.to == nullptr))) {
    return InvalidInput("an array of the graph is missing");
  }
  if (dag.first_option[0] != 0) return InvalidInput("the first options do not begin at 0");
  for (int curve = 0; curve < dag.num_curves; ++curve) {
    if (dag.first_option[curve + 1] <= dag.first_option[curve]) {
      return InvalidInput(fmt::format("option table {} is empty", curve));
    }
    for (int k = dag.first_option[curve]; k < dag.first_option[curve + 1]; ++k) {
      const double time = dag.option_time[k];
      const double cost = dag.option_cost[k];
      if (time >= 0 && std::isfinite(time) && std::isfinite(cost)) continue;
      return InvalidInput(
          fmt::format("option {} of table {} takes {} and costs {}; expected a time that is not "
                      "negative, and finite numbers",
                      k - dag.first_option[curve], curve, time, cost));
    }
  }
  for (int i = 0; i < dag.num_operations; ++i) {
    if (dag.curve_of[i] >= 0 && dag.curve_of[i] < dag.num_curves) continue;
    return InvalidInput(fmt::format("operation {} names option table {}; there are {}", i,
                                    dag.curve_of[i], dag.num_curves));
  }
  for (int i = 0; dag.rank != nullptr && i < dag.num_operations; ++i) {
    if (dag.rank[i] >= 0 && dag.rank[i] < dag.num_operations) continue;
    return InvalidInput(fmt::format("operation {} is on rank {}; expected 0 to {}", i, dag.rank[i],
                                    dag.num_operations - 1));
  }
  for (int i = 0; dag.begin != nullptr && i < dag.num_operations; ++i) {
    if (dag.begin[i] >= 0 && std::isfinite(dag.begin[i])) continue;
    return InvalidInput(
        fmt::format("operation {} begins at {}; expected a finite number >= 0", i, dag.begin[i]));
  }
  for (std::size_t e = 0; e < dag.num_precedences; ++e) {
    for (const int end : {dag.from[e], dag.to[e]}) {
      if (end >= 0 && end < dag.num_operations) continue;
      return InvalidInput(
          fmt::format("edge {} names operation {}; there are {}", e, end, dag.num_operations));
    }
    const double delay = dag.delay == nullptr ? 0 : dag.delay[e];
    if (delay >= 0 && std::isfinite(delay)) continue;
    return InvalidInput(
        fmt::format("edge {} has a delay of {}; expected a finite number >= 0", e, delay));
  }
  return {};
}

struct Successors {
  std::vector<int> first;  // [operation], and one more
  std::vector<int> edges;
};

Successors SuccessorsOf(const perseus_dag& dag) {
  Successors out;
  out.first.assign(dag.num_operations + 1, 0);
  for (std::size_t e = 0; e < dag.num_precedences; ++e) ++out.first[dag.from[e] + 1];
  for (int i = 0; i < dag.num_operations; ++i) out.first[i + 1] += out.first[i];
  out.edges.resize(dag.num_precedences);
  std::vector<int> next(out.first.begin(), out.first.end() - 1);
  for (std::size_t e = 0; e < dag.num_precedences; ++e) {
    out.edges[next[dag.from[e]]++] = static_cast<int>(e);
  }
  return out;
}

// Operations so that each comes after what it waits for; of several that could be next, the first.
Result<std::vector<int>> TopologicalOrder(const perseus_dag& dag, const Successors& successors) {
  std::vector<int> waits_for(dag.num_operations, 0);
  for (std::size_t e = 0; e < dag.num_precedences; ++e) ++waits_for[dag.to[e]];
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < dag.num_operations; ++i) {
    if (waits_for[i] == 0) ready.push(i);
  }
  std::vector<int> order;
  order.reserve(dag.num_operations);
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (int k = successors.first[i]; k < successors.first[i + 1]; ++k) {
      const int to = dag.to[successors.edges[k]];
      if (--waits_for[to] == 0) ready.push(to);
    }
  }
  if (order.size() == static_cast<std::size_t>(dag.num_operations)) return order;
  const auto stuck = std::find_if(waits_for.begin(), waits_for.end(), [](int n) { return n > 0; });
  return InvalidInput(
      fmt::format("the graph has a cycle: operation {} waits, in the end, for itself or for one "
                  "that does",
                  stuck - waits_for.begin()));
}

CostTable TableOf(const perseus_dag& dag, int curve) {
  CostTable table;
  const int begin = dag.first_option[curve];
  for (int k = begin; k < dag.first_option[curve + 1]; ++k) {
    CostOption option;
    option.knob = k - begin;
    option.time_seconds = dag.option_time[k];
    option.energy_joules = dag.option_cost[k];
    table.all_options.push_back(option);
  }
  std::vector<CostOption> sorted = table.all_options;
  std::stable_sort(sorted.begin(), sorted.end(), [](const CostOption& a, const CostOption& b) {
    return a.time_seconds != b.time_seconds ? a.time_seconds < b.time_seconds
                                            : a.energy_joules < b.energy_joules;
  });
  for (const CostOption& option : sorted) {
    if (table.options.empty() || option.energy_joules < table.options.back().energy_joules) {
      table.options.push_back(option);
    }
  }
  table.dominated = static_cast<int>(table.all_options.size() - table.options.size());
  table.baseline = table.options.front();
  return table;
}

// The precedences in the order of PipelineDag, one for each pair.
void AddPrecedences(const perseus_dag& dag, const std::vector<int>& computation_of,
                    PipelineDag* out) {
  for (std::size_t e = 0; e < dag.num_precedences; ++e) {
    out->precedences.push_back({computation_of[dag.from[e]], computation_of[dag.to[e]],
                                dag.delay == nullptr ? 0 : dag.delay[e]});
  }
  std::sort(out->precedences.begin(), out->precedences.end(),
            [](const Precedence& a, const Precedence& b) {
              if (a.to != b.to) return a.to < b.to;
              return a.from != b.from ? a.from < b.from : a.delay_seconds > b.delay_seconds;
            });
  const auto same = [](const Precedence& a, const Precedence& b) {
    return a.to == b.to && a.from == b.from;
  };
  out->precedences.erase(std::unique(out->precedences.begin(), out->precedences.end(), same),
                         out->precedences.end());
  out->first_precedence.assign(out->computations.size() + 1, 0);
  for (const Precedence& p : out->precedences) ++out->first_precedence[p.to + 1];
  for (std::size_t i = 0; i < out->computations.size(); ++i) {
    out->first_precedence[i + 1] += out->first_precedence[i];
  }
}

// Where ranks are not given, a computation goes on that of the first that it waits for and nothing
// else follows yet: the search looks at neighbours on a rank together.
void AddRanks(const perseus_dag& dag, PipelineDag* out) {
  std::vector<bool> followed(out->computations.size(), false);
  if (dag.rank != nullptr) {
    out->rank_order.resize(*std::max_element(dag.rank, dag.rank + dag.num_operations) + 1);
  }
  for (int i = 0; i < out->size(); ++i) {
    int rank = dag.rank == nullptr ? -1 : dag.rank[out->computations[i].id.microbatch];
    for (int k = out->first_precedence[i]; rank < 0 && k < out->first_precedence[i + 1]; ++k) {
      const int before = out->precedences[k].from;
      if (followed[before]) continue;
      followed[before] = true;
      rank = out->computations[before].rank;
    }
    if (rank < 0) {
      rank = static_cast<int>(out->rank_order.size());
      out->rank_order.emplace_back();
    }
    out->computations[i].rank = rank;
    out->computations[i].position = static_cast<int>(out->rank_order[rank].size());
    out->rank_order[rank].push_back(i);
  }
  out->num_ranks = static_cast<int>(out->rank_order.size());
}

}  // namespace

Result<DagPipeline> MakeDagPipeline(const perseus_dag& dag) {
  if (auto good = CheckDag(dag); !good) return tl::unexpected(good.error());
  const Result<std::vector<int>> order = TopologicalOrder(dag, SuccessorsOf(dag));
  if (!order) return tl::unexpected(order.error());

  DagPipeline made;
  CostedPipeline& costs = made.pipeline;
  std::size_t most_options = 0;
  // The solver's numbers are scaled to what is used, so nothing else may be there.
  std::vector<int> table_of(dag.num_curves, -1);
  for (int i = 0; i < dag.num_operations; ++i) {
    const int curve = dag.curve_of[i];
    if (table_of[curve] >= 0) continue;
    table_of[curve] = static_cast<int>(costs.tables.size());
    costs.tables.push_back(TableOf(dag, curve));
    most_options = std::max(most_options, costs.tables.back().all_options.size());
  }
  for (std::size_t k = 0; k < most_options; ++k) {
    costs.knobs.push_back({.label = fmt::format("{}", k), .number = static_cast<double>(k)});
  }
  costs.knobs_are_numbers = false;

  PipelineDag& out = costs.dag;
  out.num_stages = 1;
  out.num_microbatches = dag.num_operations;
  out.schedule_name = "graph";
  made.computation_of.resize(dag.num_operations);
  for (int i = 0; i < dag.num_operations; ++i) {
    const int operation = (*order)[i];
    made.computation_of[operation] = i;
    Computation computation;
    computation.id.microbatch = operation;
    out.computations.push_back(computation);
    out.start_delay_seconds.push_back(dag.begin == nullptr ? 0 : dag.begin[operation]);
    costs.table_of.push_back(table_of[dag.curve_of[operation]]);
  }
  AddPrecedences(dag, made.computation_of, &out);
  AddRanks(dag, &out);
  costs.rank_blocking_power_watts.assign(out.num_ranks, 0);
  return made;
}

}  // namespace perseus::planner_c
