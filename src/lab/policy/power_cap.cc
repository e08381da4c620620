// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "policy/power_cap.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace perseus::policy {
namespace {

// Of the rank: all have as many GPUs, so to compare them is to compare GPUs.
double Watts(const CostOption& option) { return option.energy_joules / option.time_seconds; }

// Ascending, at most kMostPowerCaps. The lowest is one that all can keep to.
std::vector<double> Caps(const CostedPipeline& pipeline) {
  std::vector<double> caps;
  double lowest = 0;
  for (const CostTable& table : pipeline.tables) {
    if (table.same_kind_as >= 0) continue;  // The same powers.
    double least = std::numeric_limits<double>::infinity();
    for (const CostOption& option : table.all_options) {
      caps.push_back(Watts(option));
      least = std::min(least, caps.back());
    }
    lowest = std::max(lowest, least);
  }
  std::sort(caps.begin(), caps.end());
  caps.erase(std::unique(caps.begin(), caps.end()), caps.end());
  caps.erase(caps.begin(), std::lower_bound(caps.begin(), caps.end(), lowest));
  if (caps.size() <= kMostPowerCaps) return caps;
  std::vector<double> thinned;
  for (std::size_t i = 0; i < kMostPowerCaps; ++i) {
    thinned.push_back(caps[i * (caps.size() - 1) / (kMostPowerCaps - 1)]);
  }
  return thinned;
}

// Precondition: an option is within the cap.
int OptionWithin(const CostedPipeline& pipeline, const CostTable& table, double cap_watts) {
  int best = -1;
  for (std::size_t i = 0; i < table.all_options.size(); ++i) {
    const CostOption& option = table.all_options[i];
    if (Watts(option) > cap_watts) continue;
    if (best >= 0 && option.time_seconds >= table.all_options[best].time_seconds) continue;
    best = static_cast<int>(i);
    if (pipeline.knobs_are_numbers) break;  // Highest clock first.
  }
  return best;
}

}  // namespace

std::vector<TableChoice> PowerCapMembers(const CostedPipeline& pipeline) {
  std::vector<TableChoice> members;
  for (const double cap_watts : Caps(pipeline)) {
    TableChoice choice;
    for (int table = 0; table < static_cast<int>(pipeline.tables.size()); ++table) {
      const int kind = pipeline.KindOf(table);
      choice.push_back(kind < table ? choice[kind]
                                    : OptionWithin(pipeline, pipeline.tables[table], cap_watts));
    }
    members.push_back(std::move(choice));
  }
  return members;
}

}  // namespace perseus::policy
