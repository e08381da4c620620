// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What it costs to divide a site's power again, by number of jobs: fleet_division
// [FRONTIER.csv...]. Jobs have 5,000 corners that are drawn, or those of the files (frontier.csv of
// `perseus plan`), each with times and energies of its own. Limits: the site's, or a tree of halls,
// rows and racks. Then what real plans cost, and how far they are from the bound.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "perseus/fleet.h"

namespace {

using Points = std::vector<perseus::IterationPoint>;

constexpr int kCorners = 5000;
constexpr int kRounds = 31;
constexpr std::size_t kJobsInRack = 8;
constexpr std::size_t kRacksInRow = 8;
constexpr std::size_t kRowsInHall = 4;

// Of this thread: others may have the machine in between.
double CpuMilliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Energy falls by slopes from 3,000 W at 10 s to nothing at 12 s.
Points DrawnFrontier(std::mt19937* random) {
  std::uniform_real_distribution<double> part(0.5, 1.5);
  Points points = {{10, 20000}};
  for (int i = 1; i < kCorners; ++i) {
    const double step = 2.0 / kCorners * part(*random);
    const double slope = 3000 * std::pow(1 - static_cast<double>(i) / kCorners, 2);
    points.push_back(
        {points.back().time_seconds + step, points.back().energy_joules - slope * step});
  }
  return points;
}

// The two columns that count: iteration_time_s and energy_j, the first of a frontier.csv.
Points ReadFrontierFile(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  if (!line.starts_with("iteration_time_s,energy_j")) {
    fmt::print(stderr, "{}: it does not begin with iteration_time_s,energy_j\n", path);
    std::exit(2);
  }
  Points points;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    perseus::IterationPoint point;
    char comma = 0;
    cells >> point.time_seconds >> comma >> point.energy_joules;
    points.push_back(point);
  }
  return points;
}

perseus::PowerSite MakeSite(const std::vector<Points>& frontiers, std::size_t jobs, bool tree) {
  std::mt19937 random(20260726);
  std::uniform_real_distribution<double> part(0.8, 1.25);
  perseus::PowerSite site;
  for (std::size_t j = 0; j < jobs; ++j) {
    perseus::FleetJob& job = site.jobs.emplace_back();
    job.frontier = frontiers[j % frontiers.size()];
    const double time = part(random);
    const double energy = part(random);
    for (perseus::IterationPoint& point : job.frontier) {
      point.time_seconds *= time;
      point.energy_joules *= energy;
    }
    job.full_speed_seconds = job.frontier.front().time_seconds;
    job.waiting_watts = 0.2 * job.frontier.back().energy_joules / job.frontier.back().time_seconds;
    job.weight = part(random);
  }
  if (!tree) return site;
  const std::size_t racks = (jobs + kJobsInRack - 1) / kJobsInRack;
  const std::size_t rows = (racks + kRacksInRow - 1) / kRacksInRow;
  const std::size_t halls = (rows + kRowsInHall - 1) / kRowsInHall;
  for (std::size_t h = 0; h < halls; ++h) site.nodes.push_back({"", 0});
  for (std::size_t r = 0; r < rows; ++r) site.nodes.push_back({"", 1 + r / kRowsInHall});
  for (std::size_t k = 0; k < racks; ++k) site.nodes.push_back({"", 1 + halls + k / kRacksInRow});
  for (std::size_t j = 0; j < jobs; ++j) {
    site.jobs[j].shares = {{1 + halls + rows + j / kJobsInRack, 1}};
  }
  return site;
}

// The median and the longest of kRounds divisions, under limits from all of what jobs can use to
// half of it; limits inside of a tree differ, so that some bind.
std::pair<double, double> DivideAgain(const perseus::PreparedSite& site,
                                      perseus::FleetObjective objective) {
  const auto free = site.DivideBound(objective);
  if (!free) std::exit(2);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> part(0.7, 1.2);
  std::vector<double> spread;
  for (std::size_t n = 0; n < free->nodes.size(); ++n) spread.push_back(part(random));
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> limits;
    const double share = 1 - 0.5 * round / kRounds;
    for (std::size_t n = 0; n < spread.size(); ++n) {
      limits.push_back(free->nodes[n].watts * share * (n == 0 ? 1 : spread[n]));
    }
    const double start = CpuMilliseconds();
    const auto division = site.DivideBound(objective, limits);
    times.push_back(CpuMilliseconds() - start);
    if (!division) {
      fmt::print(stderr, "{}\n", division.error().message);
      std::exit(2);
    }
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.back()};
}

void PrintRow(const std::vector<Points>& frontiers, std::size_t jobs, bool tree) {
  auto site = MakeSite(frontiers, jobs, tree);
  std::size_t corners = 0;
  for (const perseus::FleetJob& job : site.jobs) corners += job.frontier.size();
  const std::size_t nodes = site.nodes.size();
  const double start = CpuMilliseconds();
  const auto prepared = perseus::PreparedSite::Make(site);
  const double prepare = CpuMilliseconds() - start;
  if (!prepared) {
    fmt::print(stderr, "{}\n", prepared.error().message);
    std::exit(2);
  }
  site = {};
  const auto value = DivideAgain(*prepared, perseus::FleetObjective::kThroughput);
  const auto fair = DivideAgain(*prepared, perseus::FleetObjective::kMaxMin);
  fmt::print("{:>7} {:>11} {:>6} {:>11.1f} {:>12.2f} {:>8.2f} {:>12.2f} {:>8.2f}\n", jobs, corners,
             nodes, prepare, value.first, value.second, fair.first, fair.second);
  std::fflush(stdout);
}

// Each job has `count` plans, a little above its frontier.
void PrintPlans(const std::vector<Points>& frontiers, std::size_t jobs, std::size_t count) {
  perseus::PowerSite site = MakeSite(frontiers, jobs, false);
  for (perseus::FleetJob& job : site.jobs) {
    for (std::size_t p = 0; p < count; ++p) {
      job.plans.push_back(job.frontier[(job.frontier.size() - 1) * p / (count - 1)]);
      job.plans.back().energy_joules *= 1.0002;
    }
    job.slowest_seconds = job.plans.back().time_seconds;
  }
  const auto prepared = perseus::PreparedSite::Make(site);
  if (!prepared) std::exit(2);
  const auto free = prepared->DivideBound(perseus::FleetObjective::kThroughput);
  if (!free) std::exit(2);
  const std::vector<double> limits = {0.9 * free->nodes[0].watts};
  const double start = CpuMilliseconds();
  const auto answer = prepared->Divide(perseus::FleetObjective::kThroughput, limits);
  const double taken = CpuMilliseconds() - start;
  if (!answer) {
    fmt::print(stderr, "{}\n", answer.error().message);
    std::exit(2);
  }
  fmt::print("{:>7} jobs, {:>3} plans: {:>9.2f} ms, gap {:.4f} %\n", jobs, count, taken,
             100 * (1 - answer->plans.objective / answer->bound.objective));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Points> frontiers;
  for (int i = 1; i < argc; ++i) frontiers.push_back(ReadFrontierFile(argv[i]));
  std::mt19937 random(7);
  while (argc == 1 && frontiers.size() < 16) frontiers.push_back(DrawnFrontier(&random));
  fmt::print("{:>7} {:>11} {:>6} {:>11} {:>12} {:>8} {:>12} {:>8}\n", "jobs", "corners", "nodes",
             "prepare ms", "throughput", "longest", "max-min ms", "longest");
  for (const bool tree : {false, true}) {
    for (const std::size_t jobs : {10, 100, 1000, 10000}) PrintRow(frontiers, jobs, tree);
  }
  for (const std::size_t jobs : {100, 1000}) PrintPlans(frontiers, jobs, 64);
  return 0;
}
