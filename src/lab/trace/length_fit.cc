// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/length_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

namespace perseus::trace {
namespace {

using Kind = std::pair<int, OperationKind>;    // Block and type.
using Microbatch = std::tuple<int, int, int>;  // Step, pipeline, number.

// Least squares of y over x, as it goes.
struct Line {
  double count = 0, x = 0, y = 0, xx = 0, xy = 0;

  void Add(double at, double value) {
    count += 1;
    x += at;
    y += value;
    xx += at * at;
    xy += at * value;
  }
  double At(double where) const {
    const double spread = xx - x * x / count;
    const double slope = spread > 1e-12 * xx ? (xy - x * y / count) / spread : 0;
    return y / count + slope * (where - x / count);
  }
};

}  // namespace

LengthFit FitLengths(const Recording& recording, std::span<const double> own_seconds) {
  // A computation of next to no time cannot be planned.
  constexpr double kLeastOfMean = 0.05;
  std::map<Kind, Line> kinds;
  const auto each = [&](const auto& visit) {
    for (std::size_t i = 0; i < own_seconds.size(); ++i) {
      const Operation& operation = recording.operations[i];
      if (!IsComputation(operation.kind)) continue;
      visit(i, kinds[{operation.block, operation.kind}],
            Microbatch{operation.step, operation.pipeline, operation.microbatch});
    }
  };
  std::map<Kind, Line> fits;
  std::map<Microbatch, Line> lengths;
  each([&](std::size_t i, Line& kind, const Microbatch&) { kind.Add(0, own_seconds[i]); });
  each([&](std::size_t i, Line& kind, const Microbatch& microbatch) {
    lengths[microbatch].Add(0, kind.y > 0 ? own_seconds[i] * kind.count / kind.y : 1);
  });
  each([&](std::size_t i, Line&, const Microbatch& microbatch) {
    const Operation& operation = recording.operations[i];
    fits[{operation.block, operation.kind}].Add(lengths[microbatch].At(0), own_seconds[i]);
  });
  LengthFit result;
  result.seconds.assign(own_seconds.begin(), own_seconds.end());
  double squares = 0;
  double count = 0;
  each([&](std::size_t i, Line& kind, const Microbatch& microbatch) {
    const Operation& operation = recording.operations[i];
    const double mean = kind.y / kind.count;
    result.seconds[i] = std::max(
        fits[{operation.block, operation.kind}].At(lengths[microbatch].At(0)), kLeastOfMean * mean);
    if (mean > 0) squares += std::pow((result.seconds[i] - own_seconds[i]) / mean, 2);
    count += 1;
  });
  result.error = std::sqrt(squares / std::max(count, 1.0));
  return result;
}

}  // namespace perseus::trace
