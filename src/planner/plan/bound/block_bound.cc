// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What a relaxation does not see is that lengths of options do not add up: two
// ranks between the same two events would each have to mix two options.
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

#include "plan/bound/block_bound.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "plan/bound/block_network.h"
#include "plan/search/partial_choice.h"

namespace perseus::plan {
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

  // What is proven: the minimum or the limit where `finished`.
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
