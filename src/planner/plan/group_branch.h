// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUP_BRANCH_H_
#define PERSEUS_PLAN_GROUP_BRANCH_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/result.h"
#include "plan/cost_options.h"

namespace perseus::plan {

// Plans that differ by less, as a share of their energies' sum, count as equal.
inline constexpr double kSameJoules = 1e-10;

// A plan in which groups of computations share a knob, as a small discrete
// problem: one option per group, such that no path through the pipeline takes
// longer than `seconds`. In the doubles of the profile, so that what is
// feasible here is feasible for Replay(). Borrows the pipeline. Not
// thread-safe.
class GroupProblem {
 public:
  // A knob that every member of a group has.
  struct Option {
    int knob = 0;
    double joules = 0;                 // Effective energy of all members.
    double seconds = 0;                // Of all members, one after the other.
    std::vector<double> cell_seconds;  // [cell of the group] Of one computation.
  };
  // Options that another one beats in every cell are left out; fastest first.
  struct Group {
    std::vector<int> members;
    int first_cell = 0;
    std::vector<int> tables;  // [cell of the group]
    std::vector<int> uses;    // [cell of the group] Members in it.
    std::vector<Option> options;
    int num_cells() const { return static_cast<int>(tables.size()); }
  };
  // A path through the pipeline, for which only this matters: how many
  // computations of each cell it holds, and its fixed delays.
  struct Path {
    std::vector<int> counts;  // [cell]
    double delay_seconds = 0;
    friend bool operator==(const Path&, const Path&) = default;
  };

  // Errors: kInfeasible for a group without a common knob.
  static Result<GroupProblem> Make(const CostedPipeline& pipeline, const Guard& guard,
                                   const std::vector<std::vector<int>>& groups, double seconds);

  const std::vector<Group>& groups() const { return groups_; }
  int num_groups() const { return static_cast<int>(groups_.size()); }
  // Cells: the computations of one table in one group. They last equally long.
  int num_cells() const { return num_cells_; }
  double seconds() const { return seconds_; }
  int num_computations() const { return pipeline_->dag.size(); }

  // Iteration time where a computation of each cell lasts so long; bit for bit
  // that of Replay(). Fills in a longest path, unless it is nullptr.
  double LongestPath(std::span<const double> cell_seconds, Path* path) const;
  // The same with an option (its place in Group::options) for each group.
  double LongestPathOf(std::span<const int> choice, Path* path) const;
  double JoulesOf(std::span<const int> choice) const;
  bool IsFeasible(std::span<const int> choice) const {
    return LongestPathOf(choice, nullptr) <= seconds_;
  }

  std::vector<CostOption> PlanOf(std::span<const int> choice) const;

 private:
  std::optional<Option> OptionAt(const Group& group, int knob) const;

  const CostedPipeline* pipeline_ = nullptr;
  Guard guard_;
  double seconds_ = 0;
  std::vector<Group> groups_;
  std::vector<int> cell_of_;  // [computation]
  int num_cells_ = 0;
  // Room for LongestPath().
  mutable std::vector<double> end_;
  mutable std::vector<int> before_;
  mutable std::vector<double> cell_seconds_;
};

// By how much of the deadline a path may pass it without being made a row.
inline constexpr double kPathTooLong = 1e-11;
// The relative error that rounding may hide in one operation.
inline constexpr double kOperationRounding = 2.3e-16;

// The linear relaxation of a GroupProblem: a group may mix its options, and of
// the paths only those matter that were too long so far. Solved by the dual
// simplex method; see group_branch.cc. Borrows the problem.
class GroupRelaxation {
 public:
  // The options that a group may mix: [first, last].
  struct Range {
    int first = 0;
    int last = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  using Domain = std::vector<Range>;  // [group]

  // An optimum to go on from: the paths that are rows, and the variables that are basic.
  struct Basis {
    std::vector<int> paths;
    std::vector<int> variables;
  };

  explicit GroupRelaxation(const GroupProblem& problem);

  // The basis where every group has its cheapest option, and no path is a row.
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

struct GroupSolution {
  std::vector<int> choice;  // [group] Place in its options; empty where none was found.
  double joules = 0;        // Effective energy; `below_joules` where none was found.
  // No choice needs less than this or `below_joules`.
  double bound_joules = 0;
  // bound_joules is joules, but for what rounding may hide.
  bool proven = false;
  std::int64_t work = 0;
  int nodes = 0;
};

// Solves a problem by branch and bound on its relaxation, to proof as far as
// `work_limit` allows (units of about a multiplication). `starts` are choices to
// begin with, feasible or not. Deterministic, and more work never gives a
// worse choice or bound. Looks for choices of less than `below_joules` only.
GroupSolution SolveGroups(const GroupProblem& problem, const std::vector<std::vector<int>>& starts,
                          std::int64_t work_limit,
                          double below_joules = std::numeric_limits<double>::infinity());

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUP_BRANCH_H_
