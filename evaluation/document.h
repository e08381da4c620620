// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_DOCUMENT_H_
#define PERSEUS_EVALUATION_DOCUMENT_H_

#include <string>

#include "evaluation/sosp24.h"
#include "report/document.h"

namespace perseus::sosp24 {

// The evaluation with its figures, which Markdown leaves out.
report::Document EvaluationDocument(const Sosp24Evaluation& evaluation, const std::string& command);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_DOCUMENT_H_
