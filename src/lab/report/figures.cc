// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/figures.h"

namespace perseus::report {

double PercentOver(double value, double base) {
  return base == 0 ? 0 : 100 * (value - base) / base;
}

double PercentSaved(double value, double base) {
  return base == 0 ? 0 : 100 * (base - value) / base;
}

}  // namespace perseus::report
