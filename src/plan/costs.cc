// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "perseus/costed_pipeline.h"
#include "perseus/planner.h"
#include "plan/cost_options.h"

namespace perseus {
namespace {

// The measured options of one (stage, type) as a rank runs them, by knob.
struct RankOptions {
  std::vector<CostOption> options;
  CostOption baseline;
  bool split = false;
};

RankOptions Scaled(const OptionTable& table, double time_share, double energy_factor) {
  RankOptions result;
  for (const Option& option : table.options) {
    result.options.push_back({.knob = option.knob,
                              .time_seconds = option.time_seconds * time_share,
                              .energy_joules = option.energy_joules * energy_factor,
                              .time_std_seconds = option.time_std_seconds * time_share});
  }
  result.baseline = result.options[table.baseline];
  std::stable_sort(result.options.begin(), result.options.end(),
                   [](const CostOption& a, const CostOption& b) { return a.knob < b.knob; });
  return result;
}

// The sum of two (of what runs as one, at one knob) or, with `sign` -1, the
// difference (of what is a part of the other). At the knobs that both have.
std::optional<RankOptions> Combined(const RankOptions& a, const RankOptions& b, double sign,
                                    bool knobs_are_ranked) {
  RankOptions result;
  result.split = a.split || b.split;
  // Options are in the order of knobs.
  for (auto first = a.options.begin(), second = b.options.begin();
       first != a.options.end() && second != b.options.end();) {
    if (first->knob != second->knob) {
      ++(first->knob < second->knob ? first : second);
      continue;
    }
    result.options.push_back(
        {.knob = first->knob,
         .time_seconds = first->time_seconds + sign * second->time_seconds,
         .energy_joules = first->energy_joules + sign * second->energy_joules,
         // Also of a difference: errors are no smaller than of its parts.
         .time_std_seconds = first->time_std_seconds + second->time_std_seconds});
    ++first;
    ++second;
  }
  if (result.options.empty()) return std::nullopt;
  // The baseline of both, if there is one, else as in the reader of profiles:
  // the highest knob, which is the first, or the fastest label.
  const auto baseline = std::min_element(
      result.options.begin(), result.options.end(), [&](const CostOption& x, const CostOption& y) {
        const bool x_last = x.knob != a.baseline.knob || x.knob != b.baseline.knob;
        const bool y_last = y.knob != a.baseline.knob || y.knob != b.baseline.knob;
        if (x_last != y_last) return y_last;
        return !knobs_are_ranked && std::tie(x.time_seconds, x.energy_joules) <
                                        std::tie(y.time_seconds, y.energy_joules);
      });
  result.baseline = *baseline;
  return result;
}

// Finds, splits or joins what the profile states into what the schedule runs.
class OptionSource {
 public:
  OptionSource(const Profile& profile, double energy_factor, double split_ratio)
      : profile_(profile),
        energy_factor_(energy_factor),
        split_ratio_(split_ratio),
        used_(profile.tables.size()) {}

  Result<RankOptions> Find(int stage, ComputationType type) {
    using enum ComputationType;
    if (const OptionTable* table = Use(stage, type)) {
      return Scaled(*table, 1.0, energy_factor_);
    }
    const OptionTable* backward = Use(stage, kBackward);
    if (backward != nullptr && (type == kBackwardInput || type == kBackwardWeight)) {
      const OptionTable* other =
          Use(stage, type == kBackwardInput ? kBackwardWeight : kBackwardInput);
      if (other != nullptr) return Rest(*backward, *other, type);
      const double share = type == kBackwardInput ? split_ratio_ : 1.0 - split_ratio_;
      RankOptions options = Scaled(*backward, share, share * energy_factor_);
      options.split = true;
      return options;
    }
    const OptionTable* input = Use(stage, kBackwardInput);
    const OptionTable* weight = Use(stage, kBackwardWeight);
    if (type == kBackward && input != nullptr && weight != nullptr) {
      auto joined = Combined(Scaled(*input, 1.0, energy_factor_),
                             Scaled(*weight, 1.0, energy_factor_), 1, profile_.KnobsAreRanked());
      if (joined) return *std::move(joined);
      return InvalidInput(fmt::format(
          "{}: the schedule runs {} of stage {}, and the profile's backward_input and "
          "backward_weight of it have no knob in common; measure both at the same knobs",
          profile_.source, ComputationTypeName(type), stage));
    }
    return InvalidInput(fmt::format(
        "{}: the schedule runs {} of stage {}, but the profile has no such rows; add rows with "
        "stage {} and instruction {}",
        profile_.source, ComputationTypeName(type), stage, stage, ComputationTypeName(type)));
  }

  // A sentence for each type of which something was never used.
  std::vector<std::string> Notes() const {
    std::vector<std::string> notes;
    for (int type = 0; type < kNumComputationTypes; ++type) {
      int unused = 0;
      int first = 0;
      for (std::size_t i = 0; i < used_.size(); ++i) {
        const OptionTable& table = profile_.tables[i];
        if (used_[i] || static_cast<int>(table.type) != type) continue;
        if (unused++ == 0) first = table.stage;
      }
      if (unused == 0) continue;
      notes.push_back(fmt::format(
          "the schedule does not run {} by itself, so the profile's rows of it are not used (stage "
          "{}{})",
          ComputationTypeName(static_cast<ComputationType>(type)), first,
          unused > 1 ? fmt::format(" and {} more", unused - 1) : ""));
    }
    return notes;
  }

 private:
  const OptionTable* Use(int stage, ComputationType type) {
    const OptionTable* table = profile_.Find(stage, type);
    if (table != nullptr) used_[static_cast<std::size_t>(table - profile_.tables.data())] = true;
    return table;
  }

  // What is left of `backward` without `part`, the other half: so that the two
  // halves together are the whole that was measured.
  Result<RankOptions> Rest(const OptionTable& backward, const OptionTable& part,
                           ComputationType type) const {
    const auto rest = Combined(Scaled(backward, 1.0, energy_factor_),
                               Scaled(part, 1.0, energy_factor_), -1, profile_.KnobsAreRanked());
    if (!rest) {
      return InvalidInput(fmt::format(
          "{}: the schedule runs {} of stage {}, which is backward less {}, and the profile has no "
          "knob at which both are measured; add rows with instruction {}",
          profile_.source, ComputationTypeName(type), part.stage, ComputationTypeName(part.type),
          ComputationTypeName(type)));
    }
    for (const CostOption& option : rest->options) {
      if (option.time_seconds > 0 && option.energy_joules > 0) continue;
      const bool is_time = !(option.time_seconds > 0);
      return InvalidInput(fmt::format(
          "{}: the schedule runs {} of stage {}, which is backward less {}, but at {} that is {} "
          "{}, as {} {} no less; correct the rows, or add some with instruction {}",
          profile_.source, ComputationTypeName(type), part.stage, ComputationTypeName(part.type),
          profile_.knobs[option.knob].label, is_time ? option.time_seconds : option.energy_joules,
          is_time ? "s" : "J", ComputationTypeName(part.type), is_time ? "takes" : "uses",
          ComputationTypeName(type)));
    }
    return *rest;
  }

  const Profile& profile_;
  double energy_factor_;
  double split_ratio_;
  std::vector<bool> used_;  // [table of the profile]
};

Result<void> CheckSpec(const Profile& profile, const PipelineDag& dag, const CostSpec& spec) {
  const auto powers = spec.blocking_power_watts.size();
  if (powers != 1 && powers != static_cast<std::size_t>(dag.num_ranks)) {
    return InvalidInput(fmt::format(
        "{} blocking powers are given for {} ranks; give one number for all, or one per rank",
        powers, dag.num_ranks));
  }
  for (const double watts : spec.blocking_power_watts) {
    if (!(watts >= 0) || !std::isfinite(watts)) {
      return InvalidInput(fmt::format("the blocking power is {} W; expected a number >= 0", watts));
    }
  }
  if (!(spec.split_ratio > 0 && spec.split_ratio < 1)) {
    return InvalidInput(fmt::format(
        "the split ratio is {}; expected a number between 0 and 1, the share of backward that is "
        "the input gradient",
        spec.split_ratio));
  }
  if (spec.tensor_parallel < 0) {
    return InvalidInput(
        fmt::format("tensor parallelism is {}; expected at least 1", spec.tensor_parallel));
  }
  if (profile.tensor_parallel_ranks > 0 && spec.tensor_parallel > 0 &&
      spec.tensor_parallel != profile.tensor_parallel_ranks) {
    return InvalidInput(fmt::format(
        "{}: the profile has {} tensor-parallel ranks (tp_rank), but {} are asked for; leave the "
        "number out or give {}",
        profile.source, profile.tensor_parallel_ranks, spec.tensor_parallel,
        profile.tensor_parallel_ranks));
  }
  if (dag.num_stages != profile.num_stages) {
    return InvalidInput(fmt::format(
        "{}: the profile has {} stages, the schedule {}; they must agree (stages = ranks x virtual "
        "stages)",
        profile.source, profile.num_stages, dag.num_stages));
  }
  return {};
}

}  // namespace

Result<CostedPipeline> CostPipeline(const Profile& profile, PipelineDag dag, const CostSpec& spec) {
  if (auto checked = CheckSpec(profile, dag, spec); !checked) {
    return tl::unexpected(checked.error());
  }
  CostedPipeline pipeline;
  pipeline.knobs = profile.knobs;
  pipeline.knobs_are_numbers = profile.knobs_are_numbers;
  pipeline.tensor_parallel = profile.tensor_parallel_ranks > 0 ? profile.tensor_parallel_ranks
                                                               : std::max(1, spec.tensor_parallel);
  const double gpus = pipeline.tensor_parallel;
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    const auto& watts = spec.blocking_power_watts;
    pipeline.rank_blocking_power_watts.push_back((watts.size() == 1 ? watts[0] : watts[rank]) *
                                                 gpus);
    pipeline.total_blocking_power_watts += pipeline.rank_blocking_power_watts.back();
  }

  OptionSource source(profile, profile.tensor_parallel_ranks > 0 ? 1.0 : gpus, spec.split_ratio);
  using Key = std::tuple<int, ComputationType, int, int>;  // stage, type, fused stage, fused type
  std::map<Key, int> known;
  pipeline.table_of.reserve(dag.computations.size());
  for (const Computation& computation : dag.computations) {
    const Action& action = computation.action;
    const Key key = {action.stage, action.type, computation.fused ? computation.fused->stage : -1,
                     computation.fused ? static_cast<int>(computation.fused->type) : -1};
    const auto [entry, added] = known.try_emplace(key, static_cast<int>(pipeline.tables.size()));
    pipeline.table_of.push_back(entry->second);
    if (!added) continue;
    auto options = source.Find(action.stage, action.type);
    if (!options) return tl::unexpected(options.error());
    CostTable table;
    table.stage = action.stage;
    table.type = action.type;
    if (computation.fused) {
      auto other = source.Find(computation.fused->stage, computation.fused->type);
      if (!other) return tl::unexpected(other.error());
      auto joined = Combined(*options, *other, 1, profile.KnobsAreRanked());
      if (!joined) {
        return InvalidInput(fmt::format(
            "{}: {} of stage {} and {} of stage {} run as one, but have no knob in common; measure "
            "both at the same knobs",
            profile.source, ComputationTypeName(action.type), action.stage,
            ComputationTypeName(computation.fused->type), computation.fused->stage));
      }
      options = *std::move(joined);
      table.fused_type = computation.fused->type;
      table.fused_stage = computation.fused->stage;
    }
    table.blocking_power_watts = pipeline.rank_blocking_power_watts[computation.rank];
    table.baseline = options->baseline;
    table.split = options->split;
    table.all_options = options->options;
    table.options = plan::ParetoOptions(table, plan::Guard{});
    table.dominated = static_cast<int>(table.all_options.size() - table.options.size());
    pipeline.tables.push_back(std::move(table));
  }
  pipeline.notes = source.Notes();
  pipeline.modelled = profile.modelled;
  pipeline.dag = std::move(dag);
  return pipeline;
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

}  // namespace perseus
