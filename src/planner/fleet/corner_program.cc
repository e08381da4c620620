// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/corner_program.h"

#include <fmt/format.h>

#include <ClpSimplex.hpp>
#include <CoinError.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace perseus::fleet {
namespace {

constexpr std::size_t kFirstParts = 12;
constexpr double kTolerance = 1e-10;
// Below this part of what it sums, a gain is rounding.
constexpr double kRounding = 1e-13;

}  // namespace

struct CornerProgram::Parts {
  using Status = ClpSimplex::Status;

  struct Row {
    double lower = 0;
    double upper = 0;
    Status status = ClpSimplex::basic;
    double dual = 0;
  };

  struct Variable {
    double lower = 0;
    double upper = 0;
    double cost = 0;
    std::vector<std::pair<std::size_t, double>> terms = {};
    bool shortfall = false;
    Status status = ClpSimplex::atLowerBound;
    double value = 0;
  };

  // A column for each part of its curve: how much of it is taken, 0 to 1.
  struct Part {
    std::size_t to = 0;  // The corner at its end; it begins where the one before ends.
    Status status = ClpSimplex::atLowerBound;
    double value = 0;
  };

  struct Unit {
    const PowerCurve* curve = nullptr;
    double cost_per_x = 0;
    double cost_per_watt = 0;
    std::vector<Term> terms = {};
    std::vector<Part> parts = {};
  };

  std::vector<Row> rows = {};
  std::vector<Variable> variables = {};  // Columns 0, 1, ...; then those of the units' parts.
  std::vector<Unit> units = {};
  bool begun = false;
  bool costs_shortfall = false;  // The costs are those of shortfalls.
  double cost_scale = 1;

  void Begin();
  void Load(ClpSimplex* model) const;
  void Keep(const ClpSimplex& model);
  bool SplitParts();
  // The least cost, without what units cost at their first corners. Infinite where nothing is
  // feasible.
  Result<double> Optimum();
};

void CornerProgram::Parts::Begin() {
  if (begun) return;
  begun = true;
  cost_scale = 0;
  for (Unit& unit : units) {
    cost_scale = std::max({cost_scale, std::abs(unit.cost_per_x * unit.curve->x.back()),
                           std::abs(unit.cost_per_watt * unit.curve->watts.back())});
    const std::size_t last = unit.curve->size() - 1;
    const std::size_t parts = std::min(last, kFirstParts);
    for (std::size_t i = 1; i <= parts; ++i) unit.parts.push_back({last * i / parts});
  }
  for (const Variable& variable : variables) {
    cost_scale = std::max(cost_scale, std::abs(variable.cost));
  }
  if (cost_scale == 0) cost_scale = 1;
}

// The program with the parts that there are, at the basis where it was left.
void CornerProgram::Parts::Load(ClpSimplex* model) const {
  std::vector<CoinBigIndex> starts = {0};
  std::vector<int> indices;
  std::vector<double> elements;
  std::vector<double> lower;
  std::vector<double> upper;
  std::vector<double> costs;
  std::vector<Status> statuses;
  const auto add = [&](double least, double most, double cost, Status status) {
    starts.push_back(static_cast<CoinBigIndex>(indices.size()));
    lower.push_back(least);
    upper.push_back(most);
    costs.push_back(cost);
    statuses.push_back(status);
  };
  for (const Variable& variable : variables) {
    for (const auto& [row, element] : variable.terms) {
      indices.push_back(static_cast<int>(row));
      elements.push_back(element);
    }
    if (variable.shortfall) {
      add(0, costs_shortfall ? COIN_DBL_MAX : 0, costs_shortfall ? 1 : 0, variable.status);
    } else {
      add(variable.lower, variable.upper, costs_shortfall ? 0 : variable.cost / cost_scale,
          variable.status);
    }
  }
  std::vector<double> fixed(rows.size(), 0);  // Of units at their first corners.
  for (const Unit& unit : units) {
    const PowerCurve& curve = *unit.curve;
    for (const Term& term : unit.terms) {
      fixed[term.row] += term.per_x * curve.x[0] + term.per_watt * curve.watts[0];
    }
    std::size_t from = 0;
    for (const Part& part : unit.parts) {
      const double x = curve.x[part.to] - curve.x[from];
      const double watts = curve.watts[part.to] - curve.watts[from];
      for (const Term& term : unit.terms) {
        indices.push_back(static_cast<int>(term.row));
        elements.push_back(term.per_x * x + term.per_watt * watts);
      }
      const double cost = unit.cost_per_x * x + unit.cost_per_watt * watts;
      add(0, 1, costs_shortfall ? 0 : cost / cost_scale, part.status);
      from = part.to;
    }
  }
  std::vector<double> row_lower;
  std::vector<double> row_upper;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    row_lower.push_back(rows[r].lower - fixed[r]);
    row_upper.push_back(rows[r].upper - fixed[r]);
  }
  model->setLogLevel(0);
  model->setPrimalTolerance(kTolerance);
  model->setDualTolerance(kTolerance);
  model->setPerturbation(100);  // Off.
  model->loadProblem(static_cast<int>(costs.size()), static_cast<int>(rows.size()), starts.data(),
                     indices.data(), elements.data(), lower.data(), upper.data(), costs.data(),
                     row_lower.data(), row_upper.data());
  model->createStatus();
  for (std::size_t c = 0; c < statuses.size(); ++c) {
    model->setColumnStatus(static_cast<int>(c), statuses[c]);
    if (statuses[c] == ClpSimplex::atUpperBound) {
      model->primalColumnSolution()[c] = upper[c];
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    model->setRowStatus(static_cast<int>(r), rows[r].status);
  }
}

void CornerProgram::Parts::Keep(const ClpSimplex& model) {
  int column = 0;
  const double* solution = model.primalColumnSolution();
  for (Variable& variable : variables) {
    variable.status = model.getColumnStatus(column);
    variable.value = solution[column++];
  }
  for (Unit& unit : units) {
    for (Part& part : unit.parts) {
      part.status = model.getColumnStatus(column);
      part.value = std::clamp(solution[column++], 0.0, 1.0);
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].status = model.getRowStatus(static_cast<int>(r));
    rows[r].dual = model.dualRowSolution()[r];
  }
}

// Splits a part of each unit at the corner that lowers the cost most at today's prices. Returns
// false if all of these corners are there.
bool CornerProgram::Parts::SplitParts() {
  bool split = false;
  for (Unit& unit : units) {
    const PowerCurve& curve = *unit.curve;
    const double scale = costs_shortfall ? 0 : 1 / cost_scale;
    double per_x = unit.cost_per_x * scale;
    double per_watt = unit.cost_per_watt * scale;
    for (const Term& term : unit.terms) {
      per_x -= rows[term.row].dual * term.per_x;
      per_watt -= rows[term.row].dual * term.per_watt;
    }
    if (per_watt <= 0) continue;  // The best corner is one of the ends.
    std::size_t best = 0;
    for (std::size_t high = curve.size() - 1; best < high;) {
      const std::size_t middle = best + (high - best) / 2;
      if (per_x + per_watt * curve.SlopeAfter(middle) < 0) {
        best = middle + 1;
      } else {
        high = middle;
      }
    }
    const auto part =
        std::lower_bound(unit.parts.begin(), unit.parts.end(), best,
                         [](const Part& p, std::size_t corner) { return p.to < corner; });
    if (best == 0 || part == unit.parts.end() || part->to == best) continue;
    const std::size_t from = part == unit.parts.begin() ? 0 : std::prev(part)->to;
    const auto cost = [&](std::size_t k) { return per_x * curve.x[k] + per_watt * curve.watts[k]; };
    const double size = std::abs(per_x * curve.x[best]) + std::abs(per_watt * curve.watts[best]);
    if (std::min(cost(from), cost(part->to)) - cost(best) <= kRounding * size) continue;
    // The basis stays one: of a basic part, one of the two is basic.
    const double taken = part->value * (curve.x[part->to] - curve.x[from]);
    Part first = {best, part->status};
    if (part->status == ClpSimplex::basic) {
      const bool ends_later = taken > curve.x[best] - curve.x[from];
      if (ends_later) first.status = ClpSimplex::atUpperBound;
      if (!ends_later) part->status = ClpSimplex::atLowerBound;
    }
    unit.parts.insert(part, first);
    split = true;
  }
  return split;
}

Result<double> CornerProgram::Parts::Optimum() {
  for (;;) {
    ClpSimplex model;
    Load(&model);
    model.primal(1);
    if (model.isProvenPrimalInfeasible()) return std::numeric_limits<double>::infinity();
    if (model.status() != 0) {
      return MakeError(
          ErrorCode::kInternal,
          fmt::format("COIN-OR CLP ended with status {} on a program of {} rows and {} "
                      "columns; please report this.",
                      model.status(), model.numberRows(), model.numberColumns()));
    }
    Keep(model);
    if (!SplitParts()) return model.objectiveValue();
  }
}

CornerProgram::CornerProgram() : parts_(std::make_unique<Parts>()) {}
CornerProgram::~CornerProgram() = default;

std::size_t CornerProgram::AddRow(double lower, double upper) {
  parts_->rows.push_back({lower, upper});
  return parts_->rows.size() - 1;
}

std::size_t CornerProgram::AddUnit(const PowerCurve* curve, double cost_per_x, double cost_per_watt,
                                   std::vector<Term> terms) {
  parts_->units.push_back({curve, cost_per_x, cost_per_watt, std::move(terms)});
  return parts_->units.size() - 1;
}

std::size_t CornerProgram::AddVariable(double lower, double upper, double cost,
                                       std::vector<std::pair<std::size_t, double>> terms) {
  parts_->variables.push_back({lower, upper, cost, std::move(terms)});
  return parts_->variables.size() - 1;
}

std::size_t CornerProgram::AddShortfall(std::size_t row) {
  parts_->variables.push_back({0, COIN_DBL_MAX, 0, {{row, 1.0}}, true});
  return parts_->variables.size() - 1;
}

void CornerProgram::SetRowBounds(std::size_t row, double lower, double upper) {
  parts_->rows[row].lower = lower;
  parts_->rows[row].upper = upper;
}

Result<bool> CornerProgram::Solve() {
  try {
    parts_->Begin();
    const bool may_lack = std::any_of(parts_->variables.begin(), parts_->variables.end(),
                                      [](const Parts::Variable& v) { return v.shortfall; });
    if (may_lack) {
      parts_->costs_shortfall = true;
      const Result<double> lack = parts_->Optimum();
      if (!lack) return tl::unexpected<Error>(lack.error());
      if (*lack > 10 * kTolerance) return false;
      parts_->costs_shortfall = false;
    }
    const Result<double> cost = parts_->Optimum();
    if (!cost) return tl::unexpected<Error>(cost.error());
    return !std::isinf(*cost);
  } catch (const CoinError& error) {
    return MakeError(ErrorCode::kInternal, "COIN-OR CLP failed: " + error.message());
  }
}

double CornerProgram::Along(std::size_t unit, std::vector<double> PowerCurve::*axis) const {
  const Parts::Unit& of = parts_->units[unit];
  const std::vector<double>& at = of.curve->*axis;
  double sum = at[0];
  std::size_t from = 0;
  for (const Parts::Part& part : of.parts) {
    sum += part.value * (at[part.to] - at[from]);
    from = part.to;
  }
  return std::clamp(sum, at.front(), at.back());
}

double CornerProgram::Throughput(std::size_t unit) const { return Along(unit, &PowerCurve::x); }

double CornerProgram::Watts(std::size_t unit) const { return Along(unit, &PowerCurve::watts); }

double CornerProgram::Value(std::size_t variable) const {
  return parts_->variables[variable].value;
}

double CornerProgram::Dual(std::size_t row) const {
  return parts_->rows[row].dual * parts_->cost_scale;
}

}  // namespace perseus::fleet
