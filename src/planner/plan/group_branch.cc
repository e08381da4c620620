// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/group_branch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "plan/grouping.h"

namespace perseus::plan {
namespace {

// Whether `a` is nowhere worse than `b`.
bool Covers(const GroupProblem::Option& a, const GroupProblem::Option& b) {
  if (a.joules > b.joules) return false;
  for (std::size_t c = 0; c < a.cell_seconds.size(); ++c) {
    if (a.cell_seconds[c] > b.cell_seconds[c]) return false;
  }
  return true;
}

std::vector<GroupProblem::Option> Undominated(std::vector<GroupProblem::Option> options) {
  using Option = GroupProblem::Option;
  std::stable_sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.joules < b.joules;
  });
  std::vector<Option> kept;
  for (Option& option : options) {
    if (std::none_of(kept.begin(), kept.end(),
                     [&option](const Option& k) { return Covers(k, option); })) {
      kept.push_back(std::move(option));
    }
  }
  return kept;
}

}  // namespace

Result<GroupProblem> GroupProblem::Make(const CostedPipeline& pipeline, const Guard& guard,
                                        const std::vector<std::vector<int>>& groups,
                                        double seconds) {
  GroupProblem problem;
  problem.pipeline_ = &pipeline;
  problem.guard_ = guard;
  problem.seconds_ = seconds;
  problem.cell_of_.resize(pipeline.table_of.size());
  for (const std::vector<int>& members : groups) {
    Group group;
    group.members = members;
    group.first_cell = problem.num_cells();
    for (const int i : members) {
      const auto place = std::find(group.tables.begin(), group.tables.end(), pipeline.table_of[i]);
      const auto index = place - group.tables.begin();
      if (place == group.tables.end()) {
        group.tables.push_back(pipeline.table_of[i]);
        group.uses.push_back(0);
        ++problem.num_cells_;
      }
      ++group.uses[index];
      problem.cell_of_[i] = group.first_cell + static_cast<int>(index);
    }
    auto knobs = CommonKnobs(pipeline, guard, members);
    if (!knobs) return tl::unexpected(knobs.error());
    for (const int knob : *knobs) group.options.push_back(*problem.OptionAt(group, knob));
    group.options = Undominated(std::move(group.options));
    problem.groups_.push_back(std::move(group));
  }
  problem.end_.resize(problem.cell_of_.size());
  problem.before_.resize(problem.cell_of_.size());
  problem.cell_seconds_.resize(problem.num_cells_);
  return problem;
}

std::optional<GroupProblem::Option> GroupProblem::OptionAt(const Group& group, int knob) const {
  Option option;
  option.knob = knob;
  for (int c = 0; c < group.num_cells(); ++c) {
    const CostTable& table = pipeline_->tables[group.tables[c]];
    const CostOption* one = FindOption(table, knob);
    if (one == nullptr) return std::nullopt;
    option.cell_seconds.push_back(guard_.Seconds(table, *one));
    option.seconds += group.uses[c] * option.cell_seconds.back();
    option.joules += group.uses[c] * EffectiveEnergy(table, *one);
  }
  return option;
}

double GroupProblem::LongestPath(std::span<const double> cell_seconds, Path* path) const {
  const PipelineDag& dag = pipeline_->dag;
  double last_end = 0;
  int last = -1;
  for (int to = 0; to < dag.size(); ++to) {
    double ready = dag.start_delay_seconds[to];
    int before = -1;
    for (int k = dag.first_precedence[to]; k < dag.first_precedence[to + 1]; ++k) {
      const Precedence& precedence = dag.precedences[k];
      const double end = end_[precedence.from] + precedence.delay_seconds;
      if (end > ready) {
        ready = end;
        before = k;
      }
    }
    before_[to] = before;
    end_[to] = ready + cell_seconds[cell_of_[to]];
    if (end_[to] > last_end) {
      last_end = end_[to];
      last = to;
    }
  }
  if (path != nullptr) {
    path->counts.assign(num_cells_, 0);
    path->delay_seconds = dag.end_delay_seconds;
    while (last >= 0) {
      ++path->counts[cell_of_[last]];
      const int k = before_[last];
      path->delay_seconds +=
          k >= 0 ? dag.precedences[k].delay_seconds : dag.start_delay_seconds[last];
      last = k >= 0 ? dag.precedences[k].from : -1;
    }
  }
  return last_end + dag.end_delay_seconds;
}

double GroupProblem::LongestPathOf(std::span<const int> choice, Path* path) const {
  for (int g = 0; g < num_groups(); ++g) {
    const Group& group = groups_[g];
    const Option& option = group.options[choice[g]];
    std::copy(option.cell_seconds.begin(), option.cell_seconds.end(),
              cell_seconds_.begin() + group.first_cell);
  }
  return LongestPath(cell_seconds_, path);
}

double GroupProblem::JoulesOf(std::span<const int> choice) const {
  double joules = 0;
  for (int g = 0; g < num_groups(); ++g) joules += groups_[g].options[choice[g]].joules;
  return joules;
}

std::vector<CostOption> GroupProblem::PlanOf(std::span<const int> choice) const {
  std::vector<CostOption> plan(pipeline_->table_of.size());
  for (int g = 0; g < num_groups(); ++g) {
    const int knob = groups_[g].options[choice[g]].knob;
    for (const int i : groups_[g].members) plan[i] = *FindOption(pipeline_->TableOf(i), knob);
  }
  return plan;
}

// A dual simplex method with rows made on demand.
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

// The dual simplex method of GroupRelaxation: a basis with its inverse as a
// dense matrix, and the pivots on it, for the paths that are rows now.

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

// The best choice of a branch and bound so far, and how one is improved: one group slower, or two
// that exchange time. What it learns of long paths it shares with the relaxation.
class GroupIncumbent {
 public:
  // Borrows both. A choice counts where it needs less than `below_joules`.
  GroupIncumbent(const GroupProblem& problem, GroupRelaxation* relaxation, double below_joules);

  const std::vector<int>& choice() const { return best_; }  // Empty: none yet.
  double joules() const { return best_joules_; }            // `below_joules` where there is none.
  // Choices that differ by less count as equal.
  double tolerance() const { return tolerance_; }
  double Cutoff() const { return best_joules_ - tolerance_; }
  // Of its own, and with the relaxation's.
  std::int64_t own_work() const { return work_; }
  std::int64_t Work() const { return work_ + relaxation_.work(); }

  // Whether a choice ends in time; where it does not, its path is added to the relaxation.
  bool IsFeasible(const std::vector<int>& choice);
  // Takes a choice that is better and feasible.
  bool Offer(const std::vector<int>& choice);
  // Gives one group after the other its cheapest feasible option, as long as
  // that saves and there is work left.
  void Descend(std::int64_t work_limit, std::vector<int>* choice);
  // Improves the best choice by exchanges: one group faster by a few options, another slower.
  void Improve(std::int64_t work_limit);

 private:
  void AddPathSums(const std::vector<int>& choice, std::vector<double>* sums);
  double SecondsOn(const GroupProblem::Path& path, int g, int option) const;
  bool TooLong(const std::vector<double>& sums, const std::vector<int>& choice,
               const std::vector<std::pair<int, int>>& changes);
  bool Change(const std::vector<std::pair<int, int>>& changes, std::vector<int>* choice,
              std::vector<double>* sums);
  bool ImproveWith(int g, std::int64_t work_limit, std::vector<double>* sums);

  const GroupProblem& problem_;
  GroupRelaxation& relaxation_;
  std::int64_t work_ = 0;
  double tolerance_ = 0;
  std::vector<std::vector<int>> by_joules_;  // [group] Its options, cheapest first.
  std::vector<std::size_t> forbidding_;      // [group] Place in paths().
  std::vector<int> best_;
  double best_joules_;
};

namespace {

constexpr double kClearlyTooLong = 1e-9;  // Relative; of a path.
constexpr int kLongestExchange = 3;       // Options that an exchange may skip.

}  // namespace

GroupIncumbent::GroupIncumbent(const GroupProblem& problem, GroupRelaxation* relaxation,
                               double below_joules)
    : problem_(problem),
      relaxation_(*relaxation),
      forbidding_(problem.num_groups(), 0),
      best_joules_(below_joules) {
  for (const GroupProblem::Group& group : problem.groups()) {
    double most = 0;
    for (const auto& option : group.options) most = std::max(most, std::abs(option.joules));
    tolerance_ += kSameJoules * most;
    std::vector<int>& order = by_joules_.emplace_back(group.options.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&group](int a, int b) {
      return group.options[a].joules < group.options[b].joules;
    });
  }
}

bool GroupIncumbent::IsFeasible(const std::vector<int>& choice) {
  work_ += 4 * static_cast<std::int64_t>(problem_.num_computations());
  GroupProblem::Path path;
  if (problem_.LongestPathOf(choice, &path) <= problem_.seconds()) return true;
  relaxation_.AddPath(path);
  return false;
}

bool GroupIncumbent::Offer(const std::vector<int>& choice) {
  const double joules = problem_.JoulesOf(choice);
  if (joules >= best_joules_ || !IsFeasible(choice)) return false;
  best_ = choice;
  best_joules_ = joules;
  return true;
}

// Adds the seconds of the paths that are known by now and not in `sums`.
void GroupIncumbent::AddPathSums(const std::vector<int>& choice, std::vector<double>* sums) {
  const auto& paths = relaxation_.paths();
  for (std::size_t p = sums->size(); p < paths.size(); ++p) {
    double seconds = paths[p].delay_seconds;
    for (int g = 0; g < problem_.num_groups(); ++g) seconds += SecondsOn(paths[p], g, choice[g]);
    sums->push_back(seconds);
    work_ += problem_.num_cells();
  }
}

double GroupIncumbent::SecondsOn(const GroupProblem::Path& path, int g, int option) const {
  const GroupProblem::Group& group = problem_.groups()[g];
  double seconds = 0;
  for (int c = 0; c < group.num_cells(); ++c) {
    seconds += path.counts[group.first_cell + c] * group.options[option].cell_seconds[c];
  }
  return seconds;
}

// Whether a known path gets too long when groups change their options.
bool GroupIncumbent::TooLong(const std::vector<double>& sums, const std::vector<int>& choice,
                             const std::vector<std::pair<int, int>>& changes) {
  const double most = problem_.seconds() * (1 + kClearlyTooLong);
  const auto too_long = [&](std::size_t p) {
    const GroupProblem::Path& path = relaxation_.paths()[p];
    double seconds = sums[p];
    for (const auto& [g, to] : changes) {
      seconds += SecondsOn(path, g, to) - SecondsOn(path, g, choice[g]);
    }
    work_ += 4 * static_cast<std::int64_t>(changes.size());
    return seconds > most;
  };
  // The path that forbade it last will often do so again.
  std::size_t& last = forbidding_[changes.back().first];
  if (last < sums.size() && too_long(last)) return true;
  for (std::size_t p = 0; p < sums.size(); ++p) {
    if (!too_long(p)) continue;
    last = p;
    return true;
  }
  return false;
}

// Makes the changes where they are feasible.
bool GroupIncumbent::Change(const std::vector<std::pair<int, int>>& changes,
                            std::vector<int>* choice, std::vector<double>* sums) {
  if (TooLong(*sums, *choice, changes)) return false;
  std::vector<int> changed = *choice;
  for (const auto& [g, to] : changes) changed[g] = to;
  if (!IsFeasible(changed)) {
    AddPathSums(*choice, sums);
    return false;
  }
  for (std::size_t p = 0; p < sums->size(); ++p) {
    const GroupProblem::Path& path = relaxation_.paths()[p];
    for (const auto& [g, to] : changes) {
      (*sums)[p] += SecondsOn(path, g, to) - SecondsOn(path, g, (*choice)[g]);
    }
  }
  work_ += 4 * static_cast<std::int64_t>(sums->size() * changes.size());
  *choice = std::move(changed);
  return true;
}

void GroupIncumbent::Descend(std::int64_t work_limit, std::vector<int>* choice) {
  std::vector<double> sums;
  AddPathSums(*choice, &sums);
  for (bool changed = true; changed;) {
    changed = false;
    for (int g = 0; g < problem_.num_groups(); ++g) {
      for (const int k : by_joules_[g]) {
        if (Work() > work_limit) return;
        const auto& options = problem_.groups()[g].options;
        if (options[k].joules >= options[(*choice)[g]].joules) break;
        if (!Change({{g, k}}, choice, &sums)) continue;
        changed = true;
        break;
      }
    }
  }
}

void GroupIncumbent::Improve(std::int64_t work_limit) {
  Descend(work_limit, &best_);
  std::vector<double> sums;
  AddPathSums(best_, &sums);
  int unchanged = 0;
  for (int g = 0; unchanged < problem_.num_groups() && Work() <= work_limit;
       g = (g + 1) % problem_.num_groups()) {
    ++unchanged;
    while (ImproveWith(g, work_limit, &sums)) unchanged = 0;
  }
  best_joules_ = problem_.JoulesOf(best_);
}

bool GroupIncumbent::ImproveWith(int g, std::int64_t work_limit, std::vector<double>* sums) {
  const auto joules = [this](int group, int option) {
    return problem_.groups()[group].options[option].joules;
  };
  for (int up = 1; up <= kLongestExchange && up <= best_[g]; ++up) {
    const double cost = joules(g, best_[g] - up) - joules(g, best_[g]);
    for (int h = 0; h < problem_.num_groups(); ++h) {
      if (Work() > work_limit) return false;
      if (h == g) continue;
      ++work_;
      const int most = static_cast<int>(problem_.groups()[h].options.size()) - 1;
      for (int down = 1; down <= kLongestExchange && best_[h] + down <= most; ++down) {
        const double gain = joules(h, best_[h]) - joules(h, best_[h] + down);
        if (gain <= cost + tolerance_) continue;
        if (Change({{g, best_[g] - up}, {h, best_[h] + down}}, &best_, sums)) return true;
      }
    }
  }
  return false;
}

// Branch and bound over ranges of options.
//
// A node gives every group a range of its options, which are in order of time.
// Its bound is that of the relaxation; what the prices show to be too dear for
// a better plan is cut off both ends of the ranges. A node is split where a
// group mixes options that are far apart: faster ones here, slower ones there.
// Of two children the better is looked at next, and where a line ends the open
// node with the least bound. The mix at each node, every group at the fastest
// of its options or slower as far as that works out, is a plan; plans that are
// better than any before are improved by exchanges of two groups
// (GroupIncumbent).

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Above so many groups the relaxation is too slow to be worth it.
constexpr int kMostGroupsToRelax = 128;
constexpr std::int64_t kFirstImprovement = 100'000'000;
constexpr int kCandidates = 6;  // Groups that are tried before a node is split.

class Branching {
 public:
  Branching(const GroupProblem& problem, std::int64_t work_limit, double below_joules)
      : problem_(problem),
        relaxation_(problem),
        incumbent_(problem, &relaxation_, below_joules),
        work_limit_(work_limit) {}

  GroupSolution Run(const std::vector<std::vector<int>>& starts) {
    for (const std::vector<int>& start : starts) incumbent_.Offer(start);
    // Not a share of the limit: more work must pass through the same plans.
    const bool relaxes = problem_.num_groups() <= kMostGroupsToRelax;
    if (!incumbent_.choice().empty()) {
      incumbent_.Improve(relaxes ? std::min(kFirstImprovement, work_limit_) : work_limit_);
    }
    Node root;
    for (const GroupProblem::Group& group : problem_.groups()) {
      root.domain.push_back({0, static_cast<int>(group.options.size()) - 1});
    }
    root.basis = relaxation_.CheapestBasis(root.domain);
    root.bound = -kInfinite;
    std::optional<Node> next = std::move(root);
    while (next || !open_.empty()) {
      if (!next) {
        std::pop_heap(open_.begin(), open_.end(), Later);
        next = std::move(open_.back());
        open_.pop_back();
      }
      if (next->bound >= Cutoff()) {
        next.reset();
        continue;
      }
      if (Work() > work_limit_ || !relaxes) {
        open_.push_back(*std::move(next));
        break;
      }
      ++nodes_;
      next = Expand(*std::move(next));
    }
    GroupSolution solution;
    solution.choice = incumbent_.choice();
    solution.joules = incumbent_.joules();
    solution.bound_joules = incumbent_.joules();
    for (const Node& node : open_) {
      if (node.bound < Cutoff())
        solution.bound_joules = std::min(solution.bound_joules, node.bound);
    }
    solution.proven = solution.bound_joules == incumbent_.joules();
    // Nodes were closed within the tolerance.
    solution.bound_joules -= incumbent_.tolerance();
    solution.work = Work();
    solution.nodes = nodes_;
    return solution;
  }

 private:
  struct Node {
    GroupRelaxation::Domain domain;
    GroupRelaxation::Basis basis;
    double bound = 0;
    int number = 0;
  };

  // Order of the heap: the least bound first, of equal ones the latest.
  static bool Later(const Node& a, const Node& b) {
    return a.bound != b.bound ? a.bound > b.bound : a.number < b.number;
  }

  double Cutoff() const { return incumbent_.Cutoff(); }
  std::int64_t Work() const { return incumbent_.Work(); }
  // Solves a node, cuts its ranges and splits it. Returns the child to go on
  // with.
  std::optional<Node> Expand(Node node) {
    relaxation_.SetWorkLimit(work_limit_ - incumbent_.own_work());
    relaxation_.Solve(node.domain, node.basis, Cutoff());
    node.bound = std::max(node.bound, relaxation_.bound());
    // Nothing is made of what was given up half way: more work would not.
    if (Work() > work_limit_) return node;
    if (node.bound >= Cutoff()) return std::nullopt;
    node.basis = relaxation_.CurrentBasis();
    std::vector<std::vector<std::pair<int, double>>> mixes;
    mixes.reserve(problem_.num_groups());
    for (int g = 0; g < problem_.num_groups(); ++g) mixes.push_back(relaxation_.MixOf(g));
    RoundAndOffer(node.domain, mixes);
    if (node.bound >= Cutoff()) return std::nullopt;
    CutRanges(&node.domain);
    std::vector<Split> splits = Splits(node.domain, mixes);
    if (splits.empty()) {  // Nothing is mixed, but Replay() may say that it is too long.
      std::vector<int> choice;
      bool single = true;
      for (int g = 0; g < problem_.num_groups(); ++g) {
        const auto [first, last] = node.domain[g];  // CutRanges() may have cut the mix off.
        choice.push_back(mixes[g].empty() ? first
                                          : std::clamp(mixes[g].front().first, first, last));
        single = single && node.domain[g].first == node.domain[g].last;
      }
      incumbent_.Offer(choice);
      if (single || node.bound >= Cutoff()) return std::nullopt;
      splits = AnySplit(node.domain, choice);
      if (splits.empty()) return std::nullopt;
    }
    // The split whose children have risen most.
    std::optional<std::pair<Node, Node>> best;
    double best_score = -kInfinite;
    const double tolerance = incumbent_.tolerance();
    const std::size_t tried = std::min(splits.size(), static_cast<std::size_t>(kCandidates));
    for (std::size_t k = 0; k < tried; ++k) {
      std::pair<Node, Node> children = {node, node};
      children.first.domain[splits[k].group].last = splits[k].last_fast;
      children.second.domain[splits[k].group].first = splits[k].last_fast + 1;
      double gains[2];
      int which = 0;
      for (Node* child : {&children.first, &children.second}) {
        relaxation_.Solve(child->domain, child->basis, Cutoff());
        child->bound = std::max(child->bound, relaxation_.bound());
        if (child->bound < Cutoff()) child->basis = relaxation_.CurrentBasis();
        gains[which++] = std::min(child->bound, Cutoff()) - node.bound;
      }
      const double score = std::max(gains[0], tolerance) * std::max(gains[1], tolerance);
      if (!best || score > best_score) {  // Even where scores are no numbers.
        best_score = score;
        best = std::move(children);
      }
    }
    if (best->second.bound < best->first.bound) std::swap(best->first, best->second);
    best->first.number = ++numbers_;
    best->second.number = ++numbers_;
    if (best->second.bound < Cutoff()) {
      open_.push_back(std::move(best->second));
      std::push_heap(open_.begin(), open_.end(), Later);
    }
    if (best->first.bound >= Cutoff()) return std::nullopt;
    return std::move(best->first);
  }

  // Options at the ends of ranges that no better plan can have.
  void CutRanges(GroupRelaxation::Domain* domain) {
    const double room = Cutoff() - relaxation_.bound();
    for (int g = 0; g < problem_.num_groups(); ++g) {
      auto& range = (*domain)[g];
      while (range.first < range.last && relaxation_.ExtraJoules(g, range.first) > room) {
        ++range.first;
      }
      while (range.first < range.last && relaxation_.ExtraJoules(g, range.last) > room) {
        --range.last;
      }
    }
  }

  struct Split {
    int group;
    int last_fast;
    double weight;
  };

  std::vector<Split> Splits(const GroupRelaxation::Domain& domain,
                            const std::vector<std::vector<std::pair<int, double>>>& mixes) const {
    std::vector<Split> splits;
    for (int g = 0; g < problem_.num_groups(); ++g) {
      if (mixes[g].size() < 2) continue;
      const auto& options = problem_.groups()[g].options;
      double mean = 0;
      double share = 0;
      for (const auto& [option, part] : mixes[g]) {
        mean += part * options[option].seconds;
        share += part;
      }
      mean /= share;
      int last_fast = mixes[g].front().first;
      while (last_fast + 1 < mixes[g].back().first && options[last_fast + 1].seconds <= mean) {
        ++last_fast;
      }
      if (last_fast < domain[g].first || last_fast >= domain[g].last) continue;
      double faster = 0;
      for (const auto& [option, part] : mixes[g]) {
        if (option <= last_fast) faster += part;
      }
      const double spread =
          options[mixes[g].front().first].joules - options[mixes[g].back().first].joules;
      splits.push_back({g, last_fast, std::min(faster, share - faster) * std::abs(spread)});
    }
    std::stable_sort(splits.begin(), splits.end(),
                     [](const Split& a, const Split& b) { return a.weight > b.weight; });
    return splits;
  }

  // Any range of several, cut beside the choice.
  static std::vector<Split> AnySplit(const GroupRelaxation::Domain& domain,
                                     const std::vector<int>& choice) {
    for (int g = 0; g < static_cast<int>(domain.size()); ++g) {
      if (domain[g].first == domain[g].last) continue;
      const int last_fast = choice[g] > domain[g].first ? choice[g] - 1 : choice[g];
      return {{g, std::clamp(last_fast, domain[g].first, domain[g].last - 1), 0}};
    }
    return {};
  }

  // The fastest option of each mix, then slower ones where the deadline lets
  // them.
  void RoundAndOffer(const GroupRelaxation::Domain& domain,
                     const std::vector<std::vector<std::pair<int, double>>>& mixes) {
    std::vector<int> choice;
    choice.reserve(problem_.num_groups());
    for (int g = 0; g < problem_.num_groups(); ++g) {
      choice.push_back(mixes[g].empty() ? domain[g].first : mixes[g].front().first);
    }
    if (!incumbent_.IsFeasible(choice)) return;
    incumbent_.Descend(work_limit_, &choice);
    if (incumbent_.Offer(choice)) incumbent_.Improve(work_limit_);
  }

  const GroupProblem& problem_;
  GroupRelaxation relaxation_;
  GroupIncumbent incumbent_;
  std::int64_t work_limit_;
  std::vector<Node> open_;
  int numbers_ = 0;
  int nodes_ = 0;
};

}  // namespace

GroupSolution SolveGroups(const GroupProblem& problem, const std::vector<std::vector<int>>& starts,
                          std::int64_t work_limit, double below_joules) {
  return Branching(problem, work_limit, below_joules).Run(starts);
}

}  // namespace perseus::plan
