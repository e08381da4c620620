// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "analyse/stage_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace perseus::analyse {
namespace {

const Option* FindKnob(const OptionTable& table, int knob) {
  const auto found = std::find_if(table.options.begin(), table.options.end(),
                                  [knob](const Option& option) { return option.knob == knob; });
  return found == table.options.end() ? nullptr : &*found;
}

// "stages 0 to 7": parts are neighbours.
std::string StageNames(const std::vector<StagePart>& parts) {
  if (parts.size() == 1) return fmt::format("stage {}", parts.front().stage);
  return fmt::format("stages {} to {}", parts.front().stage, parts.back().stage);
}

// The sum of the parts' tables of one type; empty where one has none, without
// options where they have no knob in common.
std::optional<OptionTable> SumOfTables(const Profile& profile, const std::vector<StagePart>& parts,
                                       int stage, ComputationType type) {
  std::vector<const OptionTable*> tables;
  for (const StagePart& part : parts) {
    tables.push_back(profile.Find(part.stage, type));
    if (tables.back() == nullptr) return std::nullopt;
  }
  OptionTable sum;
  sum.stage = stage;
  sum.type = type;
  const OptionTable& first = *tables.front();
  const int preferred = first.options[first.baseline].knob;
  for (const Option& candidate : first.options) {
    Option added;
    added.knob = candidate.knob;
    bool all_have_it = true;
    for (std::size_t i = 0; i < parts.size() && all_have_it; ++i) {
      const Option* option = FindKnob(*tables[i], candidate.knob);
      all_have_it = option != nullptr;
      if (!all_have_it) break;
      const Share& share = parts[i].Of(type);
      added.time_seconds += share.time * option->time_seconds;
      added.energy_joules += share.energy * option->energy_joules;
      added.time_std_seconds += share.time * option->time_std_seconds;
      added.energy_std_joules += share.energy * option->energy_std_joules;
    }
    if (!all_have_it) continue;
    // The first part's baseline, which comes before all others where it is a
    // label; else the highest clock or first label in common.
    const auto index = static_cast<int>(sum.options.size());
    sum.options.push_back(added);
    const int chosen = sum.options[sum.baseline].knob;
    if (chosen != preferred && added.knob < chosen) sum.baseline = index;
  }
  return sum;
}

Result<void> AddStage(const Profile& profile, const std::vector<StagePart>& parts, int stage,
                      Profile* composed) {
  std::array<bool, kNumComputationTypes> has = {};
  for (const ComputationType type : kComputationTypes) {
    auto table = SumOfTables(profile, parts, stage, type);
    if (!table) continue;
    const bool had_choice = std::all_of(parts.begin(), parts.end(), [&](const StagePart& part) {
      return profile.Find(part.stage, type)->options.size() > 1;
    });
    if (table->options.size() < (had_choice ? 2U : 1U)) {
      return InvalidInput(
          fmt::format("{}: {} of {} have {} in common, too few to plan with; measure them at the "
                      "same knobs",
                      profile.source, ComputationTypeName(type), StageNames(parts),
                      table->options.empty() ? "no knob" : "a single knob"));
    }
    has[static_cast<std::size_t>(type)] = true;
    composed->rows += static_cast<int>(table->options.size());
    composed->tables.push_back(*std::move(table));
  }
  const auto [forward, backward, input, weight, recompute] = has;
  if (forward && (backward || (input && weight))) return {};
  return InvalidInput(
      fmt::format("{}: {} cannot be put together, because some have backward and others "
                  "backward_input and backward_weight; measure the same instructions for all",
                  profile.source, StageNames(parts)));
}

}  // namespace

namespace {

// What its GPUs draw while they wait: the mean of the parts.
void AddWaiting(const Profile& profile, const std::vector<StagePart>& parts, int stage,
                Profile* composed) {
  const bool said = std::all_of(parts.begin(), parts.end(), [&](const StagePart& part) {
    return profile.SaysWaitingOf(part.stage);
  });
  if (!said) return;
  for (int knob = 0; knob < static_cast<int>(profile.knobs.size()); ++knob) {
    double watts = 0;
    for (const StagePart& part : parts) watts += profile.WaitingWattsOf(part.stage, knob);
    composed->waiting.push_back({.stage = stage,
                                 .knob = profile.knobs[static_cast<std::size_t>(knob)],
                                 .watts = watts / static_cast<double>(parts.size())});
  }
}

}  // namespace

Result<Profile> ComposeProfile(const Profile& profile,
                               const std::vector<std::vector<StagePart>>& stages) {
  Profile composed;
  composed.source = profile.source;
  composed.sha256 = profile.sha256;
  composed.knobs = profile.knobs;
  composed.knobs_are_numbers = profile.knobs_are_numbers;
  composed.tensor_parallel_ranks = profile.tensor_parallel_ranks;
  composed.num_stages = static_cast<int>(stages.size());
  for (int stage = 0; stage < composed.num_stages; ++stage) {
    if (auto added = AddStage(profile, stages[stage], stage, &composed); !added) {
      return tl::unexpected(added.error());
    }
    AddWaiting(profile, stages[stage], stage, &composed);
  }
  return composed;
}

Result<Profile> MergeStages(const Profile& profile, int stages) {
  std::vector<std::vector<StagePart>> parts(stages);
  const int group = profile.num_stages / stages;
  for (int stage = 0; stage < profile.num_stages; ++stage) {
    parts[stage / group].push_back({.stage = stage});
  }
  return ComposeProfile(profile, parts);
}

Result<Profile> EvenStages(const Profile& profile) {
  const double share = 1.0 / profile.num_stages;
  std::vector<StagePart> all(profile.num_stages);
  for (int stage = 0; stage < profile.num_stages; ++stage) {
    all[stage].stage = stage;
    all[stage].shares.fill({share, share});
  }
  return ComposeProfile(profile, std::vector(profile.num_stages, all));
}

double PartSeconds(const Profile& profile, const StagePart& part) {
  using enum ComputationType;
  const auto seconds = [&](ComputationType type) {
    const OptionTable* table = profile.Find(part.stage, type);
    if (table == nullptr) return 0.0;
    return part.Of(type).time * table->options[table->baseline].time_seconds;
  };
  const bool whole = profile.Find(part.stage, kBackward) != nullptr;
  return seconds(kForward) + seconds(kRecompute) +
         (whole ? seconds(kBackward) : seconds(kBackwardInput) + seconds(kBackwardWeight));
}

}  // namespace perseus::analyse
