// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Branch and bound over what ranks may do with their clocks.
//
// The bound. Paths through the pipeline get prices L >= 0, a change of clock a price C >= 0. No
// plan that ends at t costs less than
//
//   sum over ranks of the cheapest way, each second at the prices of its paths, each change at C
//     + sum over paths L x (delay - t) - C x most changes + waiting power x (t - deadline),
//
// which holds for all prices (rank_patterns.h finds the cheapest way exactly), at the deadline or,
// where a second of waiting costs more than all paths, at the least time that there is. Prices are
// improved by the volume algorithm (Barahona and Anbil, 2000): steps along what an average of the
// ways so far takes too long. Paths are made on demand, the longest one of that average.
//
// A node says which knobs a computation may take. What makes the bound of a node dearer than the
// best plan is forbidden; what is left is split where the average mixes knobs that are far apart.
// The open node with the least bound is next. So which nodes come before does not depend on plans
// that are known from elsewhere, and these only say where to stop.
//
// Plans are made of the cheapest ways (pattern_incumbent.h).

#include "plan/grouped/pattern_branch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "plan/grouped/group_problem.h"
#include "plan/grouped/group_relaxation.h"
#include "plan/grouped/pattern_incumbent.h"

namespace perseus::plan {
namespace {

constexpr double kNoPlan = RankPatterns::kNoWay;
constexpr int kRootSteps = 400;
constexpr int kNodeSteps = 40;
constexpr int kStepsBeforeHalving = 10;
constexpr double kNewShare = 0.1;  // Of the latest way in the average.
constexpr std::size_t kMostPaths = 400;

struct Path {
  std::vector<int> counts;  // [computation] 1 for those on it.
  double room_seconds = 0;  // Deadline - delays.
};

class PatternBranching {
 public:
  PatternBranching(RankPatterns* patterns, const Guard& guard, const PatternProblem& problem,
                   std::int64_t work_limit)
      : patterns_(*patterns),
        pipeline_(patterns->pipeline()),
        guard_(guard),
        problem_(problem),
        tolerance_(problem.tolerance_joules),
        work_limit_(work_limit) {}

  PatternSolution Run() {
    std::vector<std::vector<int>> alone(pipeline_.dag.size());
    for (int i = 0; i < pipeline_.dag.size(); ++i) alone[i] = {i};
    const auto timing = GroupProblem::Make(pipeline_, guard_, alone, problem_.seconds);
    if (!timing) return {.options = {}, .joules = kNoPlan, .bound_joules = -kNoPlan};
    timing_ = &*timing;
    incumbent_.emplace(&patterns_, guard_, problem_, *timing);
    Node root;
    root.allowed = patterns_.All();
    SetLimits(root.allowed);
    Evaluate(kRootSteps, &root);
    Push(std::move(root));
    while (!open_.empty() && open_.front().bound < Stop() && Work() <= work_limit_) Expand();
    PatternSolution solution = {.options = incumbent_->options(), .joules = incumbent_->joules()};
    solution.bound_joules = std::min(solution.joules, problem_.known_joules);
    if (!open_.empty()) {
      solution.bound_joules = std::min(solution.bound_joules, open_.front().bound);
    }
    solution.work = Work();
    return solution;
  }

 private:
  struct Node {
    RankPatterns::Allowed allowed;
    std::vector<double> prices;  // [path]
    double change_joules = 0;
    double bound = -kNoPlan;
    int number = 0;
    // Where to split it: a computation, and the knobs that the first child may take.
    int split = -1;
    std::vector<std::uint8_t> first;
  };

  static bool Later(const Node& a, const Node& b) {
    return a.bound != b.bound ? a.bound > b.bound : a.number < b.number;
  }

  std::int64_t Work() const {
    return patterns_.work() + work_ + (incumbent_ ? incumbent_->work() : 0);
  }
  // Nodes of such a bound hold no better plan than those that were found here.
  double Cutoff() const { return std::min(incumbent_->joules(), dearest_) - tolerance_; }
  // The same with what is known from elsewhere.
  double Stop() const { return std::min(Cutoff(), problem_.known_joules - tolerance_); }

  // More than any plan takes, and the time that none undercuts.
  void SetLimits(const RankPatterns::Allowed& allowed) {
    dearest_ = 2 * tolerance_;
    std::vector<double> fastest;
    for (int i = 0; i < pipeline_.dag.size(); ++i) {
      double most = -kNoPlan;
      double least_seconds = kNoPlan;
      for (int knob = 0; knob < patterns_.num_knobs(); ++knob) {
        if (allowed[i][knob] == 0) continue;
        most = std::max(most, patterns_.Joules(i, knob));
        least_seconds = std::min(least_seconds, patterns_.Seconds(i, knob));
      }
      dearest_ += most;
      fastest.push_back(least_seconds);
    }
    shortest_ = std::min(problem_.seconds, timing_->LongestPath(fastest, nullptr));
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

  RankPatterns::Prices PricesOf(const std::vector<double>& prices, double change_joules) {
    RankPatterns::Prices result = {.watts = std::vector<double>(pipeline_.dag.size(), 0),
                                   .change_joules = change_joules};
    for (std::size_t p = 0; p < prices.size(); ++p) {
      if (prices[p] == 0) continue;
      for (std::size_t i = 0; i < result.watts.size(); ++i) {
        result.watts[i] += prices[p] * paths_[p].counts[i];
      }
    }
    work_ += static_cast<std::int64_t>(prices.size() * result.watts.size());
    return result;
  }

  // How long before the deadline it is cheapest to end at such prices.
  double EarlySeconds(const std::vector<double>& prices) const {
    const double watts = std::accumulate(prices.begin(), prices.end(), 0.0);
    return watts < problem_.waiting_watts ? problem_.seconds - shortest_ : 0;
  }

  double BoundOf(const RankPatterns::Allowed& allowed, const std::vector<double>& prices,
                 double change_joules, std::vector<int>* knobs) {
    const double priced = patterns_.Cheapest(allowed, PricesOf(prices, change_joules), knobs);
    if (priced == kNoPlan) return kNoPlan;
    const double early = EarlySeconds(prices);
    double bound = priced - problem_.waiting_watts * early;
    double magnitude = std::abs(priced) + problem_.waiting_watts * early;
    for (std::size_t p = 0; p < prices.size(); ++p) {
      bound -= prices[p] * (paths_[p].room_seconds - early);
      magnitude += prices[p] * (problem_.seconds + std::abs(paths_[p].room_seconds));
    }
    if (change_joules > 0) {
      bound -= change_joules * static_cast<double>(*problem_.most_changes);
      magnitude += change_joules * static_cast<double>(*problem_.most_changes);
    }
    const double terms = static_cast<double>(prices.size()) + 2.0 * pipeline_.dag.size() + 8;
    return bound - kOperationRounding * terms * (magnitude + std::abs(dearest_));
  }

  // Improves the prices of a node and its bound, forbids what is too dear, finds where to split.
  void Evaluate(int steps, Node* node) {
    std::vector<int> knobs;
    node->prices.resize(paths_.size(), 0);
    double best = BoundOf(node->allowed, node->prices, node->change_joules, &knobs);
    if (best == kNoPlan) {
      node->split = -1;
      return;
    }
    TryCuts(*node, knobs);
    std::vector<int> best_knobs = knobs;
    std::vector<std::vector<double>> shares(pipeline_.dag.size(),
                                            std::vector<double>(patterns_.num_knobs(), 0));
    for (int i = 0; i < pipeline_.dag.size(); ++i) shares[i][knobs[i]] = 1;
    double changes = incumbent_->ChangesOf(knobs);
    double early = EarlySeconds(node->prices);
    double length = 1;
    int without = 0;
    for (int step = 0; step < steps && best < Cutoff() && Work() <= work_limit_; ++step) {
      const std::vector<double> mean = MeanSeconds(shares);
      AddLongest(mean, early);
      node->prices.resize(paths_.size(), 0);
      std::vector<double> excess(paths_.size());
      double square = 0;
      for (std::size_t p = 0; p < paths_.size(); ++p) {
        excess[p] = early - paths_[p].room_seconds;
        for (std::size_t i = 0; i < mean.size(); ++i) excess[p] += paths_[p].counts[i] * mean[i];
        if (node->prices[p] > 0 || excess[p] > 0) square += excess[p] * excess[p];
      }
      // In seconds, as paths are: a change is taken as a computation of mean length.
      const double change_seconds = problem_.seconds / pipeline_.dag.size();
      double more_changes = 0;
      if (problem_.most_changes) {
        more_changes = change_seconds * (changes - static_cast<double>(*problem_.most_changes));
        if (node->change_joules > 0 || more_changes > 0) square += more_changes * more_changes;
      }
      work_ += static_cast<std::int64_t>(paths_.size() * mean.size());
      if (square <= 0) break;
      const double factor = length * (Cutoff() - best + tolerance_) / square;
      std::vector<double> prices = node->prices;
      for (std::size_t p = 0; p < prices.size(); ++p) {
        prices[p] = std::max(0.0, prices[p] + factor * excess[p]);
      }
      const double change_joules =
          std::max(0.0, node->change_joules + factor * more_changes * change_seconds);
      const double bound = BoundOf(node->allowed, prices, change_joules, &knobs);
      const auto mix = [](double old, double now) {
        return (1 - kNewShare) * old + kNewShare * now;
      };
      for (int i = 0; i < pipeline_.dag.size(); ++i) {
        for (double& share : shares[i]) share = mix(share, 0);
        shares[i][knobs[i]] += kNewShare;
      }
      changes = mix(changes, incumbent_->ChangesOf(knobs));
      early = mix(early, EarlySeconds(prices));
      work_ += static_cast<std::int64_t>(shares.size()) * patterns_.num_knobs();
      if (bound > best) {
        best = bound;
        best_knobs = knobs;
        node->prices = std::move(prices);
        node->change_joules = change_joules;
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
    TryCuts(*node, best_knobs);
    if (node->bound >= Cutoff()) return;
    patterns_.Forbid(PricesOf(node->prices, node->change_joules), Cutoff() - best, &node->allowed);
    Split(shares, node);
  }

  void TryCuts(const Node& node, const std::vector<int>& knobs) {
    incumbent_->TryCuts(node.allowed, PricesOf(node.prices, node.change_joules), knobs,
                        work_limit_ - Work());
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
  void AddLongest(const std::vector<double>& seconds, double early) {
    GroupProblem::Path longest;
    work_ += 4 * static_cast<std::int64_t>(pipeline_.dag.size());
    if (timing_->LongestPath(seconds, &longest) <= (problem_.seconds - early) * (1 + kPathTooLong))
      return;
    if (paths_.size() >= kMostPaths) return;
    const auto same = [&](const Path& path) { return path.counts == longest.counts; };
    if (std::any_of(paths_.begin(), paths_.end(), same)) return;
    paths_.push_back({std::move(longest.counts), problem_.seconds - longest.delay_seconds});
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
      incumbent_->TryOnly(node->allowed);
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

  RankPatterns& patterns_;
  const CostedPipeline& pipeline_;
  const Guard& guard_;
  const PatternProblem problem_;
  double tolerance_;
  std::int64_t work_limit_;
  const GroupProblem* timing_ = nullptr;  // Of computations on their own.
  std::optional<PatternIncumbent> incumbent_;
  double dearest_ = 0;
  double shortest_ = 0;
  std::int64_t work_ = 0;
  std::vector<Path> paths_;
  std::vector<Node> open_;
  int numbers_ = 0;
};

}  // namespace

PatternSolution SolvePatterns(RankPatterns* patterns, const Guard& guard,
                              const PatternProblem& problem, std::int64_t work_limit) {
  return PatternBranching(patterns, guard, problem, work_limit).Run();
}

}  // namespace perseus::plan
