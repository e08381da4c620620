// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/analysis.h"

namespace perseus {
inline namespace v0 {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kJoulesPerMwh = 3.6e9;
constexpr double kKwhPerMwh = 1000;
constexpr double kGramsPerKg = 1000;

}  // namespace

RunCost CostOfRun(const RunSpec& spec, const IterationCost& iteration) {
  RunCost cost;
  const double gpu_hours = spec.gpu_hours.value_or(0);
  if (!(gpu_hours > 0 && iteration.baseline_seconds > 0 && iteration.gpus > 0)) return cost;
  // Of one pipeline: a job of several does as much in each GPU hour.
  const double iterations =
      gpu_hours * kSecondsPerHour / (iteration.gpus * iteration.baseline_seconds);
  cost.gpu_hours = iterations * iteration.seconds * iteration.gpus / kSecondsPerHour;
  cost.mwh = iterations * iteration.joules / kJoulesPerMwh;
  const double kwh = cost.mwh * kKwhPerMwh;
  cost.price = kwh * spec.price_per_kwh.value_or(0);
  cost.carbon_kg = kwh * spec.carbon_g_per_kwh.value_or(0) / kGramsPerKg;
  return cost;
}

}  // namespace v0
}  // namespace perseus
