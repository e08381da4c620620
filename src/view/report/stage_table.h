// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_STAGE_TABLE_H_
#define PERSEUS_SRC_REPORT_STAGE_TABLE_H_

#include <string>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "report/document.h"

namespace perseus::report {

// The section that says which stage saves how much, with bars.
void AddStageSavings(const CostedPipeline& pipeline, const Plan& baseline, const Plan& chosen,
                     const std::string& knob_unit, Document* document);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_STAGE_TABLE_H_
