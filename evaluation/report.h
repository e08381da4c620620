// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_REPORT_H_
#define PERSEUS_EVALUATION_REPORT_H_

#include <string>

#include "evaluation/sosp24.h"

namespace perseus::sosp24 {

// The paper's evaluation as Markdown (docs/evidence/evaluation.md) and as one
// self-contained HTML file with plots. `command` is what made it.
std::string FormatEvaluationMarkdown(const Sosp24Evaluation& evaluation,
                                     const std::string& command);
std::string FormatEvaluationHtml(const Sosp24Evaluation& evaluation, const std::string& command);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_REPORT_H_
