// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A dual simplex method (group_simplex.cc) with rows made on demand.
//
// Variables are the shares y of each group's options, and one slack for each
// path; rows are "the shares of a group add up to one" and "the path takes at
// most so long". Of the countless paths only those become rows that an optimum
// of the rows before has made too long; some dozens are enough. Least cost
// options and slacks are a first basis that is optimal for some right side, so
// the method is the dual one: a row with a negative value, or with a positive
// one of an option that the domain has lost, leaves. The inverse of the basis
// is kept as a dense matrix: it has as many rows as there are groups and tight
// paths. Pricing costs no more than a multiplication per option and cell, since
// all that an option has to do with paths is how long the computations of a cell
// take.
//
// Numbers are doubles, and nothing rests on them: a bound is made anew from the
// prices L of the paths,
//
//   sum over groups of min over options (joules + L x counts x seconds)
//     + sum over paths L x (delay - deadline),
//
// which holds for all L >= 0 whatever they are. Empty domains are shown by
// going along the ray on which this grows without end.

#include "plan/grouped/group_relaxation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace perseus::plan {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostOfferedPaths = 400;
constexpr int kRayDoublings = 60;
constexpr int kMostPathsAtOnce = 4;
constexpr int kMostRounds = 500;

}  // namespace

GroupRelaxation::GroupRelaxation(const GroupProblem& problem)
    : problem_(problem), second_scale_(problem.seconds() > 0 ? problem.seconds() : 1) {
  double spread = 0;
  for (int g = 0; g < problem.num_groups(); ++g) {
    const auto& options = problem.groups()[g].options;
    first_column_.push_back(num_columns_);
    double least = kUnbounded;
    double most = -kUnbounded;
    for (int k = 0; k < static_cast<int>(options.size()); ++k) {
      columns_.push_back({g, k});
      least = std::min(least, options[k].joules);
      most = std::max(most, options[k].joules);
    }
    spread += most - least;
    most_joules_ += most;
    least_.push_back(least);
    num_columns_ += static_cast<int>(options.size());
  }
  joule_scale_ = spread > 0 ? spread : 1;
  first_column_.push_back(num_columns_);
}

bool GroupRelaxation::IsAllowed(int variable) const {
  if (IsSlack(variable)) return true;
  const Column& column = columns_[variable];
  return column.option >= domain_[column.group].first &&
         column.option <= domain_[column.group].last;
}

double GroupRelaxation::CostOf(int variable) const {
  if (IsSlack(variable)) return 0;
  const Column& column = columns_[variable];
  return problem_.groups()[column.group].options[column.option].joules / joule_scale_;
}

GroupRelaxation::Basis GroupRelaxation::CheapestBasis(const Domain& domain) const {
  Basis basis;
  for (int g = 0; g < problem_.num_groups(); ++g) {
    const auto& options = problem_.groups()[g].options;
    int best = domain[g].first;
    for (int k = best; k <= domain[g].last; ++k) {
      if (options[k].joules < options[best].joules) best = k;
    }
    basis.variables.push_back(first_column_[g] + best);
  }
  return basis;
}

void GroupRelaxation::Bound(const std::vector<double>& path_prices) {
  const int groups = problem_.num_groups();
  const double to_watts = joule_scale_ / second_scale_;
  std::vector<double> cell_prices(problem_.num_cells(), 0);
  double bound = 0;
  double magnitude = 0;
  for (int r = 0; r < size_ - groups; ++r) {
    const double watts = std::max(path_prices[r], 0.0) * to_watts;
    if (watts == 0) continue;
    const GroupProblem::Path& path = pool_[rows_[r]];
    for (std::size_t c = 0; c < path.counts.size(); ++c) cell_prices[c] += watts * path.counts[c];
    bound += watts * (path.delay_seconds - problem_.seconds());
    magnitude += watts * (path.delay_seconds + problem_.seconds());
  }
  std::vector<double> least(groups, kUnbounded);
  for (int g = 0; g < groups; ++g) {
    const GroupProblem::Group& group = problem_.groups()[g];
    for (int k = domain_[g].first; k <= domain_[g].last; ++k) {
      double priced = group.options[k].joules;
      for (int c = 0; c < group.num_cells(); ++c) {
        priced += cell_prices[group.first_cell + c] * group.options[k].cell_seconds[c];
      }
      least[g] = std::min(least[g], priced);
      work_ += group.num_cells();
    }
    bound += least[g];
    magnitude += std::abs(least[g]);
  }
  work_ += static_cast<std::int64_t>(size_ - groups) * problem_.num_cells();
  // Each sum has no more terms than this.
  bound -= kOperationRounding * (size_ + 2.0 * problem_.num_cells() + 8) * magnitude;
  if (!(bound > bound_)) return;
  bound_ = bound;
  least_ = std::move(least);
  cell_prices_ = std::move(cell_prices);
}

void GroupRelaxation::BoundAlongRay(int row, double sign, double cutoff) {
  const int groups = problem_.num_groups();
  const double* const rho = &inverse_[static_cast<std::size_t>(row) * size_];
  std::vector<double> path_prices(size_ - groups);
  double step = 1;
  for (int k = 0; k < kRayDoublings && bound_ <= std::min(cutoff, most_joules_); ++k, step *= 2) {
    for (int r = groups; r < size_; ++r) {
      path_prices[r - groups] = -prices_[r] - sign * step * rho[r];
    }
    Bound(path_prices);
  }
  // No choice costs so much, so there is none.
  if (bound_ > most_joules_ + kZero * std::abs(most_joules_)) bound_ = kUnbounded;
}

void GroupRelaxation::AddPath(const GroupProblem::Path& path) {
  if (pool_.size() >= kMostOfferedPaths) return;
  if (std::find(pool_.begin(), pool_.end(), path) == pool_.end()) pool_.push_back(path);
}

bool GroupRelaxation::AddLongPaths() {
  std::vector<double> mean(problem_.num_cells(), 0);
  for (int k = 0; k < size_; ++k) {
    if (IsSlack(basic_[k])) continue;
    const Column& column = columns_[basic_[k]];
    const GroupProblem::Group& group = problem_.groups()[column.group];
    for (int c = 0; c < group.num_cells(); ++c) {
      mean[group.first_cell + c] += values_[k] * group.options[column.option].cell_seconds[c];
    }
  }
  const double most = problem_.seconds() * (1 + kPathTooLong);
  const auto is_row = [this](int path) {
    return std::find(rows_.begin(), rows_.end(), path) != rows_.end();
  };
  // Paths that are known come cheaper.
  std::vector<std::pair<double, int>> known;
  for (int p = 0; p < static_cast<int>(pool_.size()); ++p) {
    double seconds = pool_[p].delay_seconds;
    for (std::size_t c = 0; c < mean.size(); ++c) seconds += pool_[p].counts[c] * mean[c];
    if (seconds > most && !is_row(p)) known.emplace_back(-seconds, p);
  }
  work_ += static_cast<std::int64_t>(pool_.size() * mean.size());
  if (!known.empty()) {
    std::sort(known.begin(), known.end());
    for (std::size_t k = 0; k < known.size() && k < kMostPathsAtOnce; ++k) AddRow(known[k].second);
    return true;
  }
  GroupProblem::Path path;
  work_ += 4 * static_cast<std::int64_t>(problem_.num_computations());
  if (problem_.LongestPath(mean, &path) <= most) return false;
  const auto place = std::find(pool_.begin(), pool_.end(), path);
  const int index = static_cast<int>(place - pool_.begin());
  if (place == pool_.end()) pool_.push_back(std::move(path));
  if (is_row(index)) return false;
  AddRow(index);
  return true;
}

void GroupRelaxation::Solve(const Domain& domain, const Basis& basis, double cutoff) {
  const int groups = problem_.num_groups();
  bound_ = -kUnbounded;
  Load(domain, basis);
  for (int round = 0; round < kMostRounds; ++round) {
    const Outcome outcome = Run(cutoff);
    std::vector<double> path_prices(size_ - groups);
    for (int r = groups; r < size_; ++r) path_prices[r - groups] = -prices_[r];
    Bound(path_prices);
    if (outcome != Outcome::kOptimal || bound_ > cutoff || work_ > work_limit_) return;
    if (!AddLongPaths()) return;
  }
}

std::vector<std::pair<int, double>> GroupRelaxation::MixOf(int group) const {
  std::vector<std::pair<int, double>> mix;
  for (int k = 0; k < size_; ++k) {
    if (IsSlack(basic_[k]) || columns_[basic_[k]].group != group || values_[k] <= kZero) continue;
    mix.emplace_back(columns_[basic_[k]].option, values_[k]);
  }
  std::sort(mix.begin(), mix.end());
  return mix;
}

double GroupRelaxation::ExtraJoules(int group, int option) const {
  const GroupProblem::Group& of = problem_.groups()[group];
  double priced = of.options[option].joules;
  for (int c = 0; c < of.num_cells(); ++c) {
    priced += cell_prices_[of.first_cell + c] * of.options[option].cell_seconds[c];
  }
  return priced - least_[group];
}

GroupRelaxation::Basis GroupRelaxation::CurrentBasis() const {
  // A row whose slack is basic can go, and its slack with it.
  const int groups = problem_.num_groups();
  std::vector<std::uint8_t> loose(size_ - groups, 0);
  for (const int variable : basic_) {
    if (IsSlack(variable)) loose[variable - num_columns_] = 1;
  }
  Basis basis;
  for (int r = 0; r < size_ - groups; ++r) {
    if (!loose[r]) basis.paths.push_back(rows_[r]);
  }
  for (const int variable : basic_) {
    if (!IsSlack(variable)) basis.variables.push_back(variable);
  }
  return basis;
}

}  // namespace perseus::plan
