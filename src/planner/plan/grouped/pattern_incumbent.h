// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_PATTERN_INCUMBENT_H_
#define PERSEUS_PLAN_GROUPED_PATTERN_INCUMBENT_H_

#include <cstdint>
#include <set>
#include <vector>

#include "plan/grouped/group_problem.h"
#include "plan/grouped/pattern_branch.h"
#include "plan/grouped/rank_patterns.h"

namespace perseus::plan {

// The best plan so far of SolvePatterns(), and where it makes plans from. Borrows all it is given.
class PatternIncumbent {
 public:
  // `timing` has a group for each computation.
  PatternIncumbent(RankPatterns* patterns, const Guard& guard, const PatternProblem& problem,
                   const GroupProblem& timing);

  const std::vector<CostOption>& options() const { return options_; }  // Empty: none yet.
  double joules() const { return joules_; }                            // Infinite: none yet.
  // Without that of the patterns.
  std::int64_t work() const { return work_; }

  // 0 where they are not limited.
  double ChangesOf(const std::vector<int>& knobs) const;
  // Solves the stretches of one knob of such a way, each once, or of one that changes less often
  // because changes have a higher price.
  void TryCuts(const RankPatterns::Allowed& allowed, const RankPatterns::Prices& prices,
               std::vector<int> knobs, std::int64_t work_limit);
  // The cheapest way, as it is. Where one knob is allowed for each computation there is no other.
  void TryOnly(const RankPatterns::Allowed& allowed);

 private:
  bool ChangesTooOften(const std::vector<int>& knobs) const;
  std::vector<int> WithFewerChanges(const RankPatterns::Allowed& allowed,
                                    RankPatterns::Prices prices);
  std::vector<std::vector<int>> StretchesOf(const std::vector<int>& knobs) const;
  void Offer(std::vector<CostOption> options);

  RankPatterns& patterns_;
  const CostedPipeline& pipeline_;
  const Guard& guard_;
  const PatternProblem& problem_;
  const GroupProblem& timing_;
  std::vector<CostOption> options_;
  double joules_ = RankPatterns::kNoWay;
  std::set<std::vector<std::vector<int>>> tried_;
  std::int64_t work_ = 0;
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_PATTERN_INCUMBENT_H_
