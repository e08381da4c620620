// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/sites.h"

#include <algorithm>
#include <vector>

namespace perseus::fleet_testing {
namespace {

FleetJob RandomJob(std::mt19937& random, const SiteShape& shape, std::size_t nodes) {
  const auto number = [&](double low, double high) { return Uniform(random, low, high); };
  const auto chance = [&](double of) { return number(0, 1) < of; };
  const auto any_node = [&] {
    return std::uniform_int_distribution<std::size_t>(0, nodes - 1)(random);
  };
  FleetJob job;
  const double fastest = number(0.2, 3);
  const double joules = number(100, 4000);
  job.frontier = {{fastest, joules}};
  double slope = number(1, 3) * joules / fastest;
  for (int i = 0; i < 6; ++i) {
    const IterationPoint last = job.frontier.back();
    const double step = fastest * number(0.01, 0.15);
    if (last.energy_joules - slope * step < joules / 5) break;
    job.frontier.push_back({last.time_seconds + step, last.energy_joules - slope * step});
    slope *= number(0.3, 0.9);
  }
  if (chance(0.6)) {
    const IterationPoint last = job.frontier.back();
    job.waiting_watts = number(0, 0.5) * last.energy_joules / last.time_seconds;
  }
  if (shape.plans) {
    for (const IterationPoint& point : job.frontier) {
      job.plans.push_back(
          {point.time_seconds * number(1, 1.01), point.energy_joules * number(1, 1.02)});
    }
  }
  job.tenant = chance(0.5) ? (chance(0.5) ? "a" : "b") : "";
  job.full_speed_seconds = fastest * number(1, 1.05);
  job.pipelines = chance(0.5) ? 1 : 4;
  if (chance(0.3)) job.late = {{{fastest * number(1, 1.3), joules * number(0.9, 1.2)}}};
  job.fixed_watts = chance(0.5) ? number(0, 300) : 0;
  job.weight = chance(0.5) ? 1 : number(0.3, 4);
  if (chance(0.4)) job.slowest_seconds = fastest * number(1.05, 1.6);
  if (chance(0.2)) job.least_watts = number(0.1, 0.9) * joules / fastest;
  if (nodes > 1) job.shares = {{any_node(), 1}};
  if (shape.spans && chance(0.6)) {
    const double part = number(0.1, 0.9);
    job.shares = {{any_node(), part}, {any_node(), 1 - part}};
  }
  return job;
}

// What each node has if all jobs are at an end of their range.
std::vector<double> WattsAtEnd(const PowerSite& site, bool most) {
  PowerSite ended = site;
  for (PowerNode& node : ended.nodes) node.limit_watts = kNoPowerLimit;
  std::vector<double> watts(site.nodes.size(), 0);
  if (most) {
    const auto answer = DividePower(ended, FleetObjective::kThroughput);
    for (std::size_t n = 0; n < watts.size(); ++n) watts[n] = answer->plans.nodes[n].watts;
    return watts;
  }
  for (PowerNode& node : ended.nodes) node.limit_watts = 0;
  const auto shortages = FindShortages(ended);
  for (const PowerShortage& shortage : *shortages) watts[shortage.node] = shortage.missing_watts;
  return watts;
}

}  // namespace

double Uniform(std::mt19937& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

FleetJob SmallJob() {
  FleetJob job;
  job.frontier = {{2, 80}, {1, 100}};
  job.full_speed_seconds = 1;
  return job;
}

PowerSite TwoJobs(double limit_watts) {
  PowerSite site;
  site.nodes[0].limit_watts = limit_watts;
  site.jobs = {SmallJob(), SmallJob()};
  site.jobs[0].name = "light";
  site.jobs[1].name = "heavy";
  site.jobs[1].weight = 2;
  return site;
}

PowerSite TwoJobsInTree(double limit_watts, double rack_watts) {
  PowerSite site = TwoJobs(limit_watts);
  site.nodes.push_back({"rack", 0, rack_watts});
  site.jobs[1].shares = {{1, 1}};
  return site;
}

PowerSite RandomSite(std::mt19937& random, const SiteShape& shape) {
  PowerSite site;
  if (shape.tree) {
    for (std::size_t n = 1; n < 5; ++n) {
      site.nodes.push_back({"", std::uniform_int_distribution<std::size_t>(0, n - 1)(random)});
    }
  }
  const int jobs = std::uniform_int_distribution<int>(2, 8)(random);
  for (int j = 0; j < jobs; ++j) site.jobs.push_back(RandomJob(random, shape, site.nodes.size()));
  site.meter_factor = Uniform(random, 1, 1.5);
  const std::vector<double> least = WattsAtEnd(site, false);
  const std::vector<double> most = WattsAtEnd(site, true);
  for (std::size_t n = 0; n < site.nodes.size(); ++n) {
    if (n > 0 && Uniform(random, 0, 1) < 0.4) continue;
    site.nodes[n].limit_watts = least[n] + Uniform(random, 0, 1.05) * (most[n] - least[n]);
  }
  return site;
}

}  // namespace perseus::fleet_testing

namespace perseus::fleet {

Result<Site> Load(const std::string& text) {
  Result<SiteFile> file = ParseSiteFile(text, "examples/s.toml");
  if (!file) return tl::unexpected(file.error());
  return LoadSite(*std::move(file));
}

}  // namespace perseus::fleet
