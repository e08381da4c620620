// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_GROUP_PROBLEM_H_
#define PERSEUS_PLAN_GROUPED_GROUP_PROBLEM_H_

#include <cstdint>
#include <optional>
#include <span>
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

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_GROUP_PROBLEM_H_
