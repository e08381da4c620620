// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_PLOTS_H_
#define PERSEUS_EVALUATION_PLOTS_H_

#include <string>

#include "evaluation/sosp24.h"

namespace perseus::sosp24 {

// Each "" where there is nothing to draw.
std::string DrawFigure7(const Sosp24Evaluation& evaluation);
// One plot per case.
std::string DrawFigure8(const Sosp24Evaluation& evaluation);
std::string DrawFigure9(const Sosp24Job& job, int number);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_PLOTS_H_
