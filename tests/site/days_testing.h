// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SITE_DAYS_TESTING_H_
#define PERSEUS_TESTS_SITE_DAYS_TESTING_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "site/days/calendar.h"
#include "site/days/days.h"
#include "site/days/loads.h"
#include "site/days/rule.h"

namespace perseus::site {

// One pipeline: 300 W at maximum clocks, 230, 170 and 125 W on slower plans, and 215, 161.8 and
// 122.7 W at lower clocks. Waiting draws 50 W.
inline DaysJob TinyJob(const std::string& name, double scale = 1) {
  DaysJob job;
  job.fleet.name = name;
  job.group = name;
  job.fleet.frontier = {{1, 300}, {1.2, 276}, {1.5, 255}, {2, 250}};
  job.full = {1, 300};
  job.clocks = {{900, {2.2, 270}}, {1000, {1.7, 275}}, {1200, {1.3, 279.5}}, {1400, {1, 300}}};
  for (IterationPoint& point : job.fleet.frontier) {
    point = {point.time_seconds * scale, point.energy_joules * scale};
  }
  job.full = {scale, 300 * scale};
  for (CappedPoint& clock : job.clocks) {
    clock.point = {clock.point.time_seconds * scale, clock.point.energy_joules * scale};
  }
  job.caps = job.clocks;
  for (CappedPoint& cap : job.caps) cap.cap = cap.point.energy_joules / cap.point.time_seconds + 20;
  job.fleet.plans = job.fleet.frontier;
  job.fleet.full_speed_seconds = scale;
  job.fleet.waiting_watts = 50;
  return job;
}

inline DaysSite TinySite(double limit_watts, int jobs) {
  DaysSite site;
  site.nodes = {{"site", {}, limit_watts}};
  for (int j = 0; j < jobs; ++j) site.jobs.push_back(TinyJob("job-" + std::to_string(j)));
  return site;
}

inline DaysAnswer Emulated(const DaysSite& site, double seconds,
                           std::vector<std::uint64_t> seeds = {0}) {
  Result<DaysAnswer> answer = EmulateDays(site, {seconds, std::move(seeds), {}});
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? *std::move(answer) : DaysAnswer{};
}

inline const RuleAnswer& RuleOf(const DaysAnswer& answer, std::string_view name) {
  for (const RuleAnswer& rule : answer.rules) {
    if (rule.rule == name) return rule;
  }
  static const RuleAnswer kNone;
  ADD_FAILURE() << "no rule " << name;
  return kNone;
}

// Iteration times that a rule chooses where all jobs of `site` are there.
inline std::vector<double> TimesBy(const DaysSite& site, std::string_view name) {
  const LoadTree tree(site);
  DaysMoment moment;
  for (std::size_t j = 0; j < site.jobs.size(); ++j) moment.present.push_back(j);
  moment.slow.resize(site.jobs.size());
  moment.arrived.resize(site.jobs.size());
  moment.done.resize(site.jobs.size());
  for (const PowerNode& node : site.nodes) moment.limits.push_back(node.limit_watts);
  for (const auto& rule : MakeRules(site, tree, 86400)) {
    if (rule->name() != name) continue;
    const Result<DaysDecision> decision = rule->Decide(moment);
    EXPECT_TRUE(decision) << decision.error().message;
    std::vector<double> times;
    if (!decision) return times;
    for (const JobRun& run : decision->runs) times.push_back(run.healthy.time_seconds);
    return times;
  }
  ADD_FAILURE() << "no rule " << name;
  return {};
}

}  // namespace perseus::site

#endif  // PERSEUS_TESTS_SITE_DAYS_TESTING_H_
