// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_WALKS_FEW_KNOBS_H_
#define PERSEUS_ROBUST_WALKS_FEW_KNOBS_H_

#include <vector>

#include "perseus/costed_pipeline.h"

namespace perseus::robust {

// Sets of knobs: [knob].

std::vector<bool> UsedBy(const CostedPipeline& pipeline, const std::vector<CostOption>& options);

// The `most` knobs with which computations cost least at prices of their time
// ([computation]), those of `needed` among them: one after the other that is missed least is
// dropped. Precondition: every computation has one of `needed`.
std::vector<bool> CheapestFew(const CostedPipeline& pipeline, const std::vector<double>& price,
                              const std::vector<bool>& needed, int most);

// The pipeline with these knobs alone. Precondition: every computation has one of them.
CostedPipeline WithKnobs(const CostedPipeline& pipeline, const std::vector<bool>& knobs);

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_WALKS_FEW_KNOBS_H_
