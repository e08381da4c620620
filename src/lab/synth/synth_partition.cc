// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string_view>
#include <vector>

#include "common/nearest_name.h"
#include "common/numbers.h"
#include "perseus/synth.h"
#include "synth/synth_shape.h"

namespace perseus::synth {
namespace {

using Counts = std::vector<std::int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Cuts `ends` (prefix sums of the layers' seconds, from 0) into `stages`
// non-empty runs of least total cost. `combine(so_far, seconds)` grows with both.
template <typename Combine>
Counts BestCuts(const std::vector<double>& ends, std::size_t stages, double tail_seconds,
                Combine combine) {
  const std::size_t layers = ends.size() - 1;
  std::vector<double> best(layers + 1, kInfinity);
  best[0] = 0;
  std::vector<std::vector<std::size_t>> cut(stages, std::vector<std::size_t>(layers + 1, 0));
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const double extra = stage + 1 == stages ? tail_seconds : 0;
    std::vector<double> next(layers + 1, kInfinity);
    for (std::size_t end = stage + 1; end <= layers - (stages - 1 - stage); ++end) {
      for (std::size_t start = stage; start < end; ++start) {
        const double cost = combine(best[start], ends[end] - ends[start] + extra);
        if (cost < next[end]) {
          next[end] = cost;
          cut[stage][end] = start;
        }
      }
    }
    best = std::move(next);
  }
  Counts counts(stages);
  for (std::size_t stage = stages, end = layers; stage-- > 0;) {
    counts[stage] = static_cast<std::int64_t>(end - cut[stage][end]);
    end = cut[stage][end];
  }
  return counts;
}

// The slowest stage as fast as can be; among such partitions, the most even.
Counts Balanced(const std::vector<double>& layer_seconds, std::size_t stages, double tail_seconds) {
  std::vector<double> ends(layer_seconds.size() + 1, 0.0);
  std::partial_sum(layer_seconds.begin(), layer_seconds.end(), ends.begin() + 1);
  const Counts fastest = BestCuts(ends, stages, tail_seconds, [](double so_far, double seconds) {
    return std::max(so_far, seconds);
  });
  double slowest = 0;
  for (std::size_t stage = 0, start = 0; stage < stages; ++stage) {
    const std::size_t end = start + static_cast<std::size_t>(fastest[stage]);
    slowest = std::max(slowest, ends[end] - ends[start] + (stage + 1 == stages ? tail_seconds : 0));
    start = end;
  }
  const double limit = slowest * (1 + 1e-9);  // Sums of equal layers differ in the last bits.
  return BestCuts(ends, stages, tail_seconds, [limit](double so_far, double seconds) {
    return seconds > limit ? kInfinity : so_far + seconds * seconds;
  });
}

Result<Counts> Explicit(std::string_view text, std::int64_t layers, std::int64_t stages) {
  Counts counts;
  std::string_view rest = text;
  while (true) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const auto count = ParseInteger<std::int64_t>(Trimmed(part));
    if (!count || *count < 1) {
      return InvalidInput(fmt::format(
          "'partition' {}: {} is neither 'uniform' nor 'balanced' nor a list of layers per stage "
          "such as 7,7,6,4, each at least 1",
          Shown(text), Shown(part)));
    }
    counts.push_back(std::min(*count, layers + 1));
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  if (std::ssize(counts) != stages) {
    return InvalidInput(fmt::format("'partition' {} lists {} stages, but 'stages' is {}",
                                    Shown(text), counts.size(), stages));
  }
  const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (sum != layers) {
    return InvalidInput(
        fmt::format("'partition' {} does not add up to the model's {} layers (of a Wide-ResNet: "
                    "residual blocks); embedding, stem and head are not counted",
                    Shown(text), layers));
  }
  return counts;
}

}  // namespace

Result<Counts> PartitionLayers(const SynthSpec& spec, const std::vector<double>& layer_seconds,
                               double tail_seconds) {
  const std::int64_t layers = std::ssize(layer_seconds);
  if (SameName(spec.partition, "balanced")) {
    return Balanced(layer_seconds, static_cast<std::size_t>(spec.stages), tail_seconds);
  }
  if (SameName(spec.partition, "uniform")) {
    Counts counts(static_cast<std::size_t>(spec.stages), layers / spec.stages);
    for (std::int64_t i = 0; i < layers % spec.stages; ++i) ++counts[static_cast<std::size_t>(i)];
    return counts;
  }
  return Explicit(spec.partition, layers, spec.stages);
}

}  // namespace perseus::synth
