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
// better than any before are improved by exchanges of two groups.

#include "plan/group_branch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "plan/group_relaxation.h"

namespace perseus::plan {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Plans that differ by less, as a share of their energies' sum, count as equal.
constexpr double kSameJoules = 1e-10;
constexpr double kClearlyTooLong = 1e-9;  // Relative; of a path.
constexpr int kLongestExchange = 3;       // Options that an exchange may skip.
// Above so many groups the relaxation is too slow to be worth it.
constexpr int kMostGroupsToRelax = 128;
constexpr std::int64_t kFirstImprovement = 100'000'000;
constexpr int kCandidates = 6;  // Groups that are tried before a node is split.

class Branching {
 public:
  Branching(const GroupProblem& problem, std::int64_t work_limit)
      : problem_(problem),
        relaxation_(problem),
        work_limit_(work_limit),
        forbidding_(problem.num_groups(), 0) {
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

  GroupSolution Run(const std::vector<std::vector<int>>& starts) {
    for (const std::vector<int>& start : starts) Offer(start);
    // Not a share of the limit: more work must pass through the same plans.
    const bool relaxes = problem_.num_groups() <= kMostGroupsToRelax;
    if (!best_.empty()) Improve(relaxes ? std::min(kFirstImprovement, work_limit_) : work_limit_);
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
    solution.choice = best_;
    solution.joules = best_joules_;
    solution.bound_joules = best_joules_;
    for (const Node& node : open_) {
      if (node.bound < Cutoff())
        solution.bound_joules = std::min(solution.bound_joules, node.bound);
    }
    solution.proven = solution.bound_joules == best_joules_;
    // Nodes were closed within the tolerance.
    solution.bound_joules -= tolerance_;
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

  double Cutoff() const { return best_joules_ - tolerance_; }
  std::int64_t Work() const { return work_ + relaxation_.work(); }
  bool IsFeasible(const std::vector<int>& choice) {
    work_ += 4 * static_cast<std::int64_t>(problem_.num_computations());
    GroupProblem::Path path;
    if (problem_.LongestPathOf(choice, &path) <= problem_.seconds()) return true;
    relaxation_.AddPath(path);
    return false;
  }

  // Solves a node, cuts its ranges and splits it. Returns the child to go on
  // with.
  std::optional<Node> Expand(Node node) {
    relaxation_.SetWorkLimit(work_limit_ - work_);
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
      Offer(choice);
      if (single || node.bound >= Cutoff()) return std::nullopt;
      splits = AnySplit(node.domain, choice);
      if (splits.empty()) return std::nullopt;
    }
    // The split whose children have risen most.
    std::optional<std::pair<Node, Node>> best;
    double best_score = -kInfinite;
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
      const double score = std::max(gains[0], tolerance_) * std::max(gains[1], tolerance_);
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

  bool Offer(const std::vector<int>& choice) {
    const double joules = problem_.JoulesOf(choice);
    if (joules >= best_joules_ || !IsFeasible(choice)) return false;
    best_ = choice;
    best_joules_ = joules;
    return true;
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
    if (!IsFeasible(choice)) return;
    Descend(work_limit_, &choice);
    if (Offer(choice)) Improve(work_limit_);
  }

  // Adds the seconds of the paths that are known by now and not in `sums`.
  void AddPathSums(const std::vector<int>& choice, std::vector<double>* sums) {
    const auto& paths = relaxation_.paths();
    for (std::size_t p = sums->size(); p < paths.size(); ++p) {
      double seconds = paths[p].delay_seconds;
      for (int g = 0; g < problem_.num_groups(); ++g) seconds += SecondsOn(paths[p], g, choice[g]);
      sums->push_back(seconds);
      work_ += problem_.num_cells();
    }
  }

  double SecondsOn(const GroupProblem::Path& path, int g, int option) const {
    const GroupProblem::Group& group = problem_.groups()[g];
    double seconds = 0;
    for (int c = 0; c < group.num_cells(); ++c) {
      seconds += path.counts[group.first_cell + c] * group.options[option].cell_seconds[c];
    }
    return seconds;
  }

  // Whether a known path gets too long when groups change their options.
  bool TooLong(const std::vector<double>& sums, const std::vector<int>& choice,
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
  bool Change(const std::vector<std::pair<int, int>>& changes, std::vector<int>* choice,
              std::vector<double>* sums) {
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

  // Gives one group after the other its cheapest feasible option, as long as
  // that saves and there is work left.
  void Descend(std::int64_t work_limit, std::vector<int>* choice) {
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

  // Exchanges: one group faster by a few options, another slower.
  void Improve(std::int64_t work_limit) {
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

  bool ImproveWith(int g, std::int64_t work_limit, std::vector<double>* sums) {
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

  const GroupProblem& problem_;
  GroupRelaxation relaxation_;
  std::int64_t work_limit_;
  std::int64_t work_ = 0;
  double tolerance_ = 0;
  std::vector<std::vector<int>> by_joules_;  // [group] Its options, cheapest first.
  std::vector<std::size_t> forbidding_;      // [group] Place in paths().
  std::vector<Node> open_;
  int numbers_ = 0;
  int nodes_ = 0;
  std::vector<int> best_;
  double best_joules_ = kInfinite;
};

}  // namespace

GroupSolution SolveGroups(const GroupProblem& problem, const std::vector<std::vector<int>>& starts,
                          std::int64_t work_limit) {
  return Branching(problem, work_limit).Run(starts);
}

}  // namespace perseus::plan
