// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "model/noise.h"
#include "perseus/emulator.h"
#include "perseus/policy.h"

namespace perseus::emulate {
namespace {

// EmulationSpec::seed; the search for plans draws from seeds of its own.
constexpr std::array<std::uint64_t, 5> kSeeds = {1001, 1002, 1003, 1004, 1005};
using OfSeeds = std::array<double, kSeeds.size()>;

Result<std::vector<Emulation>> OfAllSeeds(const Planner& planner, const Plan& plan,
                                          EmulationSpec spec,
                                          const std::function<bool()>& keep_going) {
  const std::unique_ptr<Policy> policy = MakeSinglePlanPolicy("plan", plan);
  std::vector<Emulation> emulations;
  for (const std::uint64_t seed : kSeeds) {
    if (!keep_going()) {
      return MakeError(ErrorCode::kCancelled, "the emulation ended");
    }
    spec.seed = seed;
    Result<Emulation> emulation = Emulate(planner, *policy, spec);
    if (!emulation) return tl::unexpected(emulation.error());
    emulations.push_back(*std::move(emulation));
  }
  return emulations;
}

void SetMeanAndDeviation(const OfSeeds& values, double* mean, double* deviation) {
  *mean = 0;
  for (const double value : values) *mean += value / values.size();
  double squares = 0;
  for (const double value : values) squares += (value - *mean) * (value - *mean);
  *deviation = std::sqrt(squares / (values.size() - 1));
}

double PercentOver(double value, double base) {
  return base == 0 ? 0 : 100 * (value - base) / base;
}

ExpectedFigures FiguresOf(const std::vector<Emulation>& emulations,
                          const std::vector<Emulation>& baseline, const EmulationSpec& spec) {
  const auto iterations = static_cast<double>(spec.iterations);
  const double runs = iterations * spec.pipelines;
  OfSeeds seconds = {};
  OfSeeds joules = {};
  OfSeeds slowdown = {};
  OfSeeds saving = {};
  ExpectedFigures expected;
  expected.seeds = static_cast<int>(kSeeds.size());
  expected.iterations = static_cast<int>(spec.iterations);
  for (std::size_t k = 0; k < kSeeds.size(); ++k) {
    const Emulation& emulation = emulations[k];
    const Emulation& other = baseline[k];
    seconds[k] = emulation.time_seconds / iterations;
    joules[k] = emulation.energy.total_joules() / runs;
    slowdown[k] = PercentOver(emulation.time_seconds, other.time_seconds);
    saving[k] = -PercentOver(emulation.energy.total_joules(), other.energy.total_joules());
    expected.clock_calls += static_cast<double>(emulation.clock_calls) / runs / kSeeds.size();
  }
  SetMeanAndDeviation(seconds, &expected.iteration_time_seconds,
                      &expected.iteration_time_spread_seconds);
  SetMeanAndDeviation(joules, &expected.energy_joules, &expected.energy_spread_joules);
  SetMeanAndDeviation(slowdown, &expected.slowdown_percent, &expected.slowdown_spread_percent);
  SetMeanAndDeviation(saving, &expected.saving_percent, &expected.saving_spread_percent);
  expected.most_slowdown_percent = expected.slowdown_percent;
  expected.least_saving_percent = expected.saving_percent;
  return expected;
}

}  // namespace
}  // namespace perseus::emulate

namespace perseus {
inline namespace v0 {

Result<std::vector<ExpectedFigures>> EmulateUnder(const Planner& planner,
                                                  const std::vector<const Plan*>& plans,
                                                  const EmulateUnderSpec& under) {
  if (under.pipelines < 1) {
    return InvalidInput(
        fmt::format("the number of pipelines is {}; expected at least 1", under.pipelines));
  }
  for (const Plan* const plan : plans) {
    if (plan == nullptr) return InvalidInput("a plan to emulate is missing");
    if (auto good = CheckPlan(planner.pipeline(), *plan); !good) {
      return tl::unexpected(good.error());
    }
  }
  EmulationSpec spec;
  spec.pipelines = under.pipelines;
  spec.iterations = model::EmulatedIterations(planner.pipeline().dag.size(), under.pipelines,
                                              model::kIterationsOfPlan);
  spec.target_seconds = planner.baseline().iteration_time_seconds;
  spec.timeline_pipelines = 0;
  spec.power_over_time = false;
  const auto is_baseline = [&](const Plan* plan) { return plan == &planner.baseline(); };
  const auto emulated = 1 + std::count_if(plans.begin(), plans.end(), std::not_fn(is_baseline));
  const std::vector<Conditions> corners = CornersOf(under.conditions);
  const auto all =
      static_cast<double>(emulated) * emulate::kSeeds.size() * static_cast<double>(corners.size());
  int done = 0;
  const auto going_on = [&] { return !under.progress || under.progress({.share = done++ / all}); };
  std::vector<ExpectedFigures> figures;
  for (const Conditions& corner : corners) {
    spec.noise = corner.noise;
    spec.switching = corner.switching;
    const auto baseline = emulate::OfAllSeeds(planner, planner.baseline(), spec, going_on);
    if (!baseline) return tl::unexpected(baseline.error());
    for (std::size_t k = 0; k < plans.size(); ++k) {
      ExpectedFigures here;
      if (is_baseline(plans[k])) {
        here = emulate::FiguresOf(*baseline, *baseline, spec);
      } else {
        const auto emulations = emulate::OfAllSeeds(planner, *plans[k], spec, going_on);
        if (!emulations) return tl::unexpected(emulations.error());
        here = emulate::FiguresOf(*emulations, *baseline, spec);
      }
      // The first corner is the middle.
      if (figures.size() < plans.size()) {
        figures.push_back(here);
        continue;
      }
      ExpectedFigures& middle = figures[k];
      middle.most_slowdown_percent = std::max(middle.most_slowdown_percent, here.slowdown_percent);
      middle.least_saving_percent = std::min(middle.least_saving_percent, here.saving_percent);
    }
  }
  return figures;
}

}  // namespace v0
}  // namespace perseus
