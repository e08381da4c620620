// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "policy/zeus_policies.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace perseus::policy {
namespace {

// What one knob does to a rank.
struct RankAtKnob {
  std::vector<std::pair<int, int>> options;  // (table, option) of each table of the rank.
  double forward_seconds = 0;                // Of one microbatch (their mean), all its stages.
  double effective_joules = 0;               // Of an iteration.
};

// The tables of forwards, one for each stage: a forward that runs fused with a
// backward only where the stage has no other.
// [table]: its share of the forwards of its stage.
std::vector<double> ForwardShares(const CostedPipeline& pipeline, const std::vector<int>& uses) {
  constexpr int kNone = -1;
  std::vector<int> of_stage(pipeline.dag.num_stages, kNone);
  for (std::size_t i = 0; i < pipeline.tables.size(); ++i) {
    const CostTable& table = pipeline.tables[i];
    if (table.type != ComputationType::kForward || table.same_kind_as >= 0) continue;
    int& chosen = of_stage[table.stage];
    if (chosen == kNone || (pipeline.tables[chosen].fused_type && !table.fused_type)) {
      chosen = static_cast<int>(i);
    }
  }
  std::vector<int> uses_of_kind(pipeline.tables.size());
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    uses_of_kind[pipeline.KindOf(static_cast<int>(t))] += uses[t];
  }
  std::vector<double> shares(pipeline.tables.size());
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    const int kind = pipeline.KindOf(static_cast<int>(t));
    if (pipeline.tables[t].type != ComputationType::kForward ||
        of_stage[pipeline.tables[t].stage] != kind) {
      continue;
    }
    shares[t] = static_cast<double>(uses[t]) / uses_of_kind[kind];  // 1 where it is alone.
  }
  return shares;
}

// [rank][knob]; empty where a table of the rank has no option for the knob.
std::vector<std::vector<std::optional<RankAtKnob>>> RanksAtKnobs(const CostedPipeline& pipeline) {
  const std::vector<int> rank_of = RanksOfTables(pipeline);
  const std::vector<int> uses = UsesOfTables(pipeline);
  const std::vector<double> forward_share = ForwardShares(pipeline, uses);
  std::vector<std::vector<std::optional<RankAtKnob>>> ranks(
      pipeline.dag.num_ranks,
      std::vector<std::optional<RankAtKnob>>(pipeline.knobs.size(), RankAtKnob{}));
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    const CostTable& table = pipeline.tables[t];
    for (std::size_t knob = 0; knob < pipeline.knobs.size(); ++knob) {
      std::optional<RankAtKnob>& rank = ranks[rank_of[t]][knob];
      if (!rank) continue;
      const std::optional<int> index = OptionAt(pipeline, table, static_cast<int>(knob));
      if (!index) {
        rank.reset();
        continue;
      }
      const CostOption& option = table.all_options[*index];
      rank->options.emplace_back(static_cast<int>(t), *index);
      rank->forward_seconds += forward_share[t] * option.time_seconds;
      rank->effective_joules += uses[t] * EffectiveEnergy(table, option);
    }
  }
  return ranks;
}

}  // namespace

std::vector<TableChoice> ZeusGlobalMembers(const CostedPipeline& pipeline) {
  std::vector<TableChoice> members;
  for (std::size_t knob = 0; knob < pipeline.knobs.size(); ++knob) {
    TableChoice choice;
    for (const CostTable& table : pipeline.tables) {
      const std::optional<int> option = OptionAt(pipeline, table, static_cast<int>(knob));
      if (!option) break;
      choice.push_back(*option);
    }
    if (choice.size() == pipeline.tables.size()) members.push_back(std::move(choice));
  }
  return members;
}

std::vector<TableChoice> ZeusPerStageMembers(const CostedPipeline& pipeline) {
  const auto ranks = RanksAtKnobs(pipeline);
  std::vector<TableChoice> members;
  for (std::size_t knob = 0; knob < pipeline.knobs.size(); ++knob) {
    if (!std::all_of(ranks.begin(), ranks.end(),
                     [knob](const auto& at) { return at[knob].has_value(); })) {
      continue;
    }
    double longest_seconds = 0;
    for (const auto& at : ranks) {
      longest_seconds = std::max(longest_seconds, at[knob]->forward_seconds);
    }
    TableChoice choice(pipeline.tables.size());
    for (const auto& at : ranks) {
      const RankAtKnob* best = &*at[knob];
      for (const std::optional<RankAtKnob>& other : at) {
        if (other && other->forward_seconds <= longest_seconds &&
            other->effective_joules < best->effective_joules) {
          best = &*other;
        }
      }
      for (const auto& [table, option] : best->options) choice[table] = option;
    }
    members.push_back(std::move(choice));
  }
  return members;
}

}  // namespace perseus::policy
