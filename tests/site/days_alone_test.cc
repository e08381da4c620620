// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "emulate/emulation_testing.h"
#include "perseus/emulator.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "site/days_testing.h"
#include "site/site.h"

// A site's power is the sum of its jobs, each emulated alone by the emulator of jobs.
namespace perseus::site {
namespace {

using emulator_testing::FakePolicy;
using emulator_testing::Plans;
using emulator_testing::TinyPipeline;

constexpr double kSlowdown = 1.2;
constexpr double kDays = 4000;  // Seconds.

struct Alone {
  Planner planner;
  DaysJob job;
};

// Plans for full speed and for a straggler of kSlowdown.
Alone MakeJob(const std::string& name, int stages, int microbatches, int pipelines) {
  Planner planner = Plans(TinyPipeline(stages, microbatches));
  DaysJob job;
  job.fleet.name = name;
  job.group = name;
  job.full = PointOf(planner.baseline());
  const double fastest = planner.frontier().fastest_seconds;
  for (const double seconds : {fastest, fastest * kSlowdown}) {
    job.fleet.plans.push_back(PointOf(*planner.PlanFor(seconds)));
  }
  for (const FrontierPoint& point : planner.frontier().points) {
    job.fleet.frontier.push_back({point.iteration_time_seconds, point.energy_joules});
  }
  job.fleet.full_speed_seconds = job.full.time_seconds;
  job.fleet.waiting_watts = planner.frontier().total_blocking_power_watts;
  job.fleet.pipelines = pipelines;
  job.gpus = stages * pipelines;
  job.clocks = {{1000, job.full}};
  job.caps = {{300, job.full}};
  job.stragglers = {20, 500, kSlowdown};
  return {std::move(planner), std::move(job)};
}

// The job alone, with the stragglers of the calendar: each comes and goes with an iteration.
Emulation EmulatedAlone(const Alone& alone, const Policy& policy, const JobCalendar& calendar) {
  EmulationSpec spec;
  spec.pipelines = alone.job.fleet.pipelines;
  spec.target_seconds = alone.planner.frontier().fastest_seconds;
  spec.iterations = static_cast<std::int64_t>(kDays / spec.target_seconds) + 1;
  // When iterations begin depends on the stragglers before: found one after the other.
  std::vector<Straggler> stragglers;
  double at = 0;
  std::vector<StragglingTime> times = calendar.straggling;
  std::vector<std::int64_t> begins(times.size(), -1);
  for (std::int64_t n = 0; at < kDays; ++n) {
    bool is_slow = false;
    for (std::size_t k = 0; k < times.size(); ++k) {
      const bool is_there = at >= times[k].from_seconds - 1e-6 && at < times[k].to_seconds - 1e-6;
      if (is_there && begins[k] < 0) begins[k] = n;
      is_slow = is_slow || is_there;
      if (begins[k] >= 0 && at >= times[k].to_seconds - 1e-6) {
        stragglers.push_back(
            {StragglerKind::kSlow, kSlowdown, times[k].pipeline, {}, begins[k], n - begins[k]});
        begins[k] = -1;
        times[k].to_seconds = -1;  // Done.
        times[k].from_seconds = 2 * kDays;
      }
    }
    at += spec.target_seconds * (is_slow ? kSlowdown : 1);
  }
  for (std::size_t k = 0; k < times.size(); ++k) {
    if (begins[k] >= 0) {
      stragglers.push_back({StragglerKind::kSlow, kSlowdown, times[k].pipeline, {}, begins[k], {}});
    }
  }
  spec.stragglers = stragglers;
  Result<Emulation> emulation = Emulate(alone.planner, policy, spec);
  EXPECT_TRUE(emulation) << emulation.error().message;
  return emulation ? *std::move(emulation) : Emulation{};
}

// Energy until `seconds`, where each iteration draws its mean power.
double JoulesUntil(const Emulation& emulation, double seconds) {
  double joules = 0;
  for (const IterationRecord& each : emulation.iterations) {
    const double part = (seconds - each.start_seconds) / each.time_seconds;
    if (part <= 0) break;
    joules += each.energy.total_joules() * std::min(1.0, part);
  }
  return joules;
}

double JoulesUntil(const JobDays& job, double seconds) {
  double joules = 0;
  for (const JobSpan& span : job.spans) {
    joules += span.watts * std::max(0.0, std::min(seconds, span.to_seconds) - span.from_seconds);
  }
  return joules;
}

void ExpectSumOfJobs(bool with_stragglers, const std::string& rule, bool reacts) {
  std::vector<Alone> alone;
  alone.push_back(MakeJob("a", 2, 3, 2));
  alone.push_back(MakeJob("b", 3, 2, 3));
  alone.push_back(MakeJob("c", 2, 5, 1));
  DaysSite site;
  site.nodes = {{"site", {}, 1e9}};
  for (Alone& each : alone) {
    if (!with_stragglers) each.job.stragglers.share_of_gpus_per_day = 0;
    site.jobs.push_back(each.job);
  }
  const DaysAnswer answer = Emulated(site, kDays);
  const auto calendar = DrawCalendar(site, kDays, 0);
  const RuleDays& days = RuleOf(answer, rule).first;
  std::vector<Emulation> emulations;
  std::size_t stragglers = 0;
  for (std::size_t j = 0; j < alone.size(); ++j) {
    stragglers += calendar[j].straggling.size();
    const Planner& planner = alone[j].planner;
    const FakePolicy policy(
        [&](double seconds) -> Result<Plan> {
          if (!reacts) return planner.baseline();
          return planner.PlanFor(seconds);
        },
        reacts);
    emulations.push_back(EmulatedAlone(alone[j], policy, calendar[j]));
  }
  EXPECT_EQ(stragglers > 0, with_stragglers);
  double before_site = 0;
  double before_alone = 0;
  for (double at = 7; at < kDays; at += 7) {
    double of_site = 0;
    double of_alone = 0;
    for (std::size_t j = 0; j < alone.size(); ++j) {
      of_site += JoulesUntil(days.jobs[j], at);
      of_alone += JoulesUntil(emulations[j], at);
    }
    // Power over 7 s.
    EXPECT_NEAR(of_site - before_site, of_alone - before_alone, 1e-9 * of_alone) << at;
    before_site = of_site;
    before_alone = of_alone;
  }
}

TEST(DaysAlone, PlansThatDoNotChange) { ExpectSumOfJobs(false, "perseus", true); }
TEST(DaysAlone, MaximumClocksWithStragglers) { ExpectSumOfJobs(true, "max-clocks", false); }
TEST(DaysAlone, PlansThatAnswerStragglers) { ExpectSumOfJobs(true, "perseus", true); }

}  // namespace
}  // namespace perseus::site
