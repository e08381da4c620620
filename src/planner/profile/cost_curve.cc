// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/cost_curve.h"

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

namespace perseus {
inline namespace v0 {
namespace {

// Variable projection: on scaled points (times and energies within 0..1), for
// a fixed decay k, the best line through the points
//
//   y = top - drop h(x),  h(x) = (1 - exp(-k x)) / k,  drop >= 0
//
// is a linear problem; what remains is a search for k alone. In this form a
// small k tends to the straight line instead of to a difference of huge
// numbers.

struct ScaledPoint {
  double x = 0;
  double y = 0;
};

struct Line {
  double top = 0;
  double drop = 0;
  double squares = 0;  // Sum of squared residuals.
};

double Basis(double decay, double x) { return -std::expm1(-decay * x) / decay; }

Line BestLine(const std::vector<ScaledPoint>& points, double decay) {
  const auto n = static_cast<double>(points.size());
  double mean_h = 0;
  double mean_y = 0;
  for (const ScaledPoint& p : points) {
    mean_h += Basis(decay, p.x) / n;
    mean_y += p.y / n;
  }
  double hh = 0;
  double hy = 0;
  for (const ScaledPoint& p : points) {
    const double h = Basis(decay, p.x) - mean_h;
    hh += h * h;
    hy += h * (p.y - mean_y);
  }
  Line line;
  line.drop = hh > 0 ? std::max(-hy / hh, 0.0) : 0.0;
  line.top = mean_y + line.drop * mean_h;
  for (const ScaledPoint& p : points) {
    const double residual = p.y - (line.top - line.drop * Basis(decay, p.x));
    line.squares += residual * residual;
  }
  return line;
}

// The decay of least squares: a coarse search over its logarithm, as the sum
// may have several minima, refined by Brent's method.
double BestDecay(const std::vector<ScaledPoint>& points) {
  constexpr double kLeastLog = -7;  // k of 1e-3: a straight line.
  constexpr double kMostLog = 7;    // k of 1e3: only the first point stands out.
  constexpr int kSteps = 56;
  constexpr double kStep = (kMostLog - kLeastLog) / kSteps;
  const auto squares = [&](double log_decay) {
    return BestLine(points, std::exp(log_decay)).squares;
  };
  double best_log = kLeastLog;
  double best = squares(kLeastLog);
  for (int i = 1; i <= kSteps; ++i) {
    const double log_decay = kLeastLog + i * kStep;
    const double value = squares(log_decay);
    if (value >= best) continue;
    best = value;
    best_log = log_decay;
  }
  constexpr int kBits = 26;  // Half of a double's: finer is noise at a minimum.
  std::uintmax_t most_iterations = 100;
  const auto [refined_log, refined] = boost::math::tools::brent_find_minima(
      squares, std::max(best_log - kStep, kLeastLog), std::min(best_log + kStep, kMostLog), kBits,
      most_iterations);
  return std::exp(refined < best ? refined_log : best_log);
}

}  // namespace

double ExponentialFit::operator()(double time_seconds) const {
  if (a == 0) return c;  // 0 times the infinity of a time far below the origin.
  return a * std::exp(b * (time_seconds - origin_seconds)) + c;
}

Result<ExponentialFit> FitExponential(std::span<const TimeEnergy> points) {
  if (points.empty()) return InvalidInput("cannot fit a cost curve to no points");
  constexpr double kMost = 1e100;
  for (const TimeEnergy& p : points) {
    if (std::abs(p.time_seconds) <= kMost && std::abs(p.energy_joules) <= kMost) continue;
    return InvalidInput("cannot fit a cost curve to times or energies that are not finite");
  }
  const auto [first, last] = std::minmax_element(
      points.begin(), points.end(),
      [](const TimeEnergy& p, const TimeEnergy& q) { return p.time_seconds < q.time_seconds; });
  const auto [least, most] = std::minmax_element(
      points.begin(), points.end(),
      [](const TimeEnergy& p, const TimeEnergy& q) { return p.energy_joules < q.energy_joules; });
  const double origin = first->time_seconds;
  const double duration = last->time_seconds - origin;
  const double base = least->energy_joules;
  const double height = most->energy_joules - base;

  // Below this, a quotient by it would overflow.
  constexpr double kNothing = 1e-100;
  const bool flat = !(duration > kNothing) || !(height > kNothing);
  std::vector<ScaledPoint> scaled;
  scaled.reserve(points.size());
  for (const TimeEnergy& p : points) {
    scaled.push_back({duration > kNothing ? (p.time_seconds - origin) / duration : 0.0,
                      height > kNothing ? (p.energy_joules - base) / height : 0.0});
  }
  // Two different times say nothing about the decay: take one of their size.
  const bool decay_is_free = std::all_of(scaled.begin(), scaled.end(),
                                         [](const ScaledPoint& p) { return p.x == 0 || p.x == 1; });
  const double decay = flat || decay_is_free ? 1.0 : BestDecay(scaled);
  const Line line = BestLine(scaled, decay);

  ExponentialFit fit;
  fit.origin_seconds = origin;
  if (line.drop > 0) {
    fit.a = height * line.drop / decay;
    fit.b = -decay / duration;
  }
  fit.c = base + height * (line.top - line.drop / decay);
  double mean = 0;
  for (const ScaledPoint& p : scaled) mean += p.y / static_cast<double>(scaled.size());
  double variance = 0;
  for (const ScaledPoint& p : scaled) variance += (p.y - mean) * (p.y - mean);
  fit.r_squared = variance > 0 ? std::max(1 - line.squares / variance, 0.0) : 1.0;
  return fit;
}

}  // namespace v0
}  // namespace perseus
