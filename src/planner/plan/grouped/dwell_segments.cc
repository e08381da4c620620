// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped/dwell_segments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace perseus::plan {
namespace {

struct Stretch {
  std::vector<int> members;
  Phase phase = Phase::kWarmUp;  // Of the first member.
};

std::vector<Stretch> ShortStretches(const CostedPipeline& pipeline,
                                    const std::vector<Phase>& phases, const std::vector<int>& order,
                                    double dwell_seconds) {
  std::vector<Stretch> stretches;
  double seconds = 0;
  bool open = false;
  for (const int i : order) {
    if (!open) {
      stretches.push_back({{}, phases[i]});
      seconds = 0;
    }
    stretches.back().members.push_back(i);
    seconds += pipeline.TableOf(i).options.front().time_seconds;
    open = seconds < dwell_seconds;
  }
  if (open && stretches.size() > 1) {
    std::vector<int> rest = std::move(stretches.back().members);
    stretches.pop_back();
    std::vector<int>& before = stretches.back().members;
    before.insert(before.end(), rest.begin(), rest.end());
  }
  return stretches;
}

// Joins neighbours two by two within a phase; everything where no phase has
// two.
std::vector<Stretch> Joined(const std::vector<Stretch>& stretches) {
  std::vector<Stretch> joined;
  const auto join = [&joined](const Stretch& stretch) {
    std::vector<int>& members = joined.back().members;
    members.insert(members.end(), stretch.members.begin(), stretch.members.end());
  };
  for (std::size_t k = 0; k < stretches.size(); ++k) {
    joined.push_back(stretches[k]);
    if (k + 1 < stretches.size() && stretches[k + 1].phase == stretches[k].phase) {
      join(stretches[++k]);
    }
  }
  if (joined.size() < stretches.size()) return joined;
  joined = {stretches.front()};
  for (std::size_t k = 1; k < stretches.size(); ++k) join(stretches[k]);
  return joined;
}

}  // namespace

std::vector<double> WholeCycles(const CostedPipeline& pipeline, double dwell_seconds) {
  constexpr double kRounding = 1e-9;  // Sums of a cycle's times in another order are the same time.
  std::vector<double> seconds;
  for (const std::vector<int>& order : pipeline.dag.rank_order) {
    double cycle = 0;
    for (const int i : order) cycle += pipeline.TableOf(i).options.front().time_seconds;
    cycle /= std::max(1, pipeline.dag.num_microbatches);
    const double cycles = cycle > 0 ? std::ceil(dwell_seconds / cycle - kRounding) : 0;
    seconds.push_back(std::max(dwell_seconds, cycles * cycle * (1 - kRounding)));
  }
  return seconds;
}

DwellLevelList DwellLevels(const CostedPipeline& pipeline,
                           const std::vector<double>& least_seconds) {
  const std::vector<Phase> phases = ComputationPhases(pipeline.dag);
  std::vector<std::vector<Stretch>> ranks;
  for (std::size_t r = 0; r < least_seconds.size(); ++r) {
    ranks.push_back(ShortStretches(pipeline, phases, pipeline.dag.rank_order[r], least_seconds[r]));
  }
  DwellLevelList levels;
  for (bool joined = true; joined;) {
    joined = false;
    std::vector<std::vector<int>>& groups = levels.emplace_back();
    for (std::vector<Stretch>& stretches : ranks) {
      for (const Stretch& stretch : stretches) {
        groups.push_back(stretch.members);
        std::sort(groups.back().begin(), groups.back().end());
      }
      if (stretches.size() < 2) continue;
      joined = true;
      stretches = Joined(stretches);
    }
  }
  std::reverse(levels.begin(), levels.end());
  return levels;
}

}  // namespace perseus::plan
