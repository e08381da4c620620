// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_GROUP_RELAXATION_H_
#define PERSEUS_PLAN_GROUPED_GROUP_RELAXATION_H_

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "plan/grouped/group_problem.h"

namespace perseus::plan {

// By how much of the deadline a path may pass it without being made a row.
inline constexpr double kPathTooLong = 1e-11;
// What rounding may hide in one operation, relative.
inline constexpr double kOperationRounding = 2.3e-16;

// The linear relaxation of a GroupProblem: a group may mix its options, and of
// the paths only those matter that were too long so far. Solved by the dual
// simplex method; see group_relaxation.cc. Borrows the problem.
class GroupRelaxation {
 public:
  // The options that a group may mix: [first, last].
  struct Range {
    int first = 0;
    int last = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  using Domain = std::vector<Range>;  // [group]

  // What it takes to go on from an optimum: which paths are rows, and which
  // variables are basic.
  struct Basis {
    std::vector<int> paths;
    std::vector<int> variables;
  };

  explicit GroupRelaxation(const GroupProblem& problem);

  // Where every group has its cheapest option, and no path is a row.
  Basis CheapestBasis(const Domain& domain) const;

  // Solves for a domain, going on from a basis that was optimal for a domain
  // that holds this one. Stops early when the bound passes `cutoff`.
  void Solve(const Domain& domain, const Basis& basis, double cutoff);

  // No choice within the domain costs less: made from the prices alone, with
  // allowance for rounding, so that it holds however well Solve() went.
  // Infinite where the domain was shown to be empty.
  double bound() const { return bound_; }
  // Options in the mix of a group, with their shares. Meaningless where
  // bound() passed the cutoff.
  std::vector<std::pair<int, double>> MixOf(int group) const;
  // By how much the bound rises at least if the group takes this option.
  double ExtraJoules(int group, int option) const;
  // To go on with. Paths with time to spare are left out.
  Basis CurrentBasis() const;

  // Paths that were too long for some mix or choice.
  const std::vector<GroupProblem::Path>& paths() const { return pool_; }
  // Adds one that is not known, unless there are very many.
  void AddPath(const GroupProblem::Path& path);

  // Units of work done so far: about a multiplication each. Solve() gives up
  // where it passes the limit: what it leaves is then no optimum.
  std::int64_t work() const { return work_; }
  void SetWorkLimit(std::int64_t limit) { work_limit_ = limit; }

 private:
  static constexpr double kZero = 1e-9;  // In scaled units.

  struct Column {
    int group;
    int option;
  };
  enum class Outcome { kOptimal, kEmpty, kStopped };

  bool IsSlack(int variable) const { return variable >= num_columns_; }
  bool IsAllowed(int variable) const;
  double CostOf(int variable) const;
  double PathSeconds(int row, int column) const;
  void FillColumn(int variable);
  void Load(const Domain& domain, const Basis& basis);
  void AddRow(int path);
  bool Refactor();
  void ComputePrices();
  void ComputeValues();
  Outcome Run(double cutoff);
  void Pivot(int row, int entering);
  void Bound(const std::vector<double>& path_prices);
  void BoundAlongRay(int row, double sign, double cutoff);
  bool AddLongPaths();

  const GroupProblem& problem_;
  double second_scale_ = 1;  // Times are divided by these in here.
  double joule_scale_ = 1;
  double most_joules_ = 0;  // With every group at its dearest.
  std::vector<GroupProblem::Path> pool_;
  std::vector<Column> columns_;
  std::vector<int> first_column_;  // [group]
  int num_columns_ = 0;

  Domain domain_;
  std::vector<int> rows_;   // Places in the pool.
  std::vector<int> basic_;  // [row of the program] Column, or num_columns_ + row.
  int size_ = 0;            // Groups and rows.
  std::vector<double> inverse_;
  std::vector<double> values_;
  std::vector<double> prices_;
  std::vector<double> entering_;
  std::vector<double> cell_prices_;  // [cell] Of the best bound.
  std::vector<double> least_;        // [group] Least priced option.
  double bound_ = 0;
  std::int64_t work_ = 0;
  std::int64_t work_limit_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_GROUP_RELAXATION_H_
