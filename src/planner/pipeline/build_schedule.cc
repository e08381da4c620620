// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "perseus/schedule.h"
#include "pipeline/limits.h"
#include "pipeline/schedule_names.h"
#include "pipeline/schedule_shape.h"

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
