// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/program_division.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "fleet/corner_program.h"

namespace perseus::fleet {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
// Of prices that sum to 1: one that is not rounding.
constexpr double kPaid = 1e-8;
// What a ratio that stays may lose, so that rounding leaves the rest feasible: at first, and at
// most.
constexpr double kFirstSlack = 2e-12;
constexpr double kMostSlack = 1e-9;

// The rows of limits, as parts of the limit.
class LimitRows {
 public:
  LimitRows(const Limits& limits, CornerProgram* program) {
    for (const double limit : limits) {
      scales_.push_back(limit > 0 ? limit : 1);
      rows_.push_back(std::isinf(limit) ? kNone : program->AddRow(-kUnbounded, limit > 0 ? 1 : 0));
    }
  }

  void AddTerms(const Member& member, std::vector<CornerProgram::Term>* terms) const {
    for (const PowerShare& share : member.nodes) {
      if (rows_[share.node] == kNone) continue;
      terms->push_back({rows_[share.node], 0, share.fraction / scales_[share.node]});
    }
  }

  double PriceOf(std::size_t node, const CornerProgram& program) const {
    if (rows_[node] == kNone) return 0;
    return std::max(0.0, -program.Dual(rows_[node]) / scales_[node]);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::vector<std::size_t> rows_ = {};  // [node]
  std::vector<double> scales_ = {};     // [node]
};

Filling FillingOf(const State& state, const CornerProgram& program) {
  Filling filling;
  for (std::size_t j = 0; j < state.members.size(); ++j) {
    filling.x.push_back(program.Throughput(j));
  }
  filling.prices.assign(state.nodes.size(), 0);
  return filling;
}

// The least of all jobs keeps all limits, so only rounding makes a program infeasible.
tl::unexpected<Error> RoundedAway() {
  return MakeError(ErrorCode::kInternal,
                   "COIN-OR CLP found no division where there is one; please report this.");
}

}  // namespace

Result<Filling> ThroughputProgram(const State& state, const Limits& limits) {
  CornerProgram program;
  const LimitRows rows(limits, &program);
  for (const Member& member : state.members) {
    std::vector<CornerProgram::Term> terms;
    rows.AddTerms(member, &terms);
    program.AddUnit(&member.curve, -member.weight / member.per_speed, 0, std::move(terms));
  }
  const Result<bool> solved = program.Solve();
  if (!solved) return tl::unexpected<Error>(solved.error());
  if (!*solved) return RoundedAway();
  Filling filling = FillingOf(state, program);
  for (std::size_t n = 0; n < state.nodes.size(); ++n) filling.prices[n] = rows.PriceOf(n, program);
  return filling;
}

Result<Filling> TenantsProgram(const State& state, const Limits& limits) {
  std::vector<double> weights(state.tenants, 0);
  for (const Member& member : state.members) weights[member.tenant] += member.weight;
  CornerProgram program;
  const LimitRows rows(limits, &program);
  // Each tenant has a row while its ratio rises, and one that keeps it when it stays.
  std::vector<std::size_t> rising;
  std::vector<std::size_t> kept;
  std::vector<std::pair<std::size_t, double>> level_terms;
  for (std::size_t i = 0; i < state.tenants; ++i) {
    rising.push_back(program.AddRow(0, kUnbounded));
    kept.push_back(program.AddRow(0, kUnbounded));
    level_terms.emplace_back(rising.back(), -1);
  }
  for (const Member& member : state.members) {
    const double per_x = member.weight / weights[member.tenant] / member.per_speed;
    std::vector<CornerProgram::Term> terms = {{rising[member.tenant], per_x, 0},
                                              {kept[member.tenant], per_x, 0}};
    rows.AddTerms(member, &terms);
    program.AddUnit(&member.curve, 0, 0, std::move(terms));
  }
  const std::size_t level = program.AddVariable(0, kUnbounded, -1, std::move(level_terms));

  Filling filling;
  std::vector<std::optional<double>> ratios(state.tenants);  // Of those that stay.
  std::vector<double> prices(state.nodes.size(), 0);
  double slack = kFirstSlack;
  for (std::size_t left = state.tenants; left > 0;) {
    const Result<bool> solved = program.Solve();
    if (!solved) return tl::unexpected<Error>(solved.error());
    if (!*solved) {
      slack *= 10;
      if (slack > kMostSlack) return RoundedAway();
      for (std::size_t i = 0; i < state.tenants; ++i) {
        if (ratios[i]) program.SetRowBounds(kept[i], *ratios[i] * (1 - slack), kUnbounded);
      }
      continue;
    }
    filling = FillingOf(state, program);
    for (std::size_t n = 0; n < state.nodes.size(); ++n) {
      if (prices[n] == 0) prices[n] = rows.PriceOf(n, program);
    }
    // Who pays for the level cannot rise beyond it in any best division.
    double most = 0;
    for (std::size_t i = 0; i < state.tenants; ++i) {
      if (!ratios[i]) most = std::max(most, program.Dual(rising[i]));
    }
    std::vector<std::size_t> stopped;
    for (std::size_t i = 0; i < state.tenants; ++i) {
      if (!ratios[i] && program.Dual(rising[i]) >= std::min(kPaid, most)) stopped.push_back(i);
    }
    const double ratio = program.Value(level);
    for (const std::size_t i : stopped) {
      ratios[i] = ratio;
      --left;
      program.SetRowBounds(rising[i], -kUnbounded, kUnbounded);
      program.SetRowBounds(kept[i], ratio * (1 - slack), kUnbounded);
    }
  }
  filling.prices = std::move(prices);
  return filling;
}

}  // namespace perseus::fleet
