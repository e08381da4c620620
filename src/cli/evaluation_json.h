// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_EVALUATION_JSON_H_
#define PERSEUS_CLI_EVALUATION_JSON_H_

#include <string>

#include "perseus/sosp24.h"

namespace perseus::cli {

// evaluation.json: all figures of the evaluation with all their digits.
std::string FormatEvaluationJson(const Sosp24Evaluation& evaluation, const std::string& command);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_EVALUATION_JSON_H_
