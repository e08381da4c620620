// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_JSON_H_
#define PERSEUS_EVALUATION_JSON_H_

#include <string>

#include "evaluation/sosp24.h"

namespace perseus::sosp24 {

// evaluation.json: all figures of the evaluation with all their digits.
std::string FormatEvaluationJson(const Sosp24Evaluation& evaluation, const std::string& command);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_JSON_H_
