// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "site/days/pace.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace perseus::site {
namespace {

IterationPoint Slowed(const IterationPoint& point, double slow) {
  return {point.time_seconds * slow, point.energy_joules * slow};
}

// Those that nothing beats in both time and power; see ClockOptions().
std::vector<PaceOption> BestOf(std::vector<PaceOption> options, double accepted) {
  std::sort(options.begin(), options.end(), [](const PaceOption& a, const PaceOption& b) {
    if (a.pace.watts != b.pace.watts) return a.pace.watts < b.pace.watts;
    return a.pace.seconds < b.pace.seconds;
  });
  std::vector<PaceOption> best;
  for (const PaceOption& option : options) {
    if (!best.empty() && option.pace.seconds >= best.back().pace.seconds) continue;
    best.push_back(option);
  }
  // Descending times: what is too slow is in front.
  const auto fast = std::find_if(best.begin(), best.end(), [accepted](const PaceOption& option) {
    return option.pace.seconds <= accepted * (1 + 1e-9);
  });
  best.erase(best.begin(), fast == best.end() ? best.end() - 1 : fast);
  return best;
}

}  // namespace

JobPace PaceOf(const DaysJob& job, const JobRun& run, std::span<const double> slow) {
  const FleetJob& fleet = job.fleet;
  if (run.healthy.time_seconds >= kPaused) {
    return {kPaused, fleet.fixed_watts + fleet.pipelines * fleet.waiting_watts};
  }
  const int late = static_cast<int>(slow.size() + fleet.late.size());
  double seconds = run.healthy.time_seconds;  // Also where all are late: they may wait for it.
  for (const double factor : slow) seconds = std::max(seconds, run.late.time_seconds * factor);
  for (const LatePipeline& each : fleet.late) {
    seconds = std::max(seconds, each.point.time_seconds);
  }
  const auto joules = [&](const IterationPoint& point) {
    return point.energy_joules + fleet.waiting_watts * (seconds - point.time_seconds);
  };
  double energy = 0;
  if (late < fleet.pipelines) energy += (fleet.pipelines - late) * joules(run.healthy);
  for (const double factor : slow) energy += joules(Slowed(run.late, factor));
  for (const LatePipeline& each : fleet.late) energy += joules(each.point);
  return {seconds, fleet.fixed_watts + energy / seconds};
}

JobRun FullRun(const DaysJob& job) { return {job.full, job.full, 0}; }

JobRun PausedRun() { return {{kPaused, 0}, {kPaused, 0}, -1}; }

double AcceptedSeconds(const DaysJob& job, std::span<const double> slow) {
  if (!job.fleet.slowest_seconds) return kPaused;
  return std::max(*job.fleet.slowest_seconds, PaceOf(job, FullRun(job), slow).seconds);
}

std::vector<PaceOption> ClockOptions(const DaysJob& job, std::span<const double> slow,
                                     double accepted) {
  std::vector<PaceOption> options;
  for (std::size_t i = 0; i < job.clocks.size(); ++i) {
    const CappedPoint& clock = job.clocks[i];
    const JobRun run{clock.point, clock.point, static_cast<std::int64_t>(i) + 1};
    options.push_back({run, PaceOf(job, run, slow), clock.cap});
  }
  return BestOf(std::move(options), accepted);
}

std::vector<PaceOption> PlanOptions(const DaysJob& job, std::span<const double> slow,
                                    double accepted) {
  std::vector<PaceOption> options;
  const IterationPoint fastest = job.fleet.plans.front();
  for (std::size_t i = 0; i < job.fleet.plans.size(); ++i) {
    const JobRun run{job.fleet.plans[i], fastest, static_cast<std::int64_t>(i) + 1};
    options.push_back({run, PaceOf(job, run, slow), 0});
  }
  // The slowest plan, and then waiting.
  constexpr int kWaits = 100;
  const IterationPoint slowest = *std::max_element(
      job.fleet.plans.begin(), job.fleet.plans.end(),
      [](const auto& a, const auto& b) { return a.time_seconds < b.time_seconds; });
  for (int k = 1; k <= kWaits; ++k) {
    // In steps of power that are about equal.
    const double factor = 1 / (1 - (1 - 1 / kLongestWait) * k / kWaits);
    const double waits = slowest.time_seconds * (factor - 1);
    const JobRun run{
        {slowest.time_seconds + waits, slowest.energy_joules + job.fleet.waiting_watts * waits},
        fastest,
        static_cast<std::int64_t>(job.fleet.plans.size())};
    options.push_back({run, PaceOf(job, run, slow), 0});
  }
  return BestOf(std::move(options), accepted);
}

}  // namespace perseus::site
