// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What a job's ranks and its server make of times and calls: the client's estimates of each rank,
// combined and judged as the server does. bench/goal_run.py writes the input:
//
//   time RANK ITERATION ROW MHZ NANOSECONDS     a computation whose clock was in effect
//   call RANK NANOSECONDS                       a clock call, until the clock was in effect
//
// The output has a line for each condition, "NAME VALUE ERROR PLANNED": what was measured, and what
// the next plans are made for.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "client/latency.h"
#include "client/noise_estimate.h"
#include "server/domain/decide.h"
#include "server/planning/conditions_state.h"
#include "server/watch/conditions_watch.h"

namespace perseus::bench {
namespace {

struct Rank {
  client::NoiseEstimate noise;
  client::LatencyRecord latency;
  std::int64_t iteration = 0;
  std::vector<client::NoiseEstimate::Time> times;  // Of `iteration`.

  void EndIteration() {
    if (!times.empty()) noise.AddIteration(iteration, 1, std::move(times));
    times.clear();
  }
};

server::RankFigure FigureOf(const client::Estimated& estimated) {
  return {.value = estimated.value, .error = estimated.error};
}

server::RankConditions ConditionsOf(const Rank& rank) {
  server::RankConditions told;
  if (const auto figures = rank.noise.Figures()) {
    const client::NoiseFigures noise = client::WithRare(*figures);
    told.noise_variance = FigureOf(noise.variance);
    told.rank_noise_variance = FigureOf(noise.rank_variance);
    if (noise.correlation) told.noise_correlation = FigureOf(*noise.correlation);
    told.iterations = noise.iterations;
    told.computations = noise.computations;
  }
  if (const auto latency = rank.latency.Figures()) {
    told.latency_seconds = FigureOf(latency->seconds);
    told.latency_spread_seconds = FigureOf(latency->spread_seconds);
    told.calls = latency->calls;
  }
  return told;
}

int Run(std::istream& input) {
  std::map<int, Rank> ranks;
  for (std::string word; input >> word;) {
    int number = 0;
    input >> number;
    Rank& rank = ranks[number];
    if (word == "call") {
      std::int64_t ns = 0;
      input >> ns;
      rank.latency.AddCall(ns);
      continue;
    }
    std::int64_t iteration = 0;
    client::NoiseEstimate::Time time;
    input >> iteration >> time.row >> time.mhz >> time.ns;
    if (!input) {
      fmt::print(stderr, "estimate_conditions: not a line of times or calls: '{}'\n", word);
      return 2;
    }
    if (iteration != rank.iteration) rank.EndIteration();
    rank.iteration = iteration;
    rank.times.push_back(time);
  }
  server::ConditionsWatch watch;
  for (auto& [number, rank] : ranks) {
    rank.EndIteration();
    watch.Take(number, ConditionsOf(rank));
  }
  const server::MeasuredConditions measured = watch.Combined();
  const server::PlannedConditions planned = server::PlannedFor({}, measured);
  for (std::size_t i = 0; i < server::kConditions; ++i) {
    const server::MeasuredCondition& figure = measured.figures[i];
    fmt::print("{} {} {} {}\n", server::kConditionNames[i], figure.value, figure.error,
               planned.values[i]);
  }
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main() { return perseus::bench::Run(std::cin); }
