// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_GROUP_BRANCH_H_
#define PERSEUS_PLAN_GROUPED_GROUP_BRANCH_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "plan/grouped/group_problem.h"

namespace perseus::plan {

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

#endif  // PERSEUS_PLAN_GROUPED_GROUP_BRANCH_H_
