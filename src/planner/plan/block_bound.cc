// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/block_bound.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "frontier/deadline_program.h"
#include "frontier/solver.h"
#include "plan/option_search.h"
#include "plan/window_search.h"

namespace perseus::plan {

// Some activities of a network, in which the
// arcs to all others are replaced by their prices: an activity that waits for
// others is paid for starting late, one that others wait for pays for ending
// late, within the times that any plan can have. Unlike a window, a block need
// not be consecutive.
class BlockNetwork : public PartNetwork {
 public:
  // Prices are those of `relaxation`, the optimum at `deadline`. Borrows all.
  BlockNetwork(const frontier::Network& whole, const frontier::DeadlineProgram& relaxation,
               std::int64_t deadline);

  // `activities` in topological order. Those of the network behind them are borders.
  void Cut(std::span<const int> activities);

 private:
  struct Border {
    int activity;        // Local.
    std::int64_t price;  // Of all arcs that are cut, together.
    std::int64_t flow;   // And of those from the source or to the sink.
    std::int64_t least;  // Ticks: of the border's length,
    std::int64_t most;   // which costs less the longer it is.
    bool at_start;
  };

  Timetable limits_;  // Everything at its fastest.
};

using frontier::Int128;
using frontier::Network;
using ArcStart = frontier::DeadlineProgram::ArcStart;

BlockNetwork::BlockNetwork(const Network& whole, const frontier::DeadlineProgram& relaxation,
                           std::int64_t deadline)
    : PartNetwork(whole, relaxation) {
  const auto size = static_cast<std::size_t>(whole.num_activities);
  limits_ = {.length = std::vector<std::int64_t>(size),
             .earliest_end = std::vector<std::int64_t>(size),
             .latest_start = std::vector<std::int64_t>(size)};
  for (int i = 0; i < whole.num_activities; ++i)
    limits_.length[i] = whole.CurveOf(i).lengths.back();
  PushEarliest(whole, whole.topological_order, &limits_);
  PullLatest(whole, whole.topological_order, deadline, &limits_);
}

void BlockNetwork::Cut(std::span<const int> activities) {
  const int size = static_cast<int>(activities.size());
  Begin(activities);
  network_.curves = whole_.curves;  // Behind which those of borders come.
  std::int64_t first = frontier::kInfinite;
  std::int64_t last = 0;
  for (const int i : activities) {
    first = std::min(first, limits_.earliest_end[i] - limits_.length[i]);
    last = std::max(last, limits_.latest_start[i] + limits_.length[i]);
  }
  time_ = last - first;
  std::vector<Border> borders;
  std::vector<Network::Arc> inner;
  std::vector<ArcStart> inner_starts;
  for (int k = 0; k < size; ++k) {
    const int i = activities[k];
    Border before{k,
                  0,
                  0,
                  limits_.earliest_end[i] - limits_.length[i] - first,
                  limits_.latest_start[i] - first,
                  true};
    Border after{k,
                 0,
                 0,
                 last - limits_.latest_start[i] - limits_.length[i],
                 last - limits_.earliest_end[i],
                 false};
    const auto other_of = [](int node) { return node < 2 ? -1 : (node - 2) / 2; };
    for (const Network::Incidence& each : whole_.IncidencesOf(Network::StartNode(i))) {
      const Network::Arc& arc = whole_.arcs[each.arc];
      if (arc.head != Network::StartNode(i)) continue;
      const int other = other_of(arc.tail);
      const ArcStart start = relaxation_.StartOf(each.arc);
      if (other >= 0 && local_[other] >= 0) {
        inner.push_back({Network::EndNode(local_[other]), Network::StartNode(k), arc.length});
        inner_starts.push_back(start);
        continue;
      }
      before.flow += start.flow;
      if (other >= 0) before.price += start.flow;  // Starts are kept as they are.
    }
    for (const Network::Incidence& each : whole_.IncidencesOf(Network::EndNode(i))) {
      const Network::Arc& arc = whole_.arcs[each.arc];
      if (arc.tail != Network::EndNode(i)) continue;
      const int other = other_of(arc.head);
      if (other >= 0 && local_[other] >= 0) continue;
      const std::int64_t flow = relaxation_.StartOf(each.arc).flow;
      after.flow += flow;
      if (other >= 0) after.price += flow;  // The deadline is kept as it is.
    }
    borders.push_back(before);
    borders.push_back(after);
  }
  for (const int i : activities) local_[i] = -1;

  // Nodes are numbered by activity: those of the borders come behind.
  std::vector<int> befores, afters;
  std::vector<Network::Arc> outer;
  std::vector<ArcStart> outer_starts;
  for (const Border& border : borders) {
    outer_starts.push_back({border.flow, false});
    const int node =
        border.at_start ? Network::StartNode(border.activity) : Network::EndNode(border.activity);
    if (border.price == 0 || border.most <= border.least) {
      // It cannot be paid for, but it has its earliest and its latest time.
      outer.push_back(border.at_start ? Network::Arc{Network::kSource, node, border.least}
                                      : Network::Arc{node, Network::kSink, border.least});
      continue;
    }
    const int own = network_.num_activities++;
    starts_.push_back({border.flow, false});
    inner_starts.push_back({border.flow, false});
    (border.at_start ? befores : afters).push_back(own);
    network_.curve_of.push_back(static_cast<int>(network_.curves.size()));
    network_.curves.push_back(
        {.lengths = {border.most, border.least},
         .capacities = {border.price, frontier::kInfinite},
         .costs = {0, static_cast<Int128>(border.price) * (border.most - border.least)}});
    if (border.at_start) {
      outer.push_back({Network::kSource, Network::StartNode(own), 0});
      inner.push_back({Network::EndNode(own), node, 0});
    } else {
      inner.push_back({node, Network::StartNode(own), 0});
      outer.push_back({Network::EndNode(own), Network::kSink, 0});
    }
  }
  network_.topological_order = befores;
  for (int k = 0; k < size; ++k) network_.topological_order.push_back(k);
  network_.topological_order.insert(network_.topological_order.end(), afters.begin(), afters.end());
  for (int k = 0; k < network_.num_activities; ++k) {
    network_.arcs.push_back({Network::StartNode(k), Network::EndNode(k), 0});
  }
  network_.num_precedences = static_cast<int>(inner.size());
  network_.arcs.insert(network_.arcs.end(), inner.begin(), inner.end());
  network_.arcs.insert(network_.arcs.end(), outer.begin(), outer.end());
  starts_.insert(starts_.end(), inner_starts.begin(), inner_starts.end());
  starts_.insert(starts_.end(), outer_starts.begin(), outer_starts.end());
  IndexArcs(&network_);
}

// A relaxation does not see that lengths of options do not add up: two ranks between the same two
// events would each have to mix two options.
//
// Proof. Let x be prices that are optimal for the relaxation (a flow), and P a
// partition of the activities. Of the Lagrangian
//
//   L(plan, times) = sum of costs + sum over arcs (i, j) that are cut of
//                    x (end of i + delay - start of j)
//
// every plan that ends by the deadline, with times that it can have, is at or
// above: what is added is not positive. L falls apart into one problem for each
// block, and a constant. With convex curves the minima of the blocks add up to
// the relaxation's optimum, because x is optimal (that times are kept within
// what any plan can have only adds constraints that the relaxation meets). So
//
//   any plan >= relaxation + sum over blocks (discrete minimum - convex minimum)
//
// and each difference may be replaced by anything smaller that is proven of it,
// such as the sum of those of its parts, or what is left of an unfinished search.
//
// Blocks. The activities of two ranks at a time, a dozen by start, are the first
// blocks; then two are joined, by turns later ones and those of the next ranks,
// as long as there is work left. A joined block is worth at least its parts.
// `Deep` rounds do all that again with more work for each block, and branch where it
// costs most: fewer nodes, each dearer. The best round counts.

namespace {

using frontier::DeadlineProgram;
using frontier::Int128;
using frontier::kNoLimit;
using frontier::Network;

constexpr std::size_t kRanksOfFirst = 2;
constexpr std::size_t kSizeOfFirst = 12;
// Beyond this even unfinished searches take too long.
constexpr std::size_t kLargestBlock = 96;
constexpr std::int64_t kWorkPerBlock = 4'000'000;
constexpr std::int64_t kTries = 3;   // Searches of a block, each of so much.
constexpr std::int64_t kDeeper = 8;  // More of it in each deep round.
// Activities that are tried before one of them is branched on, in deep rounds.
constexpr std::size_t kTried = 8;

// Depth first, with exact bounds, for the discrete minimum of a block or for a
// proof that it is not below a limit.
class BlockSearch {
 public:
  BlockSearch(PartialChoice* program, Int128 limit, std::int64_t work_limit, bool deep)
      : program_(*program), best_(limit), work_limit_(program->work() + work_limit), deep_(deep) {}

  // The proven bound: the minimum or the limit where `finished`.
  Int128 Run() { return Branch(); }
  bool finished() const { return !out_of_work_; }
  bool found() const { return found_; }
  Int128 best() const { return best_; }

 private:
  // A bound on all plans below the state of `program_`, which is optimal.
  Int128 Branch() {
    const Int128 bound = program_.objective();
    if (bound >= best_) return best_;
    const int activity = deep_ ? DearestBetween() : FirstBetween();
    if (activity < 0) {
      best_ = bound;
      found_ = true;
      return bound;
    }
    Int128 least = kNoLimit;
    for (const auto& [child_bound, knob] : program_.ByBound(activity, best_)) {
      if (child_bound >= best_) break;
      if (program_.work() >= work_limit_) {
        out_of_work_ = true;
        least = std::min(least, child_bound);
        break;  // The others are not below it.
      }
      program_.Fix(activity, knob);
      program_.Optimise(kNoLimit);
      least = std::min(least, Branch());
    }
    program_.Release(activity);
    program_.Optimise(kNoLimit);
    return std::min(least, best_);
  }

  // The first free activity between two of its options; -1: there is none.
  int FirstBetween() const {
    for (int k = 0; k < program_.size(); ++k) {
      if (program_.IsFree(k) && program_.IsBetween(k)) return k;
    }
    return -1;
  }

  // Of such activities the one whose neighbouring options cost most: by the cheaper
  // of the two, then by the dearer.
  int DearestBetween() {
    std::vector<int> between;
    for (int k = 0; k < program_.size(); ++k) {
      if (program_.IsFree(k) && program_.IsBetween(k)) between.push_back(k);
    }
    if (between.size() < 2) return between.empty() ? -1 : between.front();
    int chosen = between.front();
    std::pair<Int128, Int128> most = {-1, -1};
    const std::size_t step = (between.size() + kTried - 1) / kTried;
    for (std::size_t c = 0; c < between.size() && program_.work() < work_limit_; c += step) {
      Int128 cheaper = best_;
      Int128 dearer = 0;
      for (const int knob : program_.Neighbours(between[c])) {
        program_.Fix(between[c], knob);
        const Int128 cost = program_.Optimise(best_ - 1) ? program_.objective() : best_;
        cheaper = std::min(cheaper, cost);
        dearer = std::max(dearer, cost);
      }
      program_.Release(between[c]);
      program_.Optimise(kNoLimit);
      if (std::pair(cheaper, dearer) > most) {
        most = {cheaper, dearer};
        chosen = between[c];
      }
    }
    return chosen;
  }

  PartialChoice& program_;
  Int128 best_;
  const std::int64_t work_limit_;
  const bool deep_;
  bool out_of_work_ = false;
  bool found_ = false;
};

struct Block {
  std::vector<int> activities;  // In topological order.
  Int128 gain = 0;
};

class Bounder {
 public:
  Bounder(const Network& network, const DeadlineProgram& relaxation, std::int64_t deadline,
          const SearchSpace& space, std::int64_t work_limit)
      : block_network_(network, relaxation, deadline),
        space_(space),
        place_(network.num_activities),
        work_left_(work_limit) {
    for (std::size_t k = 0; k < network.topological_order.size(); ++k) {
      place_[network.topological_order[k]] = static_cast<int>(k);
    }
  }

  // Raises the gain of a block, as far as work goes.
  void Search(Block* block) {
    const bool deep = work_per_block_ > kWorkPerBlock;
    // One deep search may be as much as all that is left: it begins where one of its tries fits.
    if (deep ? work_left_ < work_per_block_ : work_left_ <= 0) return;
    if (block->activities.size() > kLargestBlock) return;
    std::sort(block->activities.begin(), block->activities.end(),
              [this](int a, int b) { return place_[a] < place_[b]; });
    block_network_.Cut(block->activities);
    std::int64_t spent = 0;
    std::optional<DeadlineProgram> program = block_network_.Program(&spent);
    work_left_ -= spent;
    if (!program) return;
    SearchSpace space;
    space.options = space_.options;
    for (const int i : block->activities) space.knobs.push_back(space_.knobs[i]);
    PartialChoice choice(block_network_.network(), *std::move(program), space);
    const Int128 convex = choice.objective();
    const std::int64_t before = choice.work();
    ++searched_.blocks;
    // To the end, or else for a proof of a part of what it could be.
    Int128 limit = kNoLimit;
    for (int tries = 0; tries < kTries; ++tries) {
      BlockSearch search(&choice, limit, work_per_block_, deep);
      block->gain = std::max(block->gain, search.Run() - convex);
      if (search.finished()) {
        ++searched_.proven;
        break;
      }
      if (tries == 0 && !search.found()) break;
      limit = convex + ((search.found() ? search.best() : limit) - convex) / 2;
      if (limit - convex <= block->gain) break;
    }
    work_left_ -= choice.work() - before;
  }

  // Without the gains of the blocks.
  const BlockBound& searched() const { return searched_; }
  bool IsOver() const { return work_left_ <= 0; }
  bool CanDeepen() const { return work_left_ >= kTries * kDeeper * work_per_block_; }

  // From now on each block may take more work, and is branched on with more care.
  void Deepen() {
    work_per_block_ *= kDeeper;
    searched_ = {};
  }

 private:
  BlockNetwork block_network_;
  const SearchSpace& space_;
  std::vector<int> place_;
  std::int64_t work_left_;
  std::int64_t work_per_block_ = kWorkPerBlock;
  BlockBound searched_;  // In this round.
};

Block Joined(const Block& a, const Block& b) {
  Block both = a;
  both.activities.insert(both.activities.end(), b.activities.begin(), b.activities.end());
  both.gain = a.gain + b.gain;
  return both;
}

// Blocks by [band of ranks][place in time].
using Grid = std::vector<std::vector<Block>>;

Grid FirstBlocks(const RankOrder& ranks, const DeadlineProgram& relaxation) {
  Grid grid;
  for (std::size_t rank = 0; rank < ranks.size(); rank += kRanksOfFirst) {
    std::vector<int> band;
    for (std::size_t r = rank; r < std::min(rank + kRanksOfFirst, ranks.size()); ++r) {
      band.insert(band.end(), ranks[r].begin(), ranks[r].end());
    }
    std::stable_sort(band.begin(), band.end(), [&](int a, int b) {
      return relaxation.StartTime(a) < relaxation.StartTime(b);
    });
    grid.emplace_back();
    for (std::size_t k = 0; k < band.size(); k += kSizeOfFirst) {
      const auto first = band.begin() + static_cast<std::ptrdiff_t>(k);
      const auto last =
          band.begin() + static_cast<std::ptrdiff_t>(std::min(k + kSizeOfFirst, band.size()));
      grid.back().push_back({{first, last}, 0});
    }
  }
  return grid;
}

Grid JoinedInTime(const Grid& grid) {
  Grid joined;
  for (const std::vector<Block>& band : grid) {
    joined.emplace_back();
    for (std::size_t k = 0; k < band.size(); k += 2) {
      joined.back().push_back(k + 1 < band.size() ? Joined(band[k], band[k + 1]) : band[k]);
    }
  }
  return joined;
}

Grid JoinedAcrossRanks(const Grid& grid) {
  Grid joined;
  for (std::size_t b = 0; b < grid.size(); b += 2) {
    joined.push_back(grid[b]);
    if (b + 1 == grid.size()) continue;
    for (std::size_t k = 0; k < grid[b + 1].size(); ++k) {
      if (k < joined.back().size()) {
        joined.back()[k] = Joined(joined.back()[k], grid[b + 1][k]);
      } else {
        joined.back().push_back(grid[b + 1][k]);
      }
    }
  }
  return joined;
}

// One round over ever larger blocks, with the sum of their gains.
BlockBound Round(const Grid& first, Bounder* bounder) {
  Grid grid = first;
  for (bool in_time = true;; in_time = !in_time) {
    for (std::vector<Block>& band : grid) {
      for (Block& block : band) bounder->Search(&block);
    }
    const bool one = grid.size() == 1 && grid.front().size() == 1;
    if (bounder->IsOver() || one || grid.front().front().activities.size() > kLargestBlock) break;
    grid = in_time ? JoinedInTime(grid) : JoinedAcrossRanks(grid);
  }
  BlockBound bound = bounder->searched();
  for (const std::vector<Block>& band : grid) {
    for (const Block& block : band) bound.gain += block.gain;
  }
  return bound;
}

}  // namespace

BlockBound BoundByBlocks(const Network& network, const DeadlineProgram& relaxation,
                         std::int64_t deadline, const SearchSpace& space, const RankOrder& ranks,
                         std::int64_t work_limit, bool deep) {
  Bounder bounder(network, relaxation, deadline, space, work_limit);
  const Grid first = FirstBlocks(ranks, relaxation);
  BlockBound best = Round(first, &bounder);
  for (bool proven = best.proven == best.blocks; deep && !proven && bounder.CanDeepen();) {
    bounder.Deepen();
    const BlockBound bound = Round(first, &bounder);
    proven = bound.proven == bound.blocks;
    if (bound.gain > best.gain) best = bound;
  }
  return best;
}

}  // namespace perseus::plan
