// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_FIGURES_H_
#define PERSEUS_SRC_REPORT_FIGURES_H_

#include "plan/named_times.h"

namespace perseus::report {

// By how many percent `value` exceeds `base`; 0 if `base` is 0.
double PercentOver(double value, double base);

// By how many percent `value` is below `base`.
double PercentSaved(double value, double base);

using plan::SameTime;

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_FIGURES_H_
