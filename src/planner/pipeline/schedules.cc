// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "pipeline/schedules.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "common/nearest_name.h"
#include "perseus/schedule.h"

namespace perseus {
inline namespace v0 {
namespace {

// Other spellings, folded: PyTorch's class names without "Schedule", and what
// papers say.
struct Alias {
  std::string_view folded;
  std::string_view canonical;
};
constexpr std::array kAliases = {
    Alias{"interleaved", "interleaved-1f1b"},
    Alias{"megatron", "megatron-interleaved"},
    Alias{"megatroninterleaved1f1b", "megatron-interleaved"},
    Alias{"zb1p", "interleaved-zero-bubble"},
    Alias{"zbv", "zbv-zero-bubble"},
};

}  // namespace

const std::vector<std::string>& ScheduleNames() {
  static const std::vector<std::string> kNames = {"gpipe",
                                                  "1f1b",
                                                  "early-recomputation-1f1b",
                                                  "looped-bfs",
                                                  "interleaved-1f1b",
                                                  "megatron-interleaved",
                                                  "interleaved-zero-bubble",
                                                  "zbv-zero-bubble",
                                                  "dualpipev"};
  return kNames;
}

std::optional<std::string> CanonicalScheduleName(std::string_view name) {
  const std::string folded = FoldedName(name);
  for (const std::string& canonical : ScheduleNames()) {
    if (folded == FoldedName(canonical)) return canonical;
  }
  for (const Alias& alias : kAliases) {
    if (folded == alias.folded) return std::string(alias.canonical);
  }
  return std::nullopt;
}

}  // namespace v0
}  // namespace perseus

namespace perseus::pipeline {

std::string UnknownScheduleName(std::string_view name) {
  std::vector<std::string> spellings = ScheduleNames();
  for (const Alias& alias : kAliases) spellings.emplace_back(alias.folded);
  const auto nearest = CanonicalScheduleName(NearestName(name, spellings));
  return fmt::format("unknown schedule {}{}; known are {}", Shown(name),
                     nearest ? fmt::format("; did you mean '{}'?", *nearest) : "",
                     fmt::join(ScheduleNames(), ", "));
}

// The schedules that run one stage through all its microbatches in turn.

using enum ComputationType;

RankOrder GPipeOrder(const ScheduleShape& shape, int rank) {
  RankOrder order;
  for (int i = 0; i < shape.num_microbatches; ++i) order.push_back(Step(kForward, rank, i));
  for (int i = 0; i < shape.num_microbatches; ++i) order.push_back(Step(kBackward, rank, i));
  return order;
}

RankOrder OneForwardOneBackwardOrder(const ScheduleShape& shape, int rank) {
  const int m = shape.num_microbatches;
  const int warm_up = std::min(m, shape.num_ranks - 1 - rank);
  RankOrder order;
  for (int i = 0; i < warm_up; ++i) order.push_back(Step(kForward, rank, i));
  for (int i = warm_up; i < m; ++i) {
    order.push_back(Step(kForward, rank, i));
    order.push_back(Step(kBackward, rank, i - warm_up));
  }
  for (int i = m - warm_up; i < m; ++i) order.push_back(Step(kBackward, rank, i));
  return order;
}

// Merak's (Lai et al. 2023), as in lowtime. A rank that will run no more forwards waits before each
// backward, and recomputes meanwhile; until then it recomputes as part of the backward.
RankOrder EarlyRecomputationOrder(const ScheduleShape& shape, int rank) {
  const int warm_up = shape.num_ranks - 1 - rank;
  RankOrder order;
  for (const ScheduleStep& step : OneForwardOneBackwardOrder(shape, rank)) {
    const auto [type, stage, microbatch] = step.id;
    if (type == kForward) {
      order.push_back(step);
      continue;
    }
    const ComputationId recompute{kRecompute, stage, microbatch};
    if (microbatch + warm_up < shape.num_microbatches) {
      order.push_back({recompute, step.id});
    } else {
      order.push_back({recompute, std::nullopt});
      order.push_back(step);
    }
  }
  return order;
}

RankOrder LoopedBreadthFirstOrder(const ScheduleShape& shape, int rank) {
  const int m = shape.num_microbatches;
  RankOrder order;
  for (int chunk = 0; chunk < shape.virtual_stages; ++chunk) {
    for (int i = 0; i < m; ++i) {
      order.push_back(Step(kForward, rank + chunk * shape.num_ranks, i));
    }
  }
  for (int chunk = shape.virtual_stages - 1; chunk >= 0; --chunk) {
    for (int i = m - 1; i >= 0; --i) {
      order.push_back(Step(kBackward, rank + chunk * shape.num_ranks, i));
    }
  }
  return order;
}

// The schedules that interleave the virtual stages ("chunks") of a rank, one
// forward one backward: PyTorch's rule, Megatron's rule, and PyTorch's zero
// bubble form (ZB1P), which delays weight gradients to fill the cool-down.

namespace {

using enum ComputationType;

struct ChunkPass {
  int chunk = 0;
  int microbatch = 0;
};

// The forwards of a rank in order: groups of microbatches, each group through
// every chunk. The last group may be smaller.
std::vector<ChunkPass> ForwardPasses(const ScheduleShape& shape, int group_size) {
  std::vector<ChunkPass> passes;
  for (int first = 0; first < shape.num_microbatches; first += group_size) {
    const int end = std::min(first + group_size, shape.num_microbatches);
    for (int chunk = 0; chunk < shape.virtual_stages; ++chunk) {
      for (int i = first; i < end; ++i) passes.push_back({chunk, i});
    }
  }
  return passes;
}

// The k-th backward takes the k-th forward's microbatch through the mirrored
// chunk. `weight_lag`: backwards are split, and a weight gradient runs after
// every pair once that many pairs lie behind it.
RankOrder Interleave(const ScheduleShape& shape, int rank, int group_size, int warm_up,
                     std::optional<int> weight_lag) {
  const std::vector<ChunkPass> passes = ForwardPasses(shape, group_size);
  const auto total = static_cast<int>(passes.size());
  warm_up = std::min(warm_up, total);
  const auto forward = [&](int k) {
    return Step(kForward, rank + passes[k].chunk * shape.num_ranks, passes[k].microbatch);
  };
  const auto backward = [&](int k, ComputationType type) {
    const int chunk = shape.virtual_stages - 1 - passes[k].chunk;
    return Step(type, rank + chunk * shape.num_ranks, passes[k].microbatch);
  };

  RankOrder order;
  for (int k = 0; k < warm_up; ++k) order.push_back(forward(k));
  int next_weight = 0;
  for (int k = 0; k < total; ++k) {
    if (warm_up + k < total) order.push_back(forward(warm_up + k));
    order.push_back(backward(k, weight_lag ? kBackwardInput : kBackward));
    if (weight_lag && k >= *weight_lag) order.push_back(backward(next_weight++, kBackwardWeight));
  }
  if (weight_lag) {
    while (next_weight < total) order.push_back(backward(next_weight++, kBackwardWeight));
  }
  return order;
}

// PyTorch divides the microbatches into rounds of equal size, at least one
// microbatch per rank where there are that many.
int RoundSize(const ScheduleShape& shape) {
  const int rounds = std::max(1, shape.num_microbatches / shape.num_ranks);
  return shape.num_microbatches / rounds;
}

}  // namespace

RankOrder InterleavedOrder(const ScheduleShape& shape, int rank) {
  const int group = RoundSize(shape);
  const int warm_up = (shape.virtual_stages - 1) * group + 2 * (shape.num_ranks - 1 - rank);
  return Interleave(shape, rank, group, warm_up, std::nullopt);
}

RankOrder MegatronInterleavedOrder(const ScheduleShape& shape, int rank) {
  const int group = shape.microbatch_group_size;
  const int warm_up = (shape.virtual_stages - 1) * group + 2 * (shape.num_ranks - 1 - rank);
  return Interleave(shape, rank, group, warm_up, std::nullopt);
}

RankOrder InterleavedZeroBubbleOrder(const ScheduleShape& shape, int rank) {
  const int group = RoundSize(shape);
  const int warm_up = (shape.virtual_stages - 1) * group + (shape.num_ranks - 1 - rank);
  return Interleave(shape, rank, group, warm_up, rank);
}

// ZB-V (Qi et al. 2024): two stages a rank in V shape, backwards split so that
// weight gradients fill what would be idle.

namespace {

using enum ComputationType;

// Hands out the microbatches of one stage, separately for F, I and W. The rule
// is written for at least 2P - 1 microbatches; where there are fewer, those
// that do not exist are left out.
class StageFeed {
 public:
  StageFeed(RankOrder& order, int stage, int num_microbatches)
      : order_(order), stage_(stage), num_microbatches_(num_microbatches) {}

  void Forward() { Emit(kForward, forwards_); }
  void Input() { Emit(kBackwardInput, inputs_); }
  void Weight() { Emit(kBackwardWeight, weights_); }
  bool has_pending_weight() const { return weights_ < inputs_; }

 private:
  void Emit(ComputationType type, int& microbatch) {
    if (microbatch < num_microbatches_) order_.push_back(Step(type, stage_, microbatch++));
  }

  RankOrder& order_;
  int stage_;
  int num_microbatches_;
  int forwards_ = 0;
  int inputs_ = 0;
  int weights_ = 0;
};

}  // namespace

RankOrder ZbvZeroBubbleOrder(const ScheduleShape& shape, int rank) {
  const int p = shape.num_ranks;
  const int n = std::max(2 * p - 1, shape.num_microbatches);
  RankOrder order;
  StageFeed down(order, rank, shape.num_microbatches);
  StageFeed up(order, 2 * p - 1 - rank, shape.num_microbatches);
  // Each time round hands out one more of everything, so after as many times as
  // there are microbatches nothing is left to hand out: the rest is skipped.
  // With few microbatches on many ranks it would be nearly all of the time.
  const auto repeat = [&shape](int times, const auto& hand_out) {
    for (int i = 0; i < std::min(times, shape.num_microbatches); ++i) hand_out();
  };

  repeat(2 * (p - rank) - 1, [&] { down.Forward(); });
  repeat(rank, [&] {
    up.Forward();
    down.Forward();
  });
  repeat(p - rank, [&] {
    up.Forward();
    up.Input();
    up.Weight();
  });
  // Until all n forwards of both stages are out: p of the stage above are.
  repeat(n - p, [&] {
    down.Forward();
    down.Input();
    down.Weight();
    up.Forward();
    up.Input();
    up.Weight();
  });
  repeat(rank, [&] {
    down.Input();
    up.Input();
  });
  repeat(p - rank, [&] {
    down.Input();
    down.Weight();
  });
  while (up.has_pending_weight()) up.Weight();
  while (down.has_pending_weight()) down.Weight();
  return order;
}

// DualPipeV (DeepSeek 2025, "cut-in-half" by Sea AI Lab): two stages a rank in
// V shape; in the steady state a forward of one overlaps a backward of the
// other. The eight steps carry the numbers of the authors' code.

namespace {

using enum ComputationType;

class DualPipeVRank {
 public:
  DualPipeVRank(int num_ranks, int rank) : stages_{rank, 2 * num_ranks - 1 - rank} {}

  void Forward(int chunk) { order_.push_back({NextForward(chunk), std::nullopt}); }
  void Backward(int chunk) { order_.push_back({NextBackward(chunk, kBackward), std::nullopt}); }
  void Input(int chunk) {
    const ComputationId input = NextBackward(chunk, kBackwardInput);
    order_.push_back({input, std::nullopt});
    pending_weights_.push_back({kBackwardWeight, input.stage, input.microbatch});
  }
  void Weight() {
    order_.push_back({pending_weights_.front(), std::nullopt});
    pending_weights_.pop_front();
  }
  void Overlap(int forward_chunk, int backward_chunk) {
    const ComputationId forward = NextForward(forward_chunk);
    order_.push_back({forward, NextBackward(backward_chunk, kBackward)});
  }
  RankOrder Take() { return std::move(order_); }

 private:
  ComputationId NextForward(int chunk) { return {kForward, stages_[chunk], forwards_[chunk]++}; }
  ComputationId NextBackward(int chunk, ComputationType type) {
    return {type, stages_[chunk], backwards_[chunk]++};
  }

  int stages_[2];
  int forwards_[2] = {0, 0};
  int backwards_[2] = {0, 0};
  std::deque<ComputationId> pending_weights_;
  RankOrder order_;
};

}  // namespace

RankOrder DualPipeVOrder(const ScheduleShape& shape, int rank) {
  const int p = shape.num_ranks;
  const int after = p - rank - 1;  // Ranks behind this one.
  DualPipeVRank run(p, rank);

  for (int i = 0; i < 2 * after; ++i) run.Forward(0);  // 1
  for (int i = 0; i < rank + 1; ++i) {                 // 2
    run.Forward(0);
    run.Forward(1);
  }
  for (int i = 0; i < after; ++i) {  // 3
    run.Input(1);
    run.Weight();
    run.Forward(1);
  }
  for (int i = 0; i < shape.num_microbatches - 2 * p + rank + 1; ++i) {  // 4
    if (i == 0 && after == 0) {
      // Not overlapped: the last rank's first backward is what all wait for.
      run.Forward(0);
      run.Backward(1);
    } else {
      run.Overlap(0, 1);
    }
    run.Overlap(1, 0);
  }
  for (int i = 0; i < after; ++i) {  // 5
    run.Backward(1);
    run.Overlap(1, 0);
  }
  // 6: backwards, of which the second half is split.
  const int pairs = rank + 1;
  for (int backward = 0; backward < 2 * pairs; ++backward) {
    const int chunk = backward % 2 == 0 ? 1 : 0;
    const int first_split = 2 * (pairs / 2) + (rank % 2 == 0 ? 1 : 0);
    if (backward < first_split) {
      run.Backward(chunk);
    } else {
      run.Input(chunk);
    }
  }
  for (int i = 0; i < after; ++i) {  // 7
    run.Weight();
    run.Input(0);
  }
  for (int i = 0; i < rank + 1; ++i) run.Weight();  // 8
  return run.Take();
}

}  // namespace perseus::pipeline

namespace perseus {
inline namespace v0 {
namespace {

using pipeline::DualPipeVOrder;
using pipeline::EarlyRecomputationOrder;
using pipeline::GPipeOrder;
using pipeline::InterleavedOrder;
using pipeline::InterleavedZeroBubbleOrder;
using pipeline::kMaxComputations;
using pipeline::LoopedBreadthFirstOrder;
using pipeline::MegatronInterleavedOrder;
using pipeline::OneForwardOneBackwardOrder;
using pipeline::RankOrder;
using pipeline::ScheduleShape;
using pipeline::TooManyComputations;
using pipeline::UnknownScheduleName;
using pipeline::ZbvZeroBubbleOrder;

Result<void> AnyShape(const ScheduleShape&) { return {}; }

Result<void> CheckOneStagePerRank(const ScheduleShape& shape, std::string_view name,
                                  std::string_view interleaved) {
  if (shape.virtual_stages == 1) return {};
  return InvalidInput(fmt::format(
      "{} runs one stage on each rank, but virtual_stages is {}: use 1, or the schedule {}", name,
      shape.virtual_stages, interleaved));
}

Result<void> CheckGPipe(const ScheduleShape& shape) {
  return CheckOneStagePerRank(shape, "gpipe", "looped-bfs");
}

Result<void> CheckOneForwardOneBackward(const ScheduleShape& shape) {
  return CheckOneStagePerRank(shape, "1f1b", "interleaved-1f1b");
}

Result<void> CheckEarlyRecomputation(const ScheduleShape& shape) {
  return CheckOneStagePerRank(shape, "early-recomputation-1f1b", "interleaved-1f1b");
}

Result<void> CheckTwoStagesPerRank(const ScheduleShape& shape, std::string_view name) {
  if (shape.virtual_stages == 2) return {};
  return InvalidInput(
      fmt::format("{} runs two stages on each rank, but virtual_stages is {}: use 2", name,
                  shape.virtual_stages));
}

Result<void> CheckZbv(const ScheduleShape& shape) {
  return CheckTwoStagesPerRank(shape, "zbv-zero-bubble");
}

Result<void> CheckDualPipeV(const ScheduleShape& shape) {
  if (auto ok = CheckTwoStagesPerRank(shape, "dualpipev"); !ok) return ok;
  if (shape.num_microbatches >= shape.num_stages()) return {};
  return InvalidInput(fmt::format(
      "dualpipev needs at least as many microbatches as stages, but has {} for {} stages: use {} "
      "or more",
      shape.num_microbatches, shape.num_stages(), shape.num_stages()));
}

// PyTorch's rounds: microbatches / ranks, rounded down, at least one.
bool DividesIntoRounds(int num_microbatches, int num_ranks) {
  return num_microbatches % std::max(1, num_microbatches / num_ranks) == 0;
}

Result<void> CheckRounds(const ScheduleShape& shape, std::string_view name) {
  const int m = shape.num_microbatches;
  const int p = shape.num_ranks;
  if (DividesIntoRounds(m, p)) return {};
  // A multiple of the number of ranks always divides, so both searches end.
  int fewer = m;
  while (!DividesIntoRounds(fewer, p)) --fewer;
  int more = m;
  while (!DividesIntoRounds(more, p)) ++more;
  return InvalidInput(fmt::format(
      "{} needs microbatches to be a multiple of the number of rounds (microbatches / ranks, "
      "rounded down), but {} microbatches on {} ranks make {} rounds: use {} or {} microbatches",
      name, m, p, m / p, fewer, more));
}

Result<void> CheckInterleaved(const ScheduleShape& shape) {
  return CheckRounds(shape, "interleaved-1f1b");
}

Result<void> CheckInterleavedZeroBubble(const ScheduleShape& shape) {
  return CheckRounds(shape, "interleaved-zero-bubble");
}

Result<void> CheckMegatronInterleaved(const ScheduleShape& shape) {
  const int m = shape.num_microbatches;
  const int p = shape.num_ranks;
  const int group = shape.microbatch_group_size;
  if (group < p || group > m) {
    return InvalidInput(fmt::format(
        "megatron-interleaved needs ranks <= microbatch group size <= microbatches, but has {} "
        "ranks, groups of {} and {} microbatches: use {}",
        p, group, m,
        p <= m ? fmt::format("groups of {} to {}", p, m)
               : fmt::format("at least {} microbatches", p)));
  }
  const int rest = m % group;
  if (rest == 0 || rest >= p) return {};
  return InvalidInput(fmt::format(
      "megatron-interleaved needs a last group of at least {} microbatches, one per rank, but {} "
      "microbatches in groups of {} leave {}: use {} or {} microbatches",
      p, m, group, rest, m - rest, std::min(m - rest + p, m - rest + group)));
}

// One row per schedule, in the order of ScheduleNames().
struct Generator {
  std::string_view name;
  Result<void> (*check)(const ScheduleShape&);
  RankOrder (*order)(const ScheduleShape&, int rank);
  int per_microbatch;  // Computations on each stage.
};
constexpr std::array kGenerators = {
    Generator{"gpipe", CheckGPipe, GPipeOrder, 2},
    Generator{"1f1b", CheckOneForwardOneBackward, OneForwardOneBackwardOrder, 2},
    Generator{"early-recomputation-1f1b", CheckEarlyRecomputation, EarlyRecomputationOrder, 3},
    Generator{"looped-bfs", AnyShape, LoopedBreadthFirstOrder, 2},
    Generator{"interleaved-1f1b", CheckInterleaved, InterleavedOrder, 2},
    Generator{"megatron-interleaved", CheckMegatronInterleaved, MegatronInterleavedOrder, 2},
    Generator{"interleaved-zero-bubble", CheckInterleavedZeroBubble, InterleavedZeroBubbleOrder, 3},
    Generator{"zbv-zero-bubble", CheckZbv, ZbvZeroBubbleOrder, 3},
    Generator{"dualpipev", CheckDualPipeV, DualPipeVOrder, 3},
};

Result<ScheduleShape> ShapeOf(const ScheduleSpec& spec, const Generator& generator) {
  const struct {
    std::string_view name;
    int value;
  } counts[] = {{"stages", spec.num_stages},
                {"virtual_stages", spec.virtual_stages},
                {"microbatches", spec.num_microbatches}};
  for (const auto& count : counts) {
    if (count.value < 1) {
      return InvalidInput(fmt::format("{} must be at least 1, but is {}", count.name, count.value));
    }
  }
  if (spec.num_stages % spec.virtual_stages != 0) {
    return InvalidInput(fmt::format(
        "{} stages cannot be dealt out evenly with {} virtual stages per rank: stages must be a "
        "multiple of virtual_stages",
        spec.num_stages, spec.virtual_stages));
  }
  const bool megatron = generator.name == "megatron-interleaved";
  if (spec.microbatch_group_size && (!megatron || *spec.microbatch_group_size < 1)) {
    return InvalidInput(fmt::format(
        "microbatch_group_size is {}: only megatron-interleaved has groups, of at least one "
        "microbatch per rank",
        *spec.microbatch_group_size));
  }
  if (static_cast<std::int64_t>(spec.num_stages) * spec.num_microbatches >
      kMaxComputations / generator.per_microbatch) {
    return InvalidInput(TooManyComputations());
  }
  ScheduleShape shape;
  shape.num_ranks = spec.num_stages / spec.virtual_stages;
  shape.virtual_stages = spec.virtual_stages;
  shape.num_microbatches = spec.num_microbatches;
  shape.microbatch_group_size = spec.microbatch_group_size.value_or(shape.num_ranks);
  return shape;
}

}  // namespace

Result<Schedule> BuildSchedule(const ScheduleSpec& spec) {
  const auto name = CanonicalScheduleName(spec.name);
  const auto* const generator = std::find_if(kGenerators.begin(), kGenerators.end(),
                                             [&](const Generator& g) { return g.name == name; });
  if (generator == kGenerators.end()) return InvalidInput(UnknownScheduleName(spec.name));
  const auto shape = ShapeOf(spec, *generator);
  if (!shape) return tl::unexpected(shape.error());
  if (auto ok = generator->check(*shape); !ok) return tl::unexpected(ok.error());

  Schedule schedule;
  schedule.name = generator->name;
  schedule.num_ranks = shape->num_ranks;
  schedule.num_stages = spec.num_stages;
  schedule.num_microbatches = spec.num_microbatches;
  schedule.ranks.reserve(shape->num_ranks);
  for (int rank = 0; rank < shape->num_ranks; ++rank) {
    schedule.ranks.push_back(generator->order(*shape, rank));
  }
  if (auto ok = ValidateSchedule(schedule); !ok) {
    return MakeError(ErrorCode::kInternal, fmt::format("the order of {} is not legal: {}",
                                                       schedule.name, ok.error().message));
  }
  return schedule;
}

}  // namespace v0
}  // namespace perseus
