// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_NEAREST_OPTIONS_H_
#define PERSEUS_MODEL_NEAREST_OPTIONS_H_

#include <vector>

#include "perseus/costed_pipeline.h"

namespace perseus::model {

// [knob] The option of a table that counts at a clock, which may be one that the table lacks: the
// nearest, the lower clock of two equally near; none where knobs are labels.
std::vector<const CostOption*> NearestOptions(const CostedPipeline& pipeline,
                                              const CostTable& table);

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_NEAREST_OPTIONS_H_
