// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SITE_DAYS_FIGURES_H_
#define PERSEUS_SITE_DAYS_FIGURES_H_

#include "site/days/days.h"
#include "site/days/loads.h"

namespace perseus::site {

// All figures but `plan_changes`, from the spans of the jobs.
DaysFigures FiguresOf(const DaysSite& site, const LoadTree& tree, const RuleDays& days,
                      double seconds);

}  // namespace perseus::site

#endif  // PERSEUS_SITE_DAYS_FIGURES_H_
