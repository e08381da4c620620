// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

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
// (group_incumbent.cc).

#include "plan/grouped/group_branch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "plan/grouped/group_incumbent.h"
#include "plan/grouped/group_relaxation.h"

namespace perseus::plan {
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
