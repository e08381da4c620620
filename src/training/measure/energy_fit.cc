// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/energy_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace perseus::measure {
namespace {

constexpr std::size_t kMostUnknowns = 512;  // Of one fit.
// Of a pause's power before it is measured, relative to the mean of all.
constexpr double kPauseMean = 0.4;
constexpr double kPauseSpread = 0.4;

// One curve over the clocks: the power of a kind, or its work column.
struct WattCurve {
  std::size_t column = 0;
  std::vector<std::size_t> records;  // Where it has a point.
  std::size_t first_unknown = 0;     // They are one after another.
  double mean = 0;                   // Of the prior, relative.
};

// A Gaussian belief about waiting and rest.
struct PauseBelief {
  SymmetricMatrix precision{2};
  std::vector<double> mean = {0, 0};
};

// Records [begin, end), in one fit.
class Problem {
 public:
  Problem(const std::vector<ClockRecord>& records, std::size_t begin, std::size_t end,
          const std::vector<bool>& varies, double scale, int highest_mhz, const PauseBelief& pauses)
      : records_(records), scale_(scale), pauses_(pauses) {
    unknowns_ = kFirstKindColumn;
    for (std::size_t kind = 0; kind < varies.size(); ++kind) {
      for (const bool work : {false, true}) {
        if (work && !varies[kind]) continue;
        WattCurve curve{.column = work ? WorkColumn(kind) : PowerColumn(kind),
                        .records = {},
                        .first_unknown = unknowns_,
                        .mean = work ? 0.0 : 1.0};
        for (std::size_t i = begin; i < end; ++i) {
          if (records[i].Has(kind)) curve.records.push_back(i);
        }
        unknowns_ += curve.records.size();
        if (!curve.records.empty()) curves_.push_back(std::move(curve));
      }
    }
    for (const WattCurve& curve : curves_) {
      std::vector<CurvePoint>& points = points_.emplace_back();
      for (const std::size_t i : curve.records) {
        points.push_back(
            {1 - static_cast<double>(records[i].mhz) / highest_mhz, records[i].throttled});
      }
    }
    begin_ = begin;
    end_ = end;
  }

  const std::vector<WattCurve>& curves() const { return curves_; }

  struct Solution {
    double log_likelihood = 0;
    std::vector<double> watts;
    SymmetricMatrix covariance;  // Empty where it was not asked for.
  };
  Solution Solve(std::size_t spread, const CurvePrior& prior, bool with_covariance) const {
    SymmetricMatrix precision(unknowns_);
    std::vector<double> mean(unknowns_);
    double prior_log_determinant = 0;  // Of the prior's covariance.
    for (std::size_t i = 0; i < kFirstKindColumn; ++i) {
      mean[i] = pauses_.mean[i];
      for (std::size_t j = 0; j < kFirstKindColumn; ++j) {
        precision.at(i, j) = pauses_.precision.at(i, j);
      }
    }
    for (std::size_t c = 0; c < curves_.size(); ++c) {
      const std::size_t first = curves_[c].first_unknown;
      const Cholesky factor(CurveCovariance(points_[c], prior));
      const SymmetricMatrix inverse = factor.Inverse();
      for (std::size_t i = 0; i < points_[c].size(); ++i) {
        mean[first + i] = curves_[c].mean * scale_;
        for (std::size_t j = 0; j < points_[c].size(); ++j) {
          precision.at(first + i, first + j) = inverse.at(i, j) / (scale_ * scale_);
        }
      }
      prior_log_determinant +=
          factor.LogDeterminant() + 2 * static_cast<double>(points_[c].size()) * std::log(scale_);
    }
    // What the stretches add. Residuals are taken about the prior's mean.
    std::vector<double> right(unknowns_);
    double squares = 0;
    double log_determinant = 0;
    for (std::size_t record = begin_; record < end_; ++record) {
      if (records_[record].predicted) continue;
      const NormalEquations& equations = records_[record].stretches.by_spread[spread];
      const std::vector<Place> places = PlacesOf(record);
      squares += equations.squares;
      log_determinant += equations.log_determinant;
      for (const Place& place : places) {
        double pulled = equations.right[place.column];
        for (const Place& other : places) {
          const double value = equations.normal.at(place.column, other.column);
          precision.at(place.unknown, other.unknown) += value;
          pulled -= value * mean[other.unknown];
        }
        right[place.unknown] += pulled;
        squares -= mean[place.unknown] * (equations.right[place.column] + pulled);
      }
    }
    const Cholesky factor(precision);
    Solution solution;
    solution.watts = factor.Solve(right);
    const double explained =
        std::inner_product(right.begin(), right.end(), solution.watts.begin(), 0.0);
    solution.log_likelihood = -0.5 * (squares - explained + log_determinant +
                                      factor.LogDeterminant() + prior_log_determinant);
    for (std::size_t i = 0; i < unknowns_; ++i) solution.watts[i] += mean[i];
    if (with_covariance) solution.covariance = factor.Inverse();
    return solution;
  }

 private:
  struct Place {
    std::size_t column = 0;   // In the equations of a record,
    std::size_t unknown = 0;  // and among those of the fit.
  };

  std::vector<Place> PlacesOf(std::size_t record) const {
    std::vector<Place> places = {{kWaitingColumn, kWaitingColumn}, {kRestColumn, kRestColumn}};
    const std::size_t columns = records_[record].stretches.by_spread[0].right.size();
    for (const WattCurve& curve : curves_) {
      const auto found = std::lower_bound(curve.records.begin(), curve.records.end(), record);
      if (found == curve.records.end() || *found != record || curve.column >= columns) continue;
      places.push_back({curve.column, curve.first_unknown +
                                          static_cast<std::size_t>(found - curve.records.begin())});
    }
    return places;
  }

  const std::vector<ClockRecord>& records_;
  double scale_;
  const PauseBelief& pauses_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t unknowns_ = 0;
  std::vector<WattCurve> curves_;
  std::vector<std::vector<CurvePoint>> points_;  // [curve]
};

// How much the power of single computations varies: the likeliest at all clocks, each
// for itself.
std::size_t LikeliestSpread(const std::vector<ClockRecord>& records,
                            const std::vector<bool>& varies, double scale, int highest_mhz,
                            const PauseBelief& pauses) {
  std::size_t best = 0;
  double best_likelihood = -std::numeric_limits<double>::infinity();
  for (std::size_t spread = 0; spread < kPowerSpreads.size(); ++spread) {
    double likelihood = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (records[i].predicted) continue;
      const Problem alone(records, i, i + 1, varies, scale, highest_mhz, pauses);
      likelihood += alone.Solve(spread, CurvePrior{}, false).log_likelihood;
    }
    if (likelihood > best_likelihood) {
      best_likelihood = likelihood;
      best = spread;
    }
  }
  return best;
}

CurvePrior LikeliestPrior(const Problem& problem, std::size_t spread) {
  CurvePrior best;
  double best_likelihood = -std::numeric_limits<double>::infinity();
  for (const double bend : kBends) {
    for (const double jump : kJumps) {
      CurvePrior prior;
      prior.bend = bend;
      prior.jump = jump;
      const double likelihood = problem.Solve(spread, prior, false).log_likelihood;
      if (likelihood > best_likelihood) {
        best_likelihood = likelihood;
        best = prior;
      }
    }
  }
  return best;
}

PauseBelief FirstBelief(double scale) {
  PauseBelief belief;
  for (std::size_t i = 0; i < 2; ++i) {
    belief.mean[i] = kPauseMean * scale;
    belief.precision.at(i, i) = 1 / std::pow(kPauseSpread * scale, 2);
  }
  return belief;
}

PauseBelief BeliefOf(const Problem::Solution& solution) {
  SymmetricMatrix covariance(2);
  PauseBelief belief;
  for (std::size_t i = 0; i < 2; ++i) {
    belief.mean[i] = solution.watts[i];
    for (std::size_t j = 0; j < 2; ++j) covariance.at(i, j) = solution.covariance.at(i, j);
  }
  belief.precision = Cholesky(covariance).Inverse();
  return belief;
}

}  // namespace

FittedWatts FitWatts(const std::vector<ClockRecord>& records, const std::vector<bool>& varies,
                     bool thorough) {
  FittedWatts fitted;
  fitted.clocks.resize(records.size());
  double joules = 0;
  double seconds = 0;
  int highest_mhz = 1;
  for (const ClockRecord& record : records) {
    joules += record.stretches.joules;
    seconds += record.stretches.seconds;
    highest_mhz = std::max(highest_mhz, record.mhz);
  }
  if (!(joules > 0) || !(seconds > 0)) return fitted;
  const double scale = joules / seconds;
  PauseBelief pauses = FirstBelief(scale);
  const std::size_t spread = LikeliestSpread(records, varies, scale, highest_mhz, pauses);
  fitted.spread = kPowerSpreads[spread];
  const std::size_t chunk =
      std::max<std::size_t>(1, kMostUnknowns / std::max<std::size_t>(1, varies.size()));
  for (auto& at_clock : fitted.clocks) {
    at_clock.power.resize(varies.size());
    at_clock.work.resize(varies.size());
  }
  for (std::size_t begin = 0; begin < records.size(); begin += chunk) {
    const std::size_t end = std::min(records.size(), begin + chunk);
    const Problem problem(records, begin, end, varies, scale, highest_mhz, pauses);
    const CurvePrior prior = thorough ? LikeliestPrior(problem, spread) : CurvePrior{};
    const Problem::Solution solution = problem.Solve(spread, prior, true);
    for (const WattCurve& curve : problem.curves()) {
      const std::size_t kind = (curve.column - kFirstKindColumn) / 2;
      for (std::size_t i = 0; i < curve.records.size(); ++i) {
        const std::size_t unknown = curve.first_unknown + i;
        FittedWatts::AtClock& at_clock = fitted.clocks[curve.records[i]];
        auto& values = curve.column == PowerColumn(kind) ? at_clock.power : at_clock.work;
        values[kind] = {solution.watts[unknown], solution.covariance.at(unknown, unknown)};
      }
    }
    fitted.waiting = {solution.watts[kWaitingColumn],
                      solution.covariance.at(kWaitingColumn, kWaitingColumn)};
    pauses = BeliefOf(solution);
  }
  return fitted;
}

}  // namespace perseus::measure
