// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/change_branch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "perseus/plan.h"
#include "plan/group_branch.h"

namespace perseus::plan {
namespace {

// Patterns of clocks that a rank may run: finds the cheapest where a second of a computation has a
// price. Borrows the pipeline.
class RankPatterns {
 public:
  static constexpr double kNoWay = std::numeric_limits<double>::infinity();

  // [computation][knob] Whether it may take this knob.
  using Allowed = std::vector<std::vector<std::uint8_t>>;
  // Prices by which a way is the cheapest.
  struct Prices {
    std::vector<double> watts;  // [computation] Of a (guarded) second.
    double change_joules = 0;   // Of a change of clock, also from a rank's last to its first.
  };

  RankPatterns(const CostedPipeline& pipeline, const Guard& guard);
  RankPatterns(const RankPatterns&) = delete;
  RankPatterns& operator=(const RankPatterns&) = delete;

  // Everything but what another knob of the rank beats in all of its computations.
  Allowed All() const;

  // Least sum of effective joules + prices; infinite where there is no way. Fills in the knobs
  // [computation] that it takes.
  double Cheapest(const Allowed& allowed, const Prices& prices, std::vector<int>* knobs);
  // Forbids what makes the sum larger than the cheapest by more than `room`.
  void Forbid(const Prices& prices, double room, Allowed* allowed);

  double Seconds(int computation, int knob) const {
    return seconds_[pipeline_.table_of[computation]][knob];
  }
  double Joules(int computation, int knob) const {
    return joules_[pipeline_.table_of[computation]][knob];
  }
  int num_knobs() const { return static_cast<int>(pipeline_.knobs.size()); }
  const CostedPipeline& pipeline() const { return pipeline_; }
  // Units of about a multiplication.
  std::int64_t work() const { return work_; }

 private:
  // Of one rank, where its first computation has a given knob.
  struct Rank {
    std::vector<int> knobs;                   // That one of its computations may take.
    std::vector<std::vector<double>> joules;  // [position][place in knobs] Infinite: forbidden.
  };

  Rank RankOf(const std::vector<int>& order, const Allowed& allowed, const Prices& prices);
  // [position][place in knobs] The least from the first computation to this one, with both.
  void Forward(const Rank& rank, int first, double change_joules,
               std::vector<std::vector<double>>* least);
  double PricedJoules(const Prices& prices, int computation, int knob) const {
    return Joules(computation, knob) + prices.watts[computation] * Seconds(computation, knob);
  }
  void AddWork(std::int64_t work) { work_ += work; }

  const CostedPipeline& pipeline_;
  std::vector<std::vector<double>> seconds_;  // [table][knob] Infinite: does not have it.
  std::vector<std::vector<double>> joules_;   // [table][knob]
  std::int64_t work_ = 0;
};

RankPatterns::RankPatterns(const CostedPipeline& pipeline, const Guard& guard)
    : pipeline_(pipeline) {
  for (const CostTable& table : pipeline.tables) {
    seconds_.emplace_back(pipeline.knobs.size(), kNoWay);
    joules_.emplace_back(pipeline.knobs.size(), kNoWay);
    for (const CostOption& option : table.all_options) {
      seconds_.back()[option.knob] = guard.Seconds(table, option);
      joules_.back()[option.knob] = EffectiveEnergy(table, option);
    }
  }
}

RankPatterns::Allowed RankPatterns::All() const {
  Allowed allowed(pipeline_.table_of.size(), std::vector<std::uint8_t>(num_knobs(), 0));
  for (const std::vector<int>& order : pipeline_.dag.rank_order) {
    const auto beats = [&](int a, int b) {
      bool same = true;
      for (const int i : order) {
        if (Seconds(i, a) > Seconds(i, b) || Joules(i, a) > Joules(i, b)) return false;
        same = same && Seconds(i, a) == Seconds(i, b) && Joules(i, a) == Joules(i, b);
      }
      return !same || a < b;
    };
    for (int knob = 0; knob < num_knobs(); ++knob) {
      bool beaten = false;
      for (int other = 0; other < num_knobs() && !beaten; ++other) {
        beaten = other != knob && beats(other, knob);
      }
      if (beaten) continue;
      for (const int i : order) allowed[i][knob] = Seconds(i, knob) < kNoWay ? 1 : 0;
    }
  }
  return allowed;
}

// A shortest path through the knobs of a rank, for each knob that its first computation may have:
// the last one pays for a change where it has another.

RankPatterns::Rank RankPatterns::RankOf(const std::vector<int>& order, const Allowed& allowed,
                                        const Prices& prices) {
  Rank rank;
  for (int knob = 0; knob < num_knobs(); ++knob) {
    if (std::any_of(order.begin(), order.end(), [&](int i) { return allowed[i][knob] != 0; })) {
      rank.knobs.push_back(knob);
    }
  }
  for (const int i : order) {
    std::vector<double>& joules = rank.joules.emplace_back();
    for (const int knob : rank.knobs) {
      joules.push_back(allowed[i][knob] != 0 ? PricedJoules(prices, i, knob) : kNoWay);
    }
  }
  AddWork(static_cast<std::int64_t>(order.size() * rank.knobs.size()));
  return rank;
}

void RankPatterns::Forward(const Rank& rank, int first, double change_joules,
                           std::vector<std::vector<double>>* least) {
  const std::size_t size = rank.joules.size();
  const std::size_t places = rank.knobs.size();
  least->resize(size);
  least->front().assign(places, kNoWay);
  least->front()[first] = rank.joules.front()[first];
  for (std::size_t p = 1; p < size; ++p) {
    const std::vector<double>& before = (*least)[p - 1];
    const double changed = *std::min_element(before.begin(), before.end()) + change_joules;
    std::vector<double>& now = (*least)[p];
    now.resize(places);
    for (std::size_t k = 0; k < places; ++k) {
      now[k] = std::min(before[k], changed) + rank.joules[p][k];
    }
  }
  AddWork(static_cast<std::int64_t>(size * places));
}

double RankPatterns::Cheapest(const Allowed& allowed, const Prices& prices,
                              std::vector<int>* knobs) {
  knobs->assign(pipeline().table_of.size(), -1);
  double total = 0;
  for (const std::vector<int>& order : pipeline().dag.rank_order) {
    const Rank rank = RankOf(order, allowed, prices);
    const int places = static_cast<int>(rank.knobs.size());
    std::vector<std::vector<double>> least;
    double cheapest = kNoWay;
    int best_first = -1;
    int best_last = -1;
    for (int first = 0; first < places; ++first) {
      if (rank.joules.front()[first] == kNoWay) continue;
      Forward(rank, first, prices.change_joules, &least);
      for (int last = 0; last < places; ++last) {
        const double joules = least.back()[last] + (last == first ? 0 : prices.change_joules);
        if (!(joules < cheapest)) continue;
        cheapest = joules;
        best_first = first;
        best_last = last;
      }
    }
    if (best_first < 0) return kNoWay;
    total += cheapest;
    Forward(rank, best_first, prices.change_joules, &least);
    int at = best_last;
    for (std::size_t p = order.size(); p-- > 0;) {
      (*knobs)[order[p]] = rank.knobs[at];
      if (p == 0) break;
      const auto cheaper = std::min_element(least[p - 1].begin(), least[p - 1].end());
      if (*cheaper + prices.change_joules < least[p - 1][at]) {
        at = static_cast<int>(cheaper - least[p - 1].begin());
      }
    }
  }
  return total;
}

void RankPatterns::Forbid(const Prices& prices, double room, Allowed* allowed) {
  for (const std::vector<int>& order : pipeline().dag.rank_order) {
    const Rank rank = RankOf(order, *allowed, prices);
    const int places = static_cast<int>(rank.knobs.size());
    // [position][place] Of the ways that pass there.
    std::vector<std::vector<double>> through(order.size(), std::vector<double>(places, kNoWay));
    std::vector<std::vector<double>> least;
    for (int first = 0; first < places; ++first) {
      if (rank.joules.front()[first] == kNoWay) continue;
      Forward(rank, first, prices.change_joules, &least);
      std::vector<double> after(places, prices.change_joules);
      after[first] = 0;
      for (std::size_t p = order.size(); p-- > 0;) {
        double changed = kNoWay;
        for (int k = 0; k < places; ++k) {
          through[p][k] = std::min(through[p][k], least[p][k] + after[k]);
          after[k] += rank.joules[p][k];
          changed = std::min(changed, after[k] + prices.change_joules);
        }
        for (double& joules : after) joules = std::min(joules, changed);
      }
      AddWork(static_cast<std::int64_t>(3 * order.size()) * places);
    }
    const double cheapest = *std::min_element(through.front().begin(), through.front().end());
    if (cheapest == kNoWay) return;
    for (std::size_t p = 0; p < order.size(); ++p) {
      for (int k = 0; k < places; ++k) {
        if (through[p][k] - cheapest > room) (*allowed)[order[p]][rank.knobs[k]] = 0;
      }
    }
  }
}

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

constexpr std::int64_t kCutsWork = 20'000'000;  // For one way to cut.
constexpr int kPriceSteps = 12;                 // For one with fewer changes.
constexpr double kFirstPrice = 1e4;             // Of a change, in tolerances.

PatternIncumbent::PatternIncumbent(RankPatterns* patterns, const Guard& guard,
                                   const PatternProblem& problem, const GroupProblem& timing)
    : patterns_(*patterns),
      pipeline_(patterns->pipeline()),
      guard_(guard),
      problem_(problem),
      timing_(timing) {}

double PatternIncumbent::ChangesOf(const std::vector<int>& knobs) const {
  return problem_.most_changes ? CountKnobChanges(pipeline_.dag, knobs)->all() : 0;
}

bool PatternIncumbent::ChangesTooOften(const std::vector<int>& knobs) const {
  return problem_.most_changes && ChangesOf(knobs) > static_cast<double>(*problem_.most_changes);
}

std::vector<int> PatternIncumbent::WithFewerChanges(const RankPatterns::Allowed& allowed,
                                                    RankPatterns::Prices prices) {
  std::vector<int> knobs;
  std::vector<int> found;
  double low = prices.change_joules;
  double high = 2 * low + kFirstPrice * problem_.tolerance_joules;
  for (int k = 0; k < kPriceSteps && found.empty(); ++k) {
    prices.change_joules = high;
    patterns_.Cheapest(allowed, prices, &knobs);
    if (ChangesTooOften(knobs)) {
      low = high;
      high *= 4;
    } else {
      found = knobs;
    }
  }
  for (int k = 0; k < kPriceSteps && !found.empty(); ++k) {
    prices.change_joules = (low + high) / 2;
    patterns_.Cheapest(allowed, prices, &knobs);
    if (ChangesTooOften(knobs)) {
      low = prices.change_joules;
    } else {
      high = prices.change_joules;
      found = knobs;
    }
  }
  return found;
}

// Stretches of computations with one knob. Where changes are limited, a rank's last and its first
// of the next iteration are one if they share a knob.
std::vector<std::vector<int>> PatternIncumbent::StretchesOf(const std::vector<int>& knobs) const {
  std::vector<std::vector<int>> groups;
  for (const std::vector<int>& order : pipeline_.dag.rank_order) {
    const std::size_t first = groups.size();
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (k == 0 || knobs[order[k]] != knobs[order[k - 1]]) groups.emplace_back();
      groups.back().push_back(order[k]);
    }
    if (problem_.most_changes && groups.size() > first + 1 &&
        knobs[order.front()] == knobs[order.back()]) {
      groups[first].insert(groups[first].end(), groups.back().begin(), groups.back().end());
      groups.pop_back();
    }
  }
  for (std::vector<int>& members : groups) std::sort(members.begin(), members.end());
  return groups;
}

void PatternIncumbent::TryCuts(const RankPatterns::Allowed& allowed,
                               const RankPatterns::Prices& prices, std::vector<int> knobs,
                               std::int64_t work_limit) {
  if (ChangesTooOften(knobs)) knobs = WithFewerChanges(allowed, prices);
  if (knobs.empty()) return;
  const auto [groups, is_new] = tried_.insert(StretchesOf(knobs));
  if (!is_new) return;
  const auto problem = GroupProblem::Make(pipeline_, guard_, *groups, problem_.seconds);
  if (!problem) return;
  // Dearer plans may end earlier, and so be better after all.
  const double below = problem_.waiting_watts > 0 ? RankPatterns::kNoWay : joules_;
  const GroupSolution found = SolveGroups(*problem, {std::vector<int>(problem->num_groups(), 0)},
                                          std::min(kCutsWork, work_limit), below);
  work_ += found.work;
  if (!found.choice.empty()) Offer(problem->PlanOf(found.choice));
}

void PatternIncumbent::TryOnly(const RankPatterns::Allowed& allowed) {
  std::vector<int> knobs;
  const RankPatterns::Prices free = {.watts = std::vector<double>(pipeline_.dag.size(), 0)};
  if (patterns_.Cheapest(allowed, free, &knobs) == RankPatterns::kNoWay) return;
  std::vector<CostOption> options;
  options.reserve(knobs.size());
  for (int i = 0; i < pipeline_.dag.size(); ++i) {
    options.push_back(*FindOption(pipeline_.TableOf(i), knobs[i]));
  }
  Offer(std::move(options));
}

void PatternIncumbent::Offer(std::vector<CostOption> options) {
  std::vector<double> seconds;
  std::vector<int> knobs;
  for (int i = 0; i < pipeline_.dag.size(); ++i) {
    knobs.push_back(options[i].knob);
    seconds.push_back(patterns_.Seconds(i, options[i].knob));
  }
  const double end = timing_.LongestPath(seconds, nullptr);
  if (end > problem_.seconds || ChangesTooOften(knobs)) return;
  const double joules =
      EffectiveEnergyOf(pipeline_, options) + problem_.waiting_watts * (end - problem_.seconds);
  if (!(joules < joules_)) return;
  options_ = std::move(options);
  joules_ = joules;
}

// Branch and bound over what ranks may do with their clocks.
//
// The bound. Paths through the pipeline get prices L >= 0, a change of clock a price C >= 0. No
// plan that ends at t costs less than
//
//   sum over ranks of the cheapest way, each second at the prices of its paths, each change at C
//     + sum over paths L x (delay - t) - C x most changes + waiting power x (t - deadline),
//
// which holds for all prices (RankPatterns finds the cheapest way exactly), at the deadline or,
// where a second of waiting costs more than all paths, at the least time that there is. Prices are
// improved by the volume algorithm (Barahona and Anbil, 2000): steps along what an average of the
// ways so far takes too long. Paths are made on demand, the longest one of that average.
//
// A node says which knobs a computation may take. What makes the bound of a node dearer than the
// best plan is forbidden; what is left is split where the average mixes knobs that are far apart.
// The open node with the least bound is next. So which nodes come before does not depend on plans
// that are known from elsewhere, and these only say where to stop.
//
// Plans are made of the cheapest ways (PatternIncumbent).

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
    // The split: a computation, and the knobs that the first child may take.
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
      // Split a node that was given up half way as it is.
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

PatternSolution SolvePatterns(const CostedPipeline& pipeline, const Guard& guard,
                              const PatternProblem& problem, std::int64_t work_limit) {
  RankPatterns patterns(pipeline, guard);
  return PatternBranching(&patterns, guard, problem, work_limit).Run();
}

}  // namespace perseus::plan
