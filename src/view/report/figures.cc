// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace perseus::report {

double PercentOver(double value, double base) {
  return base == 0 ? 0 : 100 * (value - base) / base;
}

double PercentSaved(double value, double base) {
  return base == 0 ? 0 : 100 * (base - value) / base;
}

double ShownGap(double percent) {
  constexpr double kThousandths = 1e3;
  constexpr double kRounding = 1e-6;
  return std::max(0.0, std::ceil(kThousandths * percent - kRounding) / kThousandths);
}

std::string DistinctText(const Plan& plan, std::string_view noun) {
  return fmt::format("{} distinct {}{}", plan.distinct_knobs, noun,
                     plan.distinct_knobs == 1 ? "" : "s");
}

std::string ChangesText(const KnobChanges& changes) {
  const std::string all =
      fmt::format("{} change{} an iteration", changes.all(), changes.all() == 1 ? "" : "s");
  return changes.back == 0 ? all
                           : fmt::format("{} ({} of them from its end to the next one's start)",
                                         all, changes.back);
}

}  // namespace perseus::report
