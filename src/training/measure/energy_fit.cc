// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/energy_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace perseus::measure {
namespace {

constexpr std::size_t kMostPowers = 200;  // Of one fit.
// Of a pause's power before it is measured, relative to the mean of all.
constexpr double kPauseMean = 0.4;
constexpr double kPauseSpread = 0.4;

// Unknowns of a fit beyond those that a record's columns have: slope and bend of waiting by clock.
constexpr std::size_t kFirstSlope = kFirstKindColumn;

// A Gaussian belief about waiting and rest, and about slope and bend of waiting where they are
// fitted.
struct PauseBelief {
  explicit PauseBelief(bool by_clock)
      : mean(kFirstKindColumn + (by_clock ? kWaitingSpreads.size() : 0)), precision(mean.size()) {}
  bool by_clock() const { return mean.size() > kFirstKindColumn; }

  std::vector<double> mean;
  SymmetricMatrix precision;
};

// The highest clock that the card kept; `highest_mhz` if it kept none.
int HighestFollowed(const std::vector<ClockRecord>& records, int highest_mhz) {
  int follows_mhz = 0;
  for (const ClockRecord& record : records) {
    if (!record.predicted && !record.throttled) follows_mhz = std::max(follows_mhz, record.mhz);
  }
  return follows_mhz > 0 ? follows_mhz : highest_mhz;
}

// Records [begin, end), in one fit. The unknowns are the pauses, then the power of each kind in
// each record, then the work columns of those whose work varies.
class Problem {
 public:
  Problem(const std::vector<ClockRecord>& records, std::size_t begin, std::size_t end,
          const std::vector<bool>& varies, double scale, int highest_mhz, const PauseBelief& pauses)
      : records_(records),
        scale_(scale),
        follows_mhz_(HighestFollowed(records, highest_mhz)),
        pauses_(pauses),
        begin_(begin),
        end_(end) {
    for (const bool is_work : {false, true}) {
      Block& block = is_work ? works_ : powers_;
      block.first = is_work ? powers_.first + powers_.points.size() : pauses.mean.size();
      for (std::size_t kind = 0; kind < varies.size(); ++kind) {
        if (is_work && !varies[kind]) continue;
        for (std::size_t i = begin; i < end; ++i) {
          if (records[i].predicted || !records[i].Has(kind)) continue;
          block.points.push_back(PointOf(records[i], kind, highest_mhz));
          block.records.push_back(i);
        }
      }
    }
    unknowns_ = works_.first + works_.points.size();
  }

  struct Solution {
    double log_likelihood = 0;
    std::vector<double> watts;
    SymmetricMatrix covariance;  // Empty where it was not asked for.
  };
  Solution Solve(std::size_t spread, const CurvePrior& prior, bool with_covariance) const {
    SymmetricMatrix precision(unknowns_);
    std::vector<double> mean(unknowns_);
    double prior_log_determinant = 0;  // Of the prior's covariance.
    for (std::size_t i = 0; i < pauses_.mean.size(); ++i) {
      mean[i] = pauses_.mean[i];
      for (std::size_t j = 0; j < pauses_.mean.size(); ++j) {
        precision.at(i, j) = pauses_.precision.at(i, j);
      }
    }
    CurvePrior of_work = prior;
    of_work.drift = 0;
    for (const Block* block : {&powers_, &works_}) {
      const bool is_work = block == &works_;
      const Cholesky factor(CurveCovariance(block->points, is_work ? of_work : prior));
      const SymmetricMatrix inverse = factor.Inverse();
      const std::size_t count = block->points.size();
      for (std::size_t i = 0; i < count; ++i) {
        mean[block->first + i] = is_work ? 0 : scale_;
        for (std::size_t j = 0; j < count; ++j) {
          precision.at(block->first + i, block->first + j) = inverse.at(i, j) / (scale_ * scale_);
        }
      }
      prior_log_determinant +=
          factor.LogDeterminant() + 2 * static_cast<double>(count) * std::log(scale_);
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
        const double own = place.weight * equations.right[place.column];
        double pulled = own;
        for (const Place& other : places) {
          const double value =
              place.weight * other.weight * equations.normal.at(place.column, other.column);
          precision.at(place.unknown, other.unknown) += value;
          pulled -= value * mean[other.unknown];
        }
        right[place.unknown] += pulled;
        squares -= mean[place.unknown] * (own + pulled);
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

  // The power at the targets, in watts: what the visits have in common.
  CurveValues PowerAt(const std::vector<Target>& targets, const CurvePrior& prior,
                      const Solution& solution) const {
    const std::size_t count = powers_.points.size();
    const Cholesky factor(CurveCovariance(powers_.points, prior));
    CurveValues at = {.values = {}, .covariance = SymmetricMatrix(targets.size())};
    std::vector<std::vector<double>> shared;
    std::vector<std::vector<double>> gain;  // Of a target, by the power of each unknown.
    std::vector<std::vector<double>> spread;
    for (const Target& target : targets) {
      std::vector<double>& with = shared.emplace_back();
      for (const CurvePoint& point : powers_.points) {
        with.push_back(CovarianceOfCurves(target.point, point, prior));
      }
      const std::vector<double>& row = gain.emplace_back(factor.Solve(with));
      std::vector<double>& spread_row = spread.emplace_back(count);
      double value = scale_;
      for (std::size_t i = 0; i < count; ++i) {
        value += row[i] * (solution.watts[powers_.first + i] - scale_);
      }
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < count; ++j) {
          spread_row[j] += row[i] * solution.covariance.at(powers_.first + i, powers_.first + j);
        }
      }
      at.values.push_back(value);
      const std::size_t here = at.values.size() - 1;
      for (std::size_t other = 0; other <= here; ++other) {
        double covariance =
            scale_ * scale_ * CovarianceOfCurves(target.point, targets[other].point, prior);
        for (std::size_t i = 0; i < count; ++i) {
          covariance +=
              spread_row[i] * gain[other][i] - scale_ * scale_ * row[i] * shared[other][i];
        }
        at.covariance.at(here, other) = at.covariance.at(other, here) = covariance;
      }
    }
    return at;
  }

  void TakeWork(const Solution& solution, std::vector<std::vector<double>>* work) const {
    for (std::size_t i = 0; i < works_.points.size(); ++i) {
      (*work)[works_.records[i]][works_.points[i].curve] = solution.watts[works_.first + i];
    }
  }

 private:
  struct Block {
    std::vector<CurvePoint> points;
    std::vector<std::size_t> records;
    std::size_t first = 0;  // Unknown.
  };
  struct Place {
    std::size_t column = 0;   // In the equations of a record,
    std::size_t unknown = 0;  // and among those of the fit,
    double weight = 1;        // of which the column's watts are this many.
  };

  std::vector<Place> PlacesOf(std::size_t record) const {
    std::vector<Place> places = {{.column = kWaitingColumn, .unknown = kWaitingColumn},
                                 {.column = kRestColumn, .unknown = kRestColumn}};
    if (pauses_.by_clock()) {
      const int mhz = records_[record].mhz;
      const auto shape = WaitingShape(mhz == kUnlockedMhz ? follows_mhz_ : mhz, follows_mhz_);
      for (std::size_t i = 0; i < kWaitingSpreads.size(); ++i) {
        places.push_back(
            {.column = kWaitingColumn, .unknown = kFirstSlope + i, .weight = shape[i + 1]});
      }
    }
    const std::size_t columns = records_[record].stretches.by_spread[0].right.size();
    for (const Block* block : {&powers_, &works_}) {
      for (std::size_t i = 0; i < block->points.size(); ++i) {
        const std::size_t kind = block->points[i].curve;
        const std::size_t column = block == &works_ ? WorkColumn(kind) : PowerColumn(kind);
        if (block->records[i] != record || column >= columns) continue;
        places.push_back({.column = column, .unknown = block->first + i});
      }
    }
    return places;
  }

  const std::vector<ClockRecord>& records_;
  double scale_;
  int follows_mhz_;
  const PauseBelief& pauses_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t unknowns_ = 0;
  Block powers_;
  Block works_;
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

// Priors with what their own weight and the stretches say of them; the likeliest first.
std::vector<std::pair<double, CurvePrior>> LikelyPriors(const Problem& problem, std::size_t spread,
                                                        const PriorsTried& tried) {
  if (!tried.several) return {{0, CurvePrior{}}};
  const auto likelihood_of = [&](const CurvePrior& prior) {
    return problem.Solve(spread, prior, false).log_likelihood;
  };
  std::pair<double, double> bend = {-std::numeric_limits<double>::infinity(), kBends.front()};
  for (const double each : kBends) {
    for (const auto& [weight, prior] : PriorsOf({}, each, false)) {
      bend = std::max(bend, {likelihood_of(prior), each});
    }
  }
  std::vector<std::pair<double, CurvePrior>> priors = PriorsOf({}, bend.second, tried.drifts);
  for (auto& [likelihood, prior] : priors) likelihood += likelihood_of(prior);
  std::stable_sort(priors.begin(), priors.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const double least = priors.front().first - kNegligible;
  std::erase_if(priors, [&](const auto& each) { return each.first < least; });
  return priors;
}

PauseBelief FirstBelief(double scale, bool by_clock) {
  PauseBelief belief(by_clock);
  for (std::size_t i = 0; i < belief.mean.size(); ++i) {
    const bool is_slope = i >= kFirstSlope;
    belief.mean[i] = is_slope ? 0 : kPauseMean * scale;
    const double spread = is_slope ? kWaitingSpreads[i - kFirstSlope] : kPauseSpread;
    belief.precision.at(i, i) = 1 / std::pow(spread * scale, 2);
  }
  return belief;
}

PauseBelief BeliefOf(const Problem::Solution& solution, bool by_clock) {
  PauseBelief belief(by_clock);
  SymmetricMatrix covariance(belief.mean.size());
  for (std::size_t i = 0; i < belief.mean.size(); ++i) {
    belief.mean[i] = solution.watts[i];
    for (std::size_t j = 0; j < belief.mean.size(); ++j) {
      covariance.at(i, j) = solution.covariance.at(i, j);
    }
  }
  belief.precision = Cholesky(covariance).Inverse();
  return belief;
}

// Precondition: slope and bend were fitted.
WaitingCurve CurveOf(const Problem::Solution& solution, int highest_mhz) {
  constexpr std::array<std::size_t, kWaitingUnknowns> kUnknowns = {kWaitingColumn, kFirstSlope,
                                                                   kFirstSlope + 1};
  WaitingCurve curve;
  curve.highest_mhz = highest_mhz;
  for (std::size_t i = 0; i < kWaitingUnknowns; ++i) {
    curve.watts[i] = solution.watts[kUnknowns[i]];
    for (std::size_t j = 0; j < kWaitingUnknowns; ++j) {
      curve.covariance.at(i, j) = solution.covariance.at(kUnknowns[i], kUnknowns[j]);
    }
  }
  return curve;
}

}  // namespace

CurvePoint PointOf(const ClockRecord& record, std::size_t kind, int highest_mhz) {
  const bool unlocked = record.mhz == kUnlockedMhz;
  return {.curve = kind,
          .below = unlocked ? 0 : 1 - static_cast<double>(record.mhz) / highest_mhz,
          .apart = record.throttled,
          .unlocked = unlocked,
          .visit = record.visit};
}

FittedWatts FitWatts(const std::vector<ClockRecord>& records, const std::vector<bool>& varies,
                     const std::vector<Target>& targets, const PriorsTried& tried) {
  FittedWatts fitted;
  fitted.power = {.values = std::vector<double>(targets.size()),
                  .covariance = SymmetricMatrix(targets.size())};
  fitted.work.assign(records.size(), std::vector<double>(varies.size()));
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
  PauseBelief pauses = FirstBelief(scale, tried.waiting_by_clock);
  const std::size_t spread = LikeliestSpread(records, varies, scale, highest_mhz, pauses);
  fitted.spread = kPowerSpreads[spread];
  const std::size_t chunk =
      std::max<std::size_t>(1, kMostPowers / std::max<std::size_t>(1, varies.size()));
  for (std::size_t begin = 0; begin < records.size(); begin += chunk) {
    const std::size_t end = std::min(records.size(), begin + chunk);
    std::vector<std::size_t> places;  // Of the targets that these records are about.
    std::vector<Target> here;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const bool is_here =
          std::any_of(records.begin() + static_cast<std::ptrdiff_t>(begin),
                      records.begin() + static_cast<std::ptrdiff_t>(end),
                      [&](const ClockRecord& record) { return record.mhz == targets[i].mhz; });
      if (!is_here) continue;
      places.push_back(i);
      here.push_back(targets[i]);
    }
    const Problem problem(records, begin, end, varies, scale, highest_mhz, pauses);
    Averaged averaged;
    std::optional<Problem::Solution> likeliest;
    for (const auto& [likelihood, prior] : LikelyPriors(problem, spread, tried)) {
      Problem::Solution solution = problem.Solve(spread, prior, true);
      averaged.Add(likelihood, problem.PowerAt(here, prior, solution));
      if (!likeliest) likeliest = std::move(solution);
    }
    const CurveValues power = averaged.Take();
    for (std::size_t i = 0; i < places.size(); ++i) {
      fitted.power.values[places[i]] = power.values[i];
      for (std::size_t j = 0; j < places.size(); ++j) {
        fitted.power.covariance.at(places[i], places[j]) = power.covariance.at(i, j);
      }
    }
    problem.TakeWork(*likeliest, &fitted.work);
    fitted.waiting = {likeliest->watts[kWaitingColumn],
                      std::sqrt(likeliest->covariance.at(kWaitingColumn, kWaitingColumn))};
    if (tried.waiting_by_clock) {
      fitted.waiting_curve = CurveOf(*likeliest, HighestFollowed(records, highest_mhz));
    }
    pauses = BeliefOf(*likeliest, tried.waiting_by_clock);
  }
  return fitted;
}

}  // namespace perseus::measure
