// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SOSP24_EVALUATION_JSON_H_
#define PERSEUS_SOSP24_EVALUATION_JSON_H_

#include <string>

#include "sosp24/sosp24.h"

namespace perseus::sosp24 {

// evaluation.json: all figures of the evaluation with all their digits.
std::string FormatEvaluationJson(const Sosp24Evaluation& evaluation, const std::string& command);

}  // namespace perseus::sosp24

#endif  // PERSEUS_SOSP24_EVALUATION_JSON_H_
