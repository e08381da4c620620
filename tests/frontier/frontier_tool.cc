// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The general solver for programs that are not C++: one JSON project a line on
// standard input, one JSON answer a line on standard output. Used by
// tests/oracle, which describes the format.

#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perseus/frontier.h"

namespace {

using nlohmann::json;

perseus::TimeCostProblem ReadProblem(const json& line) {
  perseus::TimeCostProblem problem;
  for (const json& options : line.at("activities")) {
    problem.curve_of.push_back(static_cast<int>(problem.curves.size()));
    auto& curve = problem.curves.emplace_back();
    for (const json& option : options) {
      curve.push_back({option.at(0).get<double>(), option.at(1).get<double>()});
    }
  }
  for (const json& precedence : line.at("precedences")) {
    problem.precedences.push_back(
        {precedence.at(0).get<int>(), precedence.at(1).get<int>(), precedence.at(2).get<double>()});
  }
  return problem;
}

json Solve(const perseus::TimeCostProblem& problem) {
  const auto frontier = perseus::SolveFrontier(problem, {});
  if (!frontier) return {{"error", frontier.error().message}};
  const auto curves = perseus::QuantisedCurves(problem, {});
  if (!curves) return {{"error", curves.error().message}};
  json answer = {{"points", json::array()}, {"quantised", json::array()}};
  for (const auto& point : frontier->breakpoints) {
    answer["points"].push_back({point.time, point.cost, point.slope});
  }
  for (const int curve : problem.curve_of) {
    json vertices = json::array();
    for (const auto& vertex : (*curves)[curve]) vertices.push_back({vertex.time, vertex.cost});
    answer["quantised"].push_back(std::move(vertices));
  }
  answer["cost_error"] = frontier->cost_error;
  return answer;
}

}  // namespace

int main() {
  std::string line;
  try {
    while (std::getline(std::cin, line)) {
      std::cout << Solve(ReadProblem(json::parse(line))).dump() << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << "frontier_tool: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
