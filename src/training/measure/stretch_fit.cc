// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/stretch_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace perseus::measure {
namespace {

// Of stretches that one computation covers; shorter ones are joined. Bounds the band.
constexpr double kMostPerComputation = 12;
// Besides: reads and counters are not exact, and their last digit is a millijoule.
constexpr double kFloorJoules = 2e-3;
constexpr double kFirstSpread = 0.03;
// Relative, in each stretch: waiting is a kernel that spins, now and then a transfer; the
// rest is anything from an optimizer's step to nothing at all.
constexpr double kWaitingSpread = 0.03;
constexpr double kRestSpread = 1.0;

struct Piece {
  double begin_ns = 0;
  double end_ns = 0;
  std::size_t column = 0;
  double work_seconds = 0;  // Of the work column, for the whole of it.
  std::size_t work_column = 0;
};

// The stretches of one window.
struct Run {
  std::vector<std::vector<double>> columns;  // [column][stretch]
  std::vector<double> joules;
  std::vector<double> tick_seconds;       // Standard deviation of each tick's time, one more.
  std::vector<std::size_t> tick_columns;  // What ran at each tick.
  struct Part {
    std::size_t stretch = 0;
    std::size_t column = 0;
    double seconds = 0;
  };
  std::vector<std::vector<Part>> computations;  // In which stretches each ran, for how long.
  std::size_t band = 1;
};

std::vector<Piece> PiecesOf(const std::vector<Iteration>& window,
                            const std::vector<KindScale>& scales) {
  std::vector<Piece> pieces;
  const auto pause = [&](double begin_ns, double end_ns, std::size_t column) {
    if (end_ns > begin_ns) pieces.push_back({begin_ns, end_ns, column, 0, 0});
  };
  for (std::size_t i = 0; i < window.size(); ++i) {
    const Iteration& iteration = window[i];
    auto at_ns = static_cast<double>(iteration.begin_ns);
    for (const Span& span : iteration.spans) {
      const auto begin_ns = std::max(at_ns, static_cast<double>(span.begin_ns));
      const auto end_ns = static_cast<double>(span.end_ns);
      pause(at_ns, begin_ns, kWaitingColumn);
      if (end_ns <= begin_ns) continue;
      const KindScale& scale = scales[span.kind];
      Piece& piece = pieces.emplace_back();
      piece = {begin_ns, end_ns, PowerColumn(span.kind), 0, WorkColumn(span.kind)};
      if (scale.mean_work > 0 && span.work > 0) {
        piece.work_seconds = (span.work / scale.mean_work - 1) * scale.mean_seconds;
      }
      at_ns = end_ns;
    }
    const std::int64_t next_ns = i + 1 < window.size() ? window[i + 1].begin_ns : iteration.end_ns;
    pause(at_ns, static_cast<double>(next_ns), kRestColumn);
  }
  return pieces;
}

// Runs of ticks that follow each other within a window, at least `least_ns` apart.
std::vector<std::vector<Tick>> TicksOf(const std::vector<Iteration>& window,
                                       const std::vector<Tick>& ticks, double least_ns) {
  std::vector<std::vector<Tick>> runs;
  const std::int64_t begin_ns = window.front().begin_ns;
  const std::int64_t end_ns = window.back().end_ns;
  bool open = false;
  for (const Tick& tick : ticks) {
    if (!tick.follows) open = false;
    if (tick.after_ns < begin_ns || tick.by_ns > end_ns) continue;
    if (!open) {
      runs.emplace_back();
      open = true;
    }
    std::vector<Tick>& run = runs.back();
    if (run.empty() || tick.at_ns() - run.back().at_ns() >= least_ns) run.push_back(tick);
  }
  return runs;
}

Run MakeRun(const std::vector<Piece>& pieces, const std::vector<Tick>& ticks, std::size_t columns) {
  Run run;
  const std::size_t count = ticks.size() - 1;
  run.columns.assign(columns, std::vector<double>(count));
  for (const Tick& tick : ticks) {
    const double width_ns = static_cast<double>(tick.by_ns - tick.after_ns);
    run.tick_seconds.push_back(width_ns * kSecondsPerNs / std::sqrt(12.0));
    const auto piece = std::find_if(pieces.begin(), pieces.end(),
                                    [&](const Piece& p) { return p.end_ns > tick.at_ns(); });
    run.tick_columns.push_back(piece == pieces.end() ? kRestColumn : piece->column);
  }
  for (std::size_t i = 0; i < count; ++i) {
    run.joules.push_back(ticks[i + 1].joules - ticks[i].joules);
  }
  std::size_t first = 0;  // Stretch in which the piece begins.
  for (const Piece& piece : pieces) {
    while (first < count && ticks[first + 1].at_ns() <= piece.begin_ns) ++first;
    std::vector<Run::Part> parts;
    for (std::size_t i = first; i < count && ticks[i].at_ns() < piece.end_ns; ++i) {
      const double overlap_ns =
          std::min(piece.end_ns, ticks[i + 1].at_ns()) - std::max(piece.begin_ns, ticks[i].at_ns());
      if (overlap_ns <= 0) continue;
      const double seconds = overlap_ns * kSecondsPerNs;
      run.columns[piece.column][i] += seconds;
      if (piece.work_seconds != 0) {
        run.columns[piece.work_column][i] +=
            piece.work_seconds * overlap_ns / (piece.end_ns - piece.begin_ns);
      }
      parts.push_back({i, piece.column, seconds});
    }
    if (parts.empty() || piece.column < kFirstKindColumn) continue;
    run.band = std::max(run.band, parts.back().stretch - parts.front().stretch);
    run.computations.push_back(std::move(parts));
  }
  return run;
}

BandedWhitener CovarianceOf(const Run& run, const std::vector<double>& watts, double spread) {
  const std::size_t count = run.joules.size();
  BandedWhitener covariance(count, run.band);
  const auto tick_variance = [&](std::size_t tick) {
    const double joules = watts[run.tick_columns[tick]] * run.tick_seconds[tick];
    return joules * joules + kFloorJoules * kFloorJoules;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const double waiting = kWaitingSpread * watts[kWaitingColumn] * run.columns[kWaitingColumn][i];
    const double rest = kRestSpread * watts[kRestColumn] * run.columns[kRestColumn][i];
    covariance.at(i, i) +=
        tick_variance(i) + tick_variance(i + 1) + waiting * waiting + rest * rest;
    if (i > 0) covariance.at(i, i - 1) -= tick_variance(i);
  }
  for (const auto& parts : run.computations) {
    for (std::size_t a = 0; a < parts.size(); ++a) {
      const double left = spread * watts[parts[a].column] * parts[a].seconds;
      for (std::size_t b = 0; b <= a; ++b) {
        const double right = spread * watts[parts[b].column] * parts[b].seconds;
        covariance.at(parts[a].stretch, parts[b].stretch) += left * right;
      }
    }
  }
  return covariance;
}

void AddRun(const Run& run, const std::vector<double>& watts, double spread,
            NormalEquations* equations) {
  BandedWhitener covariance = CovarianceOf(run, watts, spread);
  covariance.Factor();
  std::vector<std::vector<double>> columns = run.columns;
  std::vector<double> joules = run.joules;
  for (auto& column : columns) covariance.Whiten(&column);
  covariance.Whiten(&joules);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      equations->normal.Add(
          i, j, std::inner_product(columns[i].begin(), columns[i].end(), columns[j].begin(), 0.0));
    }
    equations->right[i] +=
        std::inner_product(columns[i].begin(), columns[i].end(), joules.begin(), 0.0);
  }
  equations->squares += std::inner_product(joules.begin(), joules.end(), joules.begin(), 0.0);
  equations->log_determinant += covariance.LogDeterminant();
}

NormalEquations FitRuns(const std::vector<Run>& runs, const std::vector<double>& watts,
                        double spread) {
  NormalEquations equations;
  equations.normal = SymmetricMatrix(watts.size());
  equations.right.assign(watts.size(), 0);
  for (const Run& run : runs) AddRun(run, watts, spread, &equations);
  return equations;
}

// Watts for weights only: pulled to the mean of all where stretches say little.
std::vector<double> RoughWatts(const NormalEquations& equations, double mean_watts) {
  SymmetricMatrix matrix = equations.normal;
  std::vector<double> right = equations.right;
  const double precision = 1 / (0.25 * mean_watts * mean_watts);
  for (std::size_t i = 0; i < right.size(); ++i) {
    matrix.at(i, i) += precision;
    const bool is_power = i < kFirstKindColumn || (i - kFirstKindColumn) % 2 == 0;
    if (is_power) right[i] += precision * mean_watts;
  }
  std::vector<double> watts = Cholesky(matrix).Solve(std::move(right));
  for (double& value : watts) value = std::clamp(value, 0.05 * mean_watts, 4 * mean_watts);
  return watts;
}

}  // namespace

StretchFit FitStretches(const std::vector<std::vector<Iteration>>& windows,
                        const std::vector<Tick>& ticks, const std::vector<KindScale>& scales) {
  const std::size_t columns = NumColumns(scales.size());
  double longest = 0;
  for (const KindScale& scale : scales) longest = std::max(longest, scale.mean_seconds);
  const double least_ns = longest / kMostPerComputation / kSecondsPerNs;
  StretchFit fit;
  std::vector<Run> runs;
  for (const auto& window : windows) {
    if (window.empty()) continue;
    const std::vector<Piece> pieces = PiecesOf(window, scales);
    for (const std::vector<Tick>& run_ticks : TicksOf(window, ticks, least_ns)) {
      if (run_ticks.size() < 2) continue;
      const Run& run = runs.emplace_back(MakeRun(pieces, run_ticks, columns));
      fit.stretches += run.joules.size();
      fit.joules += std::accumulate(run.joules.begin(), run.joules.end(), 0.0);
      fit.seconds += (run_ticks.back().at_ns() - run_ticks.front().at_ns()) * kSecondsPerNs;
      const auto& waiting = run.columns[kWaitingColumn];
      fit.waiting_seconds += std::accumulate(waiting.begin(), waiting.end(), 0.0);
    }
  }
  std::vector<double> watts(columns, fit.seconds > 0 ? fit.joules / fit.seconds : 1.0);
  if (fit.stretches > 0) watts = RoughWatts(FitRuns(runs, watts, kFirstSpread), watts.front());
  for (std::size_t i = 0; i < kPowerSpreads.size(); ++i) {
    fit.by_spread[i] = FitRuns(runs, watts, kPowerSpreads[i]);
  }
  return fit;
}

}  // namespace perseus::measure
