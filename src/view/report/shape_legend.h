// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_SHAPE_LEGEND_H_
#define PERSEUS_SRC_REPORT_SHAPE_LEGEND_H_

#include <string>

#include "perseus/costed_pipeline.h"

namespace perseus::report {

// What the shapes in the timelines mean, of those that the pipeline has: HTML.
std::string DrawShapes(const CostedPipeline& pipeline);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_SHAPE_LEGEND_H_
