// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <set>
#include <utility>

#include "common/input_limits.h"
#include "common/nearest_name.h"
#include "perseus/conditions.h"

namespace perseus::model {

FixedNoise DrawFixedNoise(const CostedPipeline& pipeline, const TimeNoise& noise, int pipelines,
                          std::uint64_t seed) {
  FixedNoise drawn;
  drawn.stage.assign(pipeline.dag.num_stages, 1.0);
  if (noise.per_stage > 0) {
    for (int stage = 0; stage < pipeline.dag.num_stages; ++stage) {
      const WordHash word = WordHash(seed).With(kStageNoise).With(stage);
      drawn.stage[stage] = 1 + noise.per_stage * word.StandardDraw();
    }
  }
  if (noise.per_gpu <= 0) return drawn;
  drawn.gpus_of_rank.reserve(static_cast<std::size_t>(pipelines) * pipeline.dag.num_ranks);
  for (int p = 0; p < pipelines; ++p) {
    for (int rank = 0; rank < pipeline.dag.num_ranks; ++rank) {
      const WordHash prefix = WordHash(seed).With(kGpuNoise).With(p).With(rank);
      GpuNoise gpus = {.slowest = 0, .mean = 0};
      for (int gpu = 0; gpu < pipeline.tensor_parallel; ++gpu) {
        const double draw = 1 + noise.per_gpu * prefix.With(gpu).StandardDraw();
        gpus.slowest = std::max(gpus.slowest, draw);
        gpus.mean += draw;
      }
      gpus.mean /= pipeline.tensor_parallel;
      drawn.gpus_of_rank.push_back(gpus);
    }
  }
  return drawn;
}

IterationNoise::IterationNoise(const TimeNoise& noise, int ranks)
    : noise_(noise),
      fresh_(std::sqrt(1 - noise.correlation * noise.correlation)),
      of_rank_(ranks, 1.0),
      last_(ranks, 0.0),
      has_last_(ranks, 0) {}

void IterationNoise::Begin(WordHash of_computations, WordHash of_ranks) {
  of_computations_ = of_computations;
  std::fill(has_last_.begin(), has_last_.end(), 0);
  if (noise_.per_rank <= 0) return;
  for (std::size_t rank = 0; rank < of_rank_.size(); ++rank) {
    of_rank_[rank] = 1 + noise_.per_rank * of_ranks.With(rank).StandardDraw();
  }
}

// Cut off as every draw is.
double IterationNoise::Follow(int rank, double draw) {
  constexpr double kMostDraw = 2 * std::numbers::sqrt3;
  if (has_last_[rank] != 0) {
    draw = std::clamp(noise_.correlation * last_[rank] + fresh_ * draw, -kMostDraw, kMostDraw);
  }
  has_last_[rank] = 1;
  last_[rank] = draw;
  return draw;
}

Result<void> CheckCondition(std::string_view key, double value, std::string_view what,
                            double most) {
  if (value >= 0 && value <= most) return {};
  return InvalidInput(
      std::isinf(most)
          ? fmt::format("'{}' is {}; expected {} >= 0", key, value, what)
          : fmt::format("'{}' is {}; expected {} from 0 to {}", key, value, what, most));
}

Result<void> CheckDisturbances(const TimeNoise& noise, const ClockSwitching& switching) {
  const struct {
    std::string_view key;
    double value;
    std::string_view what;
    double most;
  } ranges[] = {
      {"noise", noise.per_computation, kShareText, kMostNoise},
      {"stage_noise", noise.per_stage, kShareText, kMostNoise},
      {"gpu_noise", noise.per_gpu, kShareText, kMostNoise},
      {"rank_noise", noise.per_rank, kShareText, kMostNoise},
      {"rare_noise", noise.rare_length, kShareText, kMostNoise},
      {"rare_noise_share", noise.rare_share, kShareText, kMostNoise},
      {"switch_latency", switching.latency_seconds, kSecondsText, kMostConditionSeconds},
      {"switch_latency_spread", switching.latency_spread_seconds, kSecondsText,
       kMostConditionSeconds},
      {"switch_stall", switching.stall_seconds, kSecondsText, kMostConditionSeconds},
      {"min_call_interval", switching.min_interval_seconds, kSecondsText, kMostConditionSeconds},
      {"max_early_loss", switching.max_early_loss, kShareText, 1},
  };
  for (const auto& [key, value, what, most] : ranges) {
    if (auto checked = CheckCondition(key, value, what, most); !checked) return checked;
  }
  if (!(noise.correlation >= 0 && noise.correlation < 1)) {
    return InvalidInput(
        fmt::format("'noise_correlation' is {}; expected a share from 0 to below 1 (0.9 is 90 %)",
                    noise.correlation));
  }
  if (HasHalfOfRareNoise(noise)) {
    return InvalidInput(fmt::format(
        "'rare_noise' is {} and 'rare_noise_share' is {}; give both above 0, or neither",
        noise.rare_length, noise.rare_share));
  }
  if (!ParseCallAhead(CallAheadName(switching.call_ahead))) {
    return InvalidInput("'call_ahead' is none; expected none, end or predicted");
  }
  if (switching.latency_spread_seconds > switching.latency_seconds) {
    return InvalidInput(fmt::format(
        "'switch_latency_spread' is {} s, more than the 'switch_latency' of {} s; expected "
        "at most as much",
        switching.latency_spread_seconds, switching.latency_seconds));
  }
  return CheckClockLatencies(switching);
}

}  // namespace perseus::model

namespace perseus {
inline namespace v0 {
namespace {

constexpr EnumNames<CallAhead, 3> kCallAheadNames = {{"none", "end", "predicted"}};

}  // namespace

std::string_view CallAheadName(CallAhead call_ahead) { return kCallAheadNames.Of(call_ahead); }

std::optional<CallAhead> ParseCallAhead(std::string_view name) {
  return kCallAheadNames.Parse(name);
}

Result<void> CheckClockLatencies(const ClockSwitching& switching) {
  constexpr double kMostSeconds = 1e6;
  if (!switching.latency_at.empty() && !(switching.latency_seconds > 0)) {
    return InvalidInput(
        "'switch_latency_at' is for clocks that take another time than others; give "
        "'switch_latency', too");
  }
  std::set<double> seen;
  for (const ClockLatency& each : switching.latency_at) {
    if (!(each.clock > 0)) {
      return InvalidInput(fmt::format(
          "the clock {} has a latency of its own; expected a clock above 0 (MHz)", each.clock));
    }
    if (!(each.seconds >= 0 && each.seconds <= kMostSeconds)) {
      return InvalidInput(fmt::format("the latency of the clock {:g} is {} s; expected 0 to {} s",
                                      each.clock, each.seconds, kMostSeconds));
    }
    if (!seen.insert(each.clock).second) {
      return InvalidInput(
          fmt::format("the clock {:g} has two latencies of its own; keep one", each.clock));
    }
  }
  return {};
}

std::vector<Conditions> CornersOf(const Conditions& conditions) {
  const ConditionRanges& ranges = conditions.ranges;
  Conditions one = conditions;
  one.ranges = {};
  if (!ranges.any()) return {one};
  std::vector<Conditions> corners = {one};
  const auto divide = [&corners](const std::optional<ValueRange>& range, auto&& set) {
    if (!range) return;
    std::vector<Conditions> divided;
    for (const Conditions& corner : corners) {
      for (const double value : {range->least, range->most}) {
        divided.push_back(corner);
        set(value, &divided.back());
        if (range->is_one()) break;
      }
    }
    corners = std::move(divided);
  };
  divide(ranges.noise, [](double value, Conditions* c) { c->noise.per_computation = value; });
  divide(ranges.rank_noise, [](double value, Conditions* c) { c->noise.per_rank = value; });
  divide(ranges.switch_latency_seconds, [&ranges](double value, Conditions* c) {
    ClockSwitching& switching = c->switching;
    for (ClockLatency& each : switching.latency_at) {
      each.seconds = std::max(0.0, each.seconds + (value - switching.latency_seconds));
    }
    switching.latency_seconds = value;
    const bool least = value < ranges.switch_latency_seconds->most;
    switching.latency_spread_seconds =
        least ? 0 : std::min(value, switching.latency_spread_seconds);
  });
  corners.insert(corners.begin(), one);
  return corners;
}

}  // namespace v0
}  // namespace perseus
