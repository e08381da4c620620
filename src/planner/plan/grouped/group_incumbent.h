// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_GROUP_INCUMBENT_H_
#define PERSEUS_PLAN_GROUPED_GROUP_INCUMBENT_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "plan/grouped/group_problem.h"
#include "plan/grouped/group_relaxation.h"

namespace perseus::plan {

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

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_GROUP_INCUMBENT_H_
