// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_EVALUATION_DOCUMENT_H_
#define PERSEUS_SRC_REPORT_EVALUATION_DOCUMENT_H_

#include <string>

#include "perseus/sosp24.h"
#include "report/document.h"

namespace perseus::report {

// The evaluation with its figures, which Markdown leaves out.
Document EvaluationDocument(const Sosp24Evaluation& evaluation, const std::string& command);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_EVALUATION_DOCUMENT_H_
