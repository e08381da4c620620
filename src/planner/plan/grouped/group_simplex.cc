// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The dual simplex method of group_relaxation.cc: a basis with its inverse as a
// dense matrix, and the pivots on it, for the paths that are rows now.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "plan/grouped/group_relaxation.h"

namespace perseus::plan {
namespace {

constexpr double kSmallestPivot = 1e-8;
constexpr int kPivotsPerRow = 20;    // Then it is given up.
constexpr int kRefactorAfter = 100;  // Pivots.

}  // namespace

double GroupRelaxation::PathSeconds(int row, int column) const {
  const GroupProblem::Group& group = problem_.groups()[columns_[column].group];
  const GroupProblem::Option& option = group.options[columns_[column].option];
  const std::vector<int>& counts = pool_[rows_[row]].counts;
  double seconds = 0;
  for (int c = 0; c < group.num_cells(); ++c) {
    seconds += counts[group.first_cell + c] * option.cell_seconds[c];
  }
  return seconds / second_scale_;
}

// The inverse of the basis from nothing, by elimination with row pivoting.
bool GroupRelaxation::Refactor() {
  const int n = size_;
  const int groups = problem_.num_groups();
  std::vector<double> matrix(static_cast<std::size_t>(n) * n, 0);
  for (int k = 0; k < n; ++k) {
    const int variable = basic_[k];
    if (IsSlack(variable)) {
      matrix[static_cast<std::size_t>(groups + variable - num_columns_) * n + k] = 1;
      continue;
    }
    matrix[static_cast<std::size_t>(columns_[variable].group) * n + k] = 1;
    for (int r = 0; r < n - groups; ++r) {
      matrix[static_cast<std::size_t>(groups + r) * n + k] = PathSeconds(r, variable);
    }
  }
  inverse_.assign(static_cast<std::size_t>(n) * n, 0);
  for (int k = 0; k < n; ++k) inverse_[static_cast<std::size_t>(k) * n + k] = 1;
  for (int k = 0; k < n; ++k) {
    int pivot = k;
    for (int r = k + 1; r < n; ++r) {
      if (std::abs(matrix[static_cast<std::size_t>(r) * n + k]) >
          std::abs(matrix[static_cast<std::size_t>(pivot) * n + k])) {
        pivot = r;
      }
    }
    double* const pivot_row = &matrix[static_cast<std::size_t>(pivot) * n];
    double* const row = &matrix[static_cast<std::size_t>(k) * n];
    if (std::abs(pivot_row[k]) < kSmallestPivot * kSmallestPivot) return false;
    if (pivot != k) {
      std::swap_ranges(row, row + n, pivot_row);
      std::swap_ranges(&inverse_[static_cast<std::size_t>(k) * n],
                       &inverse_[static_cast<std::size_t>(k) * n] + n,
                       &inverse_[static_cast<std::size_t>(pivot) * n]);
    }
    const double factor = 1 / row[k];
    double* const inverse_row = &inverse_[static_cast<std::size_t>(k) * n];
    for (int c = 0; c < n; ++c) {
      row[c] *= factor;
      inverse_row[c] *= factor;
    }
    for (int r = 0; r < n; ++r) {
      const double times = matrix[static_cast<std::size_t>(r) * n + k];
      if (r == k || times == 0) continue;
      double* const other = &matrix[static_cast<std::size_t>(r) * n];
      double* const other_inverse = &inverse_[static_cast<std::size_t>(r) * n];
      for (int c = 0; c < n; ++c) {
        other[c] -= times * row[c];
        other_inverse[c] -= times * inverse_row[c];
      }
      work_ += 2 * n;
    }
  }
  return true;
}

void GroupRelaxation::Load(const Domain& domain, const Basis& basis) {
  domain_ = domain;
  rows_ = basis.paths;
  basic_ = basis.variables;
  size_ = static_cast<int>(basic_.size());
  if (Refactor()) return;
  basic_ = CheapestBasis(domain).variables;
  rows_.clear();
  size_ = static_cast<int>(basic_.size());
  Refactor();
}

// A new row, with its slack in the basis.
void GroupRelaxation::AddRow(int path) {
  const int n = size_;
  rows_.push_back(path);
  const int row = static_cast<int>(rows_.size()) - 1;
  std::vector<double> last(n + 1, 0);
  last[n] = 1;
  for (int k = 0; k < n; ++k) {
    if (IsSlack(basic_[k])) continue;
    const double seconds = PathSeconds(row, basic_[k]);
    if (seconds == 0) continue;
    for (int c = 0; c < n; ++c) last[c] -= seconds * inverse_[static_cast<std::size_t>(k) * n + c];
  }
  std::vector<double> larger(static_cast<std::size_t>(n + 1) * (n + 1), 0);
  for (int k = 0; k < n; ++k) {
    std::copy_n(&inverse_[static_cast<std::size_t>(k) * n], n,
                &larger[static_cast<std::size_t>(k) * (n + 1)]);
  }
  std::copy(last.begin(), last.end(), &larger[static_cast<std::size_t>(n) * (n + 1)]);
  inverse_ = std::move(larger);
  basic_.push_back(num_columns_ + row);
  ++size_;
  work_ += static_cast<std::int64_t>(n) * n;
}

void GroupRelaxation::ComputePrices() {
  prices_.assign(size_, 0);
  for (int k = 0; k < size_; ++k) {
    const double cost = CostOf(basic_[k]);
    if (cost == 0) continue;
    const double* const row = &inverse_[static_cast<std::size_t>(k) * size_];
    for (int c = 0; c < size_; ++c) prices_[c] += cost * row[c];
  }
  work_ += static_cast<std::int64_t>(size_) * size_;
}

void GroupRelaxation::ComputeValues() {
  const int groups = problem_.num_groups();
  values_.assign(size_, 0);
  for (int k = 0; k < size_; ++k) {
    const double* const row = &inverse_[static_cast<std::size_t>(k) * size_];
    double value = 0;
    for (int g = 0; g < groups; ++g) value += row[g];
    for (int r = groups; r < size_; ++r) {
      const double room = problem_.seconds() - pool_[rows_[r - groups]].delay_seconds;
      value += row[r] * (room / second_scale_);
    }
    values_[k] = value;
  }
  work_ += static_cast<std::int64_t>(size_) * size_;
}

void GroupRelaxation::FillColumn(int variable) {
  const int groups = problem_.num_groups();
  entering_.assign(size_, 0);
  const auto add = [this](int row, double factor) {
    for (int k = 0; k < size_; ++k) {
      entering_[k] += factor * inverse_[static_cast<std::size_t>(k) * size_ + row];
    }
    work_ += size_;
  };
  if (IsSlack(variable)) {
    add(groups + variable - num_columns_, 1);
    return;
  }
  add(columns_[variable].group, 1);
  for (int r = 0; r < size_ - groups; ++r) {
    const double seconds = PathSeconds(r, variable);
    if (seconds != 0) add(groups + r, seconds);
  }
}

void GroupRelaxation::Pivot(int row, int entering) {
  double* const pivot_row = &inverse_[static_cast<std::size_t>(row) * size_];
  const double factor = 1 / entering_[row];
  for (int c = 0; c < size_; ++c) pivot_row[c] *= factor;
  for (int k = 0; k < size_; ++k) {
    const double times = entering_[k];
    if (k == row || times == 0) continue;
    double* const other = &inverse_[static_cast<std::size_t>(k) * size_];
    for (int c = 0; c < size_; ++c) other[c] -= times * pivot_row[c];
  }
  basic_[row] = entering;
  work_ += static_cast<std::int64_t>(size_) * size_;
}

GroupRelaxation::Outcome GroupRelaxation::Run(double cutoff) {
  const int groups = problem_.num_groups();
  std::vector<double> weights(problem_.num_cells());
  std::vector<double> price_weights(problem_.num_cells());
  std::vector<std::uint8_t> is_basic;
  const int most_pivots = kPivotsPerRow * (size_ + 10);
  for (int pivots = 0; pivots < most_pivots && work_ <= work_limit_; ++pivots) {
    if (pivots % kRefactorAfter == kRefactorAfter - 1 && !Refactor()) return Outcome::kStopped;
    ComputePrices();
    ComputeValues();
    double objective = 0;
    int leaving = -1;
    double worst = kZero;
    for (int k = 0; k < size_; ++k) {
      objective += CostOf(basic_[k]) * values_[k];
      const double infeasible = values_[k] > 0 && IsAllowed(basic_[k]) ? 0 : std::abs(values_[k]);
      if (infeasible > worst) {
        worst = infeasible;
        leaving = k;
      }
    }
    if (leaving < 0) return Outcome::kOptimal;
    if (objective * joule_scale_ > cutoff) return Outcome::kStopped;

    // The row rises to zero (sign -1) or falls to it.
    const double sign = values_[leaving] < 0 ? -1 : 1;
    const double* const rho = &inverse_[static_cast<std::size_t>(leaving) * size_];
    std::fill(weights.begin(), weights.end(), 0.0);
    std::fill(price_weights.begin(), price_weights.end(), 0.0);
    for (int r = groups; r < size_; ++r) {
      if (rho[r] == 0 && prices_[r] == 0) continue;
      const std::vector<int>& counts = pool_[rows_[r - groups]].counts;
      for (std::size_t c = 0; c < counts.size(); ++c) {
        weights[c] += rho[r] * counts[c];
        price_weights[c] += prices_[r] * counts[c];
      }
    }
    work_ += 2 * static_cast<std::int64_t>(size_ - groups) * problem_.num_cells();
    is_basic.assign(num_columns_ + size_ - groups, 0);
    for (const int variable : basic_) is_basic[variable] = 1;
    int entering = -1;
    double best_ratio = std::numeric_limits<double>::infinity();
    double best_pivot = 0;
    const auto offer = [&](int variable, double alpha, double reduced) {
      if (sign * alpha < kSmallestPivot) return;
      const double ratio = std::max(reduced, 0.0) / (sign * alpha);
      if (ratio < best_ratio - kZero * kZero ||
          (ratio <= best_ratio && sign * alpha > best_pivot)) {
        best_ratio = ratio;
        best_pivot = sign * alpha;
        entering = variable;
      }
    };
    for (int g = 0; g < groups; ++g) {
      const GroupProblem::Group& group = problem_.groups()[g];
      for (int k = domain_[g].first; k <= domain_[g].last; ++k) {
        if (is_basic[first_column_[g] + k]) continue;
        const GroupProblem::Option& option = group.options[k];
        double alpha = 0;
        double priced = 0;
        for (int c = 0; c < group.num_cells(); ++c) {
          alpha += weights[group.first_cell + c] * option.cell_seconds[c];
          priced += price_weights[group.first_cell + c] * option.cell_seconds[c];
        }
        offer(first_column_[g] + k, rho[g] + alpha / second_scale_,
              option.joules / joule_scale_ - prices_[g] - priced / second_scale_);
        work_ += 2 * group.num_cells();
      }
    }
    for (int r = groups; r < size_; ++r) {
      const int variable = num_columns_ + r - groups;
      if (!is_basic[variable]) offer(variable, rho[r], -prices_[r]);
    }
    if (entering < 0) {
      BoundAlongRay(leaving, sign, cutoff);
      return Outcome::kEmpty;
    }
    FillColumn(entering);
    if (std::abs(entering_[leaving]) < kSmallestPivot * kSmallestPivot) return Outcome::kStopped;
    Pivot(leaving, entering);
  }
  ComputePrices();
  ComputeValues();
  return Outcome::kStopped;
}

}  // namespace perseus::plan
