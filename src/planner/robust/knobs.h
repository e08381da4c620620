// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_KNOBS_H_
#define PERSEUS_ROBUST_KNOBS_H_

#include <algorithm>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "plan/cost_options.h"

namespace perseus::robust {

// [computation].
inline std::vector<int> KnobsOf(const std::vector<CostOption>& options) {
  std::vector<int> knobs;
  knobs.reserve(options.size());
  for (const CostOption& option : options) knobs.push_back(option.knob);
  return knobs;
}

// The options of all computations at one knob each; empty where one has no such option.
inline std::vector<CostOption> OptionsAt(const CostedPipeline& pipeline,
                                         const std::vector<int>& knobs) {
  std::vector<CostOption> options;
  options.reserve(knobs.size());
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const CostOption* const option = plan::FindOption(pipeline.TableOf(i), knobs[i]);
    if (option == nullptr) return {};
    options.push_back(*option);
  }
  return options;
}

// Lanes of a search: fewer where there are very many computations.
inline int LanesFor(int computations) {
  constexpr int kMostCells = 1 << 22;
  constexpr int kMostLanes = 128;
  return std::clamp(kMostCells / std::max(1, computations), 8, kMostLanes);
}

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_KNOBS_H_
