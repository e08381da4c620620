// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped/rank_patterns.h"

namespace perseus::plan {

RankPatterns::RankPatterns(const CostedPipeline& pipeline, const Guard& guard)
    : pipeline_(pipeline) {
  for (const CostTable& table : pipeline.tables) {
    seconds_.emplace_back(pipeline.knobs.size(), kNoWay);
    joules_.emplace_back(pipeline.knobs.size(), kNoWay);
    for (const CostOption& option : table.all_options) {
      seconds_.back()[option.knob] = guard.Seconds(table, option);
      joules_.back()[option.knob] = EffectiveEnergy(table, option);
    }
  }
}

RankPatterns::Allowed RankPatterns::All() const {
  Allowed allowed(pipeline_.table_of.size(), std::vector<std::uint8_t>(num_knobs(), 0));
  for (const std::vector<int>& order : pipeline_.dag.rank_order) {
    const auto beats = [&](int a, int b) {
      bool same = true;
      for (const int i : order) {
        if (Seconds(i, a) > Seconds(i, b) || Joules(i, a) > Joules(i, b)) return false;
        same = same && Seconds(i, a) == Seconds(i, b) && Joules(i, a) == Joules(i, b);
      }
      return !same || a < b;
    };
    for (int knob = 0; knob < num_knobs(); ++knob) {
      bool beaten = false;
      for (int other = 0; other < num_knobs() && !beaten; ++other) {
        beaten = other != knob && beats(other, knob);
      }
      if (beaten) continue;
      for (const int i : order) allowed[i][knob] = Seconds(i, knob) < kNoWay ? 1 : 0;
    }
  }
  return allowed;
}

}  // namespace perseus::plan
