// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The division of power for programs that are not C++: one JSON site a line on standard input, one
// JSON answer a line on standard output. Used by tests/oracle/fleet_site.py, which describes the
// format.

#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perseus/fleet.h"

namespace {

using nlohmann::json;

std::vector<perseus::IterationPoint> ReadPoints(const json& list) {
  std::vector<perseus::IterationPoint> points;
  for (const json& point : list) {
    points.push_back({point.at(0).get<double>(), point.at(1).get<double>()});
  }
  return points;
}

double LimitOf(const json& value) {
  return value.is_null() ? perseus::kNoPowerLimit : value.get<double>();
}

perseus::FleetJob ReadJob(const json& from) {
  perseus::FleetJob job;
  job.tenant = from.value("tenant", "");
  job.frontier = ReadPoints(from.at("frontier"));
  job.plans = ReadPoints(from.value("plans", json::array()));
  job.full_speed_seconds = from.at("full_speed_seconds").get<double>();
  job.waiting_watts = from.at("waiting_watts").get<double>();
  job.pipelines = from.at("pipelines").get<int>();
  for (const perseus::IterationPoint& point : ReadPoints(from.at("late"))) {
    job.late.push_back({point});
  }
  job.fixed_watts = from.at("fixed_watts").get<double>();
  job.weight = from.at("weight").get<double>();
  if (!from.at("slowest_seconds").is_null()) {
    job.slowest_seconds = from.at("slowest_seconds").get<double>();
  }
  job.least_watts = from.at("least_watts").get<double>();
  for (const json& share : from.at("shares")) {
    job.shares.push_back({share.at(0).get<std::size_t>(), share.at(1).get<double>()});
  }
  return job;
}

perseus::PowerSite ReadSite(const json& line) {
  perseus::PowerSite site;
  site.nodes.clear();
  for (const json& node : line.at("nodes")) {
    perseus::PowerNode& made = site.nodes.emplace_back();
    if (!node.at("parent").is_null()) made.parent = node.at("parent").get<std::size_t>();
    made.limit_watts = LimitOf(node.at("limit_watts"));
  }
  for (const json& job : line.at("jobs")) site.jobs.push_back(ReadJob(job));
  site.meter_factor = line.at("meter_factor").get<double>();
  return site;
}

json DivisionJson(const perseus::PowerDivision& division) {
  json made = {
      {"objective", division.objective}, {"jobs", json::array()}, {"nodes", json::array()}};
  for (const perseus::JobShare& share : division.jobs) {
    made["jobs"].push_back({{"x", share.iterations_per_second},
                            {"watts", share.watts},
                            {"speed", share.speed},
                            {"plan", share.plan}});
  }
  for (const perseus::NodeShare& node : division.nodes) {
    made["nodes"].push_back({{"watts", node.watts}, {"price", node.price_per_watt}});
  }
  return made;
}

json ErrorJson(const perseus::Error& error) {
  return {{"error", error.message}, {"infeasible", error.code == perseus::ErrorCode::kInfeasible}};
}

json Solve(const json& line) {
  const perseus::PowerSite site = ReadSite(line);
  const auto objective = line.at("objective").get<std::string>();
  const auto kind = objective == "throughput" ? perseus::FleetObjective::kThroughput
                    : objective == "max-min"  ? perseus::FleetObjective::kMaxMin
                                              : perseus::FleetObjective::kMaxMinTenants;
  const auto answer = perseus::DividePower(site, kind);
  if (!answer) return ErrorJson(answer.error());
  return {{"bound", DivisionJson(answer->bound)}, {"plans", DivisionJson(answer->plans)}};
}

}  // namespace

int main() {
  std::string line;
  try {
    while (std::getline(std::cin, line)) std::cout << Solve(json::parse(line)).dump() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "fleet_tool: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
