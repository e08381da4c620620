// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Branch and bound over all ways to cut ranks into stretches.
//
// The bound. Paths through the pipeline get prices L >= 0. No plan costs less than
//
//   sum over ranks of the cheapest way to cut it, each second at the prices of its paths
//     + sum over paths L x (delay - deadline),
//
// which holds for all prices (dwell_patterns.h finds the cheapest way exactly). Prices are improved
// by the volume algorithm (Barahona and Anbil, 2000): steps along what an average of the ways so
// far takes too long. Paths are made on demand, the longest one of that average.
//
// A node says which knobs a computation may take. What makes the bound of a node dearer than the
// best plan is forbidden; what is left is split where the average mixes knobs that are far apart.
// The open node with the least bound is next. So which nodes come before does not depend on plans
// that are known from elsewhere, and these only say where to stop.
//
// Plans. The cuts of the cheapest ways are solved as groups (group_branch.h), each once.

#include "plan/grouped/dwell_branch.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "plan/grouped/dwell_patterns.h"
#include "plan/grouped/group_branch.h"
#include "plan/grouped/group_problem.h"
#include "plan/grouped/group_relaxation.h"

namespace perseus::plan {
namespace {

constexpr double kNoPlan = DwellPatterns::kNoWay;
constexpr int kRootSteps = 400;
constexpr int kNodeSteps = 40;
constexpr int kStepsBeforeHalving = 10;
constexpr double kNewShare = 0.1;               // Of the latest way in the average.
constexpr std::int64_t kCutsWork = 20'000'000;  // For one way to cut.
constexpr std::size_t kMostPaths = 400;

struct Path {
  std::vector<int> counts;  // [computation] 1 for those on it.
  double room_seconds = 0;  // Deadline - delays.
};

class DwellBranching {
 public:
  DwellBranching(const CostedPipeline& pipeline, const Guard& guard, double least_seconds,
                 double seconds, double known_joules, double tolerance_joules,
                 std::int64_t work_limit)
      : pipeline_(pipeline),
        guard_(guard),
        seconds_(seconds),
        known_joules_(known_joules),
        tolerance_(tolerance_joules),
        work_limit_(work_limit),
        patterns_(pipeline, guard, least_seconds) {}

  DwellSolution Run() {
    std::vector<std::vector<int>> alone(pipeline_.dag.size());
    for (int i = 0; i < pipeline_.dag.size(); ++i) alone[i] = {i};
    const auto timing = GroupProblem::Make(pipeline_, guard_, alone, seconds_);
    Node root;
    root.allowed = patterns_.All();
    if (timing) {
      timing_ = &*timing;
      dearest_ = Dearest(root.allowed);
      solution_.joules = kNoPlan;
      Evaluate(kRootSteps, &root);
      Push(std::move(root));
      while (!open_.empty() && open_.front().bound < Stop() && Work() <= work_limit_) Expand();
    }
    solution_.bound_joules = std::min(solution_.joules, known_joules_);
    if (!timing) solution_.bound_joules = -kNoPlan;
    if (!open_.empty()) {
      solution_.bound_joules = std::min(solution_.bound_joules, open_.front().bound);
    }
    solution_.work = Work();
    return std::move(solution_);
  }

 private:
  struct Node {
    DwellPatterns::Allowed allowed;
    std::vector<double> prices;  // [path]
    double bound = -kNoPlan;
    int number = 0;
    // Where to split it: a computation, and the knobs that the first child may take.
    int split = -1;
    std::vector<std::uint8_t> first;
  };

  static bool Later(const Node& a, const Node& b) {
    return a.bound != b.bound ? a.bound > b.bound : a.number < b.number;
  }

  std::int64_t Work() const { return patterns_.work() + work_; }
  // Nodes of such a bound hold no better plan than those that were found here.
  double Cutoff() const { return std::min(solution_.joules, dearest_) - tolerance_; }
  // The same with what is known from elsewhere.
  double Stop() const { return std::min(Cutoff(), known_joules_ - tolerance_); }

  // More than any plan takes.
  double Dearest(const DwellPatterns::Allowed& allowed) const {
    double joules = 2 * tolerance_;
    for (int i = 0; i < pipeline_.dag.size(); ++i) {
      double most = -kNoPlan;
      for (int knob = 0; knob < patterns_.num_knobs(); ++knob) {
        if (allowed[i][knob] != 0) most = std::max(most, patterns_.Joules(i, knob));
      }
      joules += most;
    }
    return joules;
  }

  void Push(Node node) {
    if (node.split < 0 || node.bound >= Cutoff()) return;
    node.number = ++numbers_;
    open_.push_back(std::move(node));
    std::push_heap(open_.begin(), open_.end(), Later);
  }

  void Expand() {
    std::pop_heap(open_.begin(), open_.end(), Later);
    const Node node = std::move(open_.back());
    open_.pop_back();
    for (const bool first : {true, false}) {
      Node child = node;
      std::vector<std::uint8_t>& knobs = child.allowed[node.split];
      for (std::size_t k = 0; k < knobs.size(); ++k) {
        if ((node.first[k] != 0) != first) knobs[k] = 0;
      }
      Evaluate(kNodeSteps, &child);
      Push(std::move(child));
    }
  }

  std::vector<double> PricesOfComputations(const std::vector<double>& prices) {
    std::vector<double> watts(pipeline_.dag.size(), 0);
    for (std::size_t p = 0; p < prices.size(); ++p) {
      if (prices[p] == 0) continue;
      for (std::size_t i = 0; i < watts.size(); ++i) watts[i] += prices[p] * paths_[p].counts[i];
    }
    work_ += static_cast<std::int64_t>(prices.size() * watts.size());
    return watts;
  }

  double BoundOf(const DwellPatterns::Allowed& allowed, const std::vector<double>& prices,
                 std::vector<int>* knobs) {
    const double priced = patterns_.Cheapest(allowed, PricesOfComputations(prices), knobs);
    double bound = priced;
    double magnitude = std::abs(priced);
    for (std::size_t p = 0; p < prices.size(); ++p) {
      bound -= prices[p] * paths_[p].room_seconds;
      magnitude += prices[p] * (seconds_ + std::abs(paths_[p].room_seconds));
    }
    if (priced == kNoPlan) return kNoPlan;
    const double terms = static_cast<double>(prices.size()) + 2.0 * pipeline_.dag.size() + 8;
    return bound - kOperationRounding * terms * (magnitude + dearest_);
  }

  // Improves the prices of a node and its bound, forbids what is too dear, finds where to split.
  void Evaluate(int steps, Node* node) {
    std::vector<int> knobs;
    node->prices.resize(paths_.size(), 0);
    const double first_bound = BoundOf(node->allowed, node->prices, &knobs);
    double best = first_bound;
    std::vector<int> best_knobs = knobs;
    if (best == kNoPlan) {
      node->split = -1;
      return;
    }
    TryCuts(knobs);
    std::vector<std::vector<double>> shares(pipeline_.dag.size(),
                                            std::vector<double>(patterns_.num_knobs(), 0));
    for (int i = 0; i < pipeline_.dag.size(); ++i) shares[i][knobs[i]] = 1;
    double length = 1;
    int without = 0;
    for (int step = 0; step < steps && best < Cutoff() && Work() <= work_limit_; ++step) {
      const std::vector<double> mean = MeanSeconds(shares);
      AddLongest(mean);
      node->prices.resize(paths_.size(), 0);
      std::vector<double> excess(paths_.size());
      double square = 0;
      for (std::size_t p = 0; p < paths_.size(); ++p) {
        excess[p] = -paths_[p].room_seconds;
        for (std::size_t i = 0; i < mean.size(); ++i) excess[p] += paths_[p].counts[i] * mean[i];
        if (node->prices[p] > 0 || excess[p] > 0) square += excess[p] * excess[p];
      }
      work_ += static_cast<std::int64_t>(paths_.size() * mean.size());
      if (square <= 0) break;
      const double factor = length * (Cutoff() - best + tolerance_) / square;
      std::vector<double> prices = node->prices;
      for (std::size_t p = 0; p < prices.size(); ++p) {
        prices[p] = std::max(0.0, prices[p] + factor * excess[p]);
      }
      const double bound = BoundOf(node->allowed, prices, &knobs);
      for (int i = 0; i < pipeline_.dag.size(); ++i) {
        for (double& share : shares[i]) share *= 1 - kNewShare;
        shares[i][knobs[i]] += kNewShare;
      }
      work_ += static_cast<std::int64_t>(shares.size()) * patterns_.num_knobs();
      if (bound > best) {
        best = bound;
        best_knobs = knobs;
        node->prices = std::move(prices);
        without = 0;
      } else if (++without == kStepsBeforeHalving) {
        length /= 2;
        without = 0;
      }
    }
    node->bound = std::max(node->bound, best);
    if (node->bound >= Cutoff() || Work() > work_limit_) {
      // What was given up half way is split as it is.
      SplitAnywhere(node);
      return;
    }
    TryCuts(best_knobs);
    if (node->bound >= Cutoff()) return;
    patterns_.Forbid(PricesOfComputations(node->prices), Cutoff() - best, &node->allowed);
    Split(shares, node);
  }

  std::vector<double> MeanSeconds(const std::vector<std::vector<double>>& shares) {
    std::vector<double> mean(shares.size(), 0);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      double sum = 0;
      for (int knob = 0; knob < patterns_.num_knobs(); ++knob) {
        if (shares[i][knob] == 0) continue;
        mean[i] += shares[i][knob] * patterns_.Seconds(static_cast<int>(i), knob);
        sum += shares[i][knob];
      }
      mean[i] /= sum;
    }
    work_ += static_cast<std::int64_t>(shares.size()) * patterns_.num_knobs();
    return mean;
  }

  // Makes the longest path a priced one, where it is too long.
  void AddLongest(const std::vector<double>& seconds) {
    GroupProblem::Path longest;
    work_ += 4 * static_cast<std::int64_t>(pipeline_.dag.size());
    if (timing_->LongestPath(seconds, &longest) <= seconds_ * (1 + kPathTooLong)) return;
    if (paths_.size() >= kMostPaths) return;
    const auto same = [&](const Path& path) { return path.counts == longest.counts; };
    if (std::any_of(paths_.begin(), paths_.end(), same)) return;
    paths_.push_back({std::move(longest.counts), seconds_ - longest.delay_seconds});
  }

  // Solves the stretches of one knob each, with the knobs free.
  void TryCuts(const std::vector<int>& knobs) {
    std::vector<std::vector<int>> groups;
    for (const std::vector<int>& order : pipeline_.dag.rank_order) {
      for (std::size_t k = 0; k < order.size(); ++k) {
        if (k == 0 || knobs[order[k]] != knobs[order[k - 1]]) groups.emplace_back();
        groups.back().push_back(order[k]);
      }
    }
    for (std::vector<int>& members : groups) std::sort(members.begin(), members.end());
    if (!tried_.insert(groups).second) return;
    const auto problem = GroupProblem::Make(pipeline_, guard_, groups, seconds_);
    if (!problem) return;
    const std::int64_t left = work_limit_ - Work();
    const GroupSolution found = SolveGroups(*problem, {std::vector<int>(problem->num_groups(), 0)},
                                            std::min(kCutsWork, left), solution_.joules);
    work_ += found.work;
    if (found.choice.empty()) return;
    Offer(problem->PlanOf(found.choice));
  }

  // Takes a plan that is better. Precondition: it ends in time.
  void Offer(std::vector<CostOption> options) {
    const double joules = EffectiveEnergyOf(pipeline_, options);
    if (!(joules < solution_.joules)) return;
    solution_.options = std::move(options);
    solution_.joules = joules;
  }

  // The only plan of a node, where there is one.
  void TryOnly(const Node& node) {
    std::vector<int> knobs;
    const std::vector<double> free(pipeline_.dag.size(), 0);
    if (patterns_.Cheapest(node.allowed, free, &knobs) == kNoPlan) return;
    std::vector<double> seconds;
    std::vector<CostOption> options;
    for (int i = 0; i < pipeline_.dag.size(); ++i) {
      seconds.push_back(patterns_.Seconds(i, knobs[i]));
      options.push_back(*FindOption(pipeline_.TableOf(i), knobs[i]));
    }
    if (timing_->LongestPath(seconds, nullptr) <= seconds_) Offer(std::move(options));
  }

  int NumAllowed(const Node& node, int computation) const {
    const auto& knobs = node.allowed[computation];
    return static_cast<int>(std::count(knobs.begin(), knobs.end(), 1));
  }

  // Into knobs that take at most so long, and the others. False where one of them is empty.
  bool SplitAt(int computation, double seconds, Node* node) const {
    std::vector<std::uint8_t> first(patterns_.num_knobs(), 0);
    int faster = 0;
    for (int knob = 0; knob < patterns_.num_knobs(); ++knob) {
      if (node->allowed[computation][knob] == 0) continue;
      if (patterns_.Seconds(computation, knob) > seconds) continue;
      first[knob] = 1;
      ++faster;
    }
    if (faster == 0 || faster == NumAllowed(*node, computation)) return false;
    node->split = computation;
    node->first = std::move(first);
    return true;
  }

  void Split(const std::vector<std::vector<double>>& shares, Node* node) {
    const std::vector<double> mean = MeanSeconds(shares);
    node->split = -1;
    double best = 0;
    for (int i = 0; i < pipeline_.dag.size(); ++i) {
      double faster = 0;
      double slower = 0;
      double spread = 0;
      for (int knob = 0; knob < patterns_.num_knobs(); ++knob) {
        if (shares[i][knob] == 0) continue;
        const double seconds = patterns_.Seconds(i, knob);
        (seconds > mean[i] ? slower : faster) += shares[i][knob];
        spread += shares[i][knob] * std::abs(seconds - mean[i]);
      }
      const double weight = std::min(faster, slower) * spread;
      if (weight > best && SplitAt(i, mean[i], node)) best = weight;
    }
    if (node->split < 0) SplitAnywhere(node);
  }

  // The computation of most knobs, in the middle. What has one way left is a plan or none.
  void SplitAnywhere(Node* node) {
    node->split = -1;
    int most = 1;
    for (int i = 0; i < pipeline_.dag.size(); ++i) {
      if (NumAllowed(*node, i) <= most) continue;
      most = NumAllowed(*node, i);
      node->split = i;
    }
    if (node->split < 0) {
      TryOnly(*node);
      return;
    }
    node->first.assign(patterns_.num_knobs(), 0);
    int taken = 0;
    for (int knob = 0; knob < patterns_.num_knobs() && taken < most / 2; ++knob) {
      if (node->allowed[node->split][knob] == 0) continue;
      node->first[knob] = 1;
      ++taken;
    }
  }

  const CostedPipeline& pipeline_;
  const Guard& guard_;
  double seconds_;
  double known_joules_;
  double tolerance_;
  std::int64_t work_limit_;
  DwellPatterns patterns_;
  const GroupProblem* timing_ = nullptr;  // Of computations on their own.
  double dearest_ = 0;
  std::int64_t work_ = 0;
  std::vector<Path> paths_;
  std::set<std::vector<std::vector<int>>> tried_;
  std::vector<Node> open_;
  int numbers_ = 0;
  DwellSolution solution_;
};

}  // namespace

DwellSolution SolveDwell(const CostedPipeline& pipeline, const Guard& guard, double least_seconds,
                         double seconds, double known_joules, double tolerance_joules,
                         std::int64_t work_limit) {
  return DwellBranching(pipeline, guard, least_seconds, seconds, known_joules, tolerance_joules,
                        work_limit)
      .Run();
}

}  // namespace perseus::plan
