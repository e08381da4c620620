// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SOSP24_EVALUATION_DOCUMENT_H_
#define PERSEUS_SOSP24_EVALUATION_DOCUMENT_H_

#include <string>

#include "report/document.h"
#include "sosp24/sosp24.h"

namespace perseus::sosp24 {

// The evaluation with its figures, which Markdown leaves out.
report::Document EvaluationDocument(const Sosp24Evaluation& evaluation, const std::string& command);

}  // namespace perseus::sosp24

#endif  // PERSEUS_SOSP24_EVALUATION_DOCUMENT_H_
