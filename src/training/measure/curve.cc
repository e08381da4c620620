// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace perseus::measure {

namespace {

constexpr double kLeastPivot = 1e-14;

double RootOfPivot(double rest, double whole) {
  return std::sqrt(std::max({rest, kLeastPivot * whole, 1e-300}));
}

}  // namespace

void SymmetricMatrix::Add(std::size_t row, std::size_t column, double value) {
  at(row, column) += value;
  if (row != column) at(column, row) += value;
}

Cholesky::Cholesky(const SymmetricMatrix& matrix)
    : size_(matrix.size()), first_(matrix.size()), lower_(matrix.size() * matrix.size()) {
  for (std::size_t i = 0; i < size_; ++i) {
    double* const row = &lower_[i * size_];
    while (first_[i] < i && matrix.at(i, first_[i]) == 0) ++first_[i];
    for (std::size_t j = first_[i]; j <= i; ++j) {
      const double* const other = &lower_[j * size_];
      double rest = matrix.at(i, j);
      for (std::size_t k = std::max(first_[i], first_[j]); k < j; ++k) rest -= row[k] * other[k];
      row[j] = i == j ? RootOfPivot(rest, matrix.at(i, i)) : rest / other[j];
    }
  }
}

std::vector<double> Cholesky::Solve(std::vector<double> right) const {
  for (std::size_t i = 0; i < size_; ++i) {
    for (std::size_t k = first_[i]; k < i; ++k) right[i] -= lower_[i * size_ + k] * right[k];
    right[i] /= lower_[i * size_ + i];
  }
  for (std::size_t i = size_; i-- > 0;) {
    right[i] /= lower_[i * size_ + i];
    for (std::size_t k = first_[i]; k < i; ++k) right[k] -= lower_[i * size_ + k] * right[i];
  }
  return right;
}

SymmetricMatrix Cholesky::Inverse() const {
  // L^-1, column by column, then L^-T L^-1.
  std::vector<double> inverse(size_ * size_);
  for (std::size_t j = 0; j < size_; ++j) {
    inverse[j * size_ + j] = 1 / lower_[j * size_ + j];
    for (std::size_t i = j + 1; i < size_; ++i) {
      double sum = 0;
      for (std::size_t k = j; k < i; ++k) sum -= lower_[i * size_ + k] * inverse[k * size_ + j];
      inverse[i * size_ + j] = sum / lower_[i * size_ + i];
    }
  }
  SymmetricMatrix whole(size_);
  for (std::size_t k = 0; k < size_; ++k) {
    const double* const row = &inverse[k * size_];
    for (std::size_t i = 0; i <= k; ++i) {
      for (std::size_t j = 0; j <= i; ++j) whole.at(i, j) += row[i] * row[j];
    }
  }
  for (std::size_t i = 0; i < size_; ++i) {
    for (std::size_t j = 0; j < i; ++j) whole.at(j, i) = whole.at(i, j);
  }
  return whole;
}

double Cholesky::LogDeterminant() const {
  double sum = 0;
  for (std::size_t i = 0; i < size_; ++i) sum += std::log(lower_[i * size_ + i]);
  return 2 * sum;
}

std::vector<std::vector<double>> LargestFactors(const SymmetricMatrix& matrix, std::size_t most) {
  std::vector<double> rest;
  for (std::size_t i = 0; i < matrix.size(); ++i) rest.push_back(matrix.at(i, i));
  std::vector<std::vector<double>> factors;
  while (factors.size() < std::min(most, matrix.size())) {
    const auto pivot =
        static_cast<std::size_t>(std::max_element(rest.begin(), rest.end()) - rest.begin());
    if (!(rest[pivot] > 0)) break;
    const double root = std::sqrt(rest[pivot]);
    std::vector<double> factor;
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      double value = i < pivot ? matrix.at(pivot, i) : matrix.at(i, pivot);
      for (const std::vector<double>& known : factors) value -= known[i] * known[pivot];
      // No more than what is left: rounding.
      factor.push_back(std::copysign(
          std::min(std::abs(value / root), std::sqrt(std::max(0.0, rest[i]))), value));
    }
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      rest[i] = std::max(0.0, rest[i] - factor[i] * factor[i]);
    }
    rest[pivot] = 0;
    factors.push_back(std::move(factor));
  }
  return factors;
}

BandedWhitener::BandedWhitener(std::size_t size, std::size_t band)
    : size_(size), band_(band), values_(size * (band + 1)) {}

void BandedWhitener::Factor() {
  for (std::size_t i = 0; i < size_; ++i) {
    const std::size_t first = i > band_ ? i - band_ : 0;
    const double whole = value(i, i);
    for (std::size_t j = first; j <= i; ++j) {
      const std::size_t begin = std::max(first, j > band_ ? j - band_ : 0);
      double rest = value(i, j);
      for (std::size_t k = begin; k < j; ++k) rest -= value(i, k) * value(j, k);
      at(i, j) = i == j ? RootOfPivot(rest, whole) : rest / value(j, j);
    }
  }
}

void BandedWhitener::Whiten(std::vector<double>* column) const {
  for (std::size_t i = 0; i < size_; ++i) {
    double rest = (*column)[i];
    for (std::size_t k = i > band_ ? i - band_ : 0; k < i; ++k) rest -= value(i, k) * (*column)[k];
    (*column)[i] = rest / value(i, i);
  }
}

double BandedWhitener::LogDeterminant() const {
  double sum = 0;
  for (std::size_t i = 0; i < size_; ++i) sum += std::log(value(i, i));
  return 2 * sum;
}

namespace {

constexpr double kApart = 0.3;
constexpr double kFreeHighest = 0.01;  // As a jump of the highest clock alone.
// How likely it is that a card drifts, over that it does not, before anything is measured.
constexpr double kDriftWeight = 0.25;

// Of the errors that two visits have.
double CovarianceOfVisits(const CurvePoint& a, const CurvePoint& b, const CurvePrior& prior) {
  if (prior.drift == 0 || (a.curve != b.curve && !prior.is_shared)) return 0;
  const double apart = std::abs(a.visit - b.visit);
  if (apart == 0) return prior.drift * prior.drift;
  return prior.memory > 0 ? prior.drift * prior.drift * std::exp(-apart / prior.memory) : 0;
}

// [target][point]
std::vector<std::vector<double>> CovarianceWith(const std::vector<CurvePoint>& targets,
                                                const std::vector<CurvePoint>& points,
                                                const CurvePrior& prior) {
  std::vector<std::vector<double>> covariance;
  for (const CurvePoint& target : targets) {
    std::vector<double>& row = covariance.emplace_back();
    for (const CurvePoint& point : points) row.push_back(CovarianceOfCurves(target, point, prior));
  }
  return covariance;
}

double LogLikelihood(const Cholesky& factor, const std::vector<double>& deviation) {
  const std::vector<double> weights = factor.Solve(deviation);
  return -0.5 * (factor.LogDeterminant() +
                 std::inner_product(deviation.begin(), deviation.end(), weights.begin(), 0.0));
}

}  // namespace

double CovarianceOfCurves(const CurvePoint& a, const CurvePoint& b, const CurvePrior& prior) {
  if (a.default_clocks != b.default_clocks) return 0;
  if (a.curve != b.curve) {
    return prior.jumps_are_shared && a.below == b.below ? prior.jump * prior.jump : 0;
  }
  const double near = std::min(a.below, b.below);
  const double far = std::max(a.below, b.below);
  const double smooth = near * near * (3 * far - near) / 6;
  double value = prior.offset * prior.offset + prior.slope * prior.slope * near * far +
                 prior.bend * prior.bend * smooth;
  if (near == far) {
    // Smoothing pulls the end of a bent curve to one side, and savings count from this end.
    if (near == 0) value += kFreeHighest * kFreeHighest;
    value += prior.jump * prior.jump + (a.apart && b.apart ? kApart * kApart : 0);
  }
  return value;
}

SymmetricMatrix CurveCovariance(const std::vector<CurvePoint>& points, const CurvePrior& prior) {
  SymmetricMatrix covariance(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      covariance.at(i, j) = covariance.at(j, i) = CovarianceOfCurves(points[i], points[j], prior) +
                                                  CovarianceOfVisits(points[i], points[j], prior);
    }
  }
  return covariance;
}

std::vector<std::pair<double, CurvePrior>> PriorsOf(CurvePrior base, double bend, bool drifts) {
  std::vector<CurvePrior> with_drift;
  base.bend = bend;
  for (const double drift : kDrifts) {
    for (const double memory : kMemories) {
      for (const bool is_shared : {false, true}) {
        CurvePrior& prior = with_drift.emplace_back(base);
        prior.drift = drift;
        prior.memory = memory;
        prior.is_shared = is_shared;
      }
    }
  }
  std::vector<std::pair<double, CurvePrior>> priors;
  for (const double jump : kJumps) {
    for (const bool jumps_are_shared : {false, true}) {
      base.jump = jump;
      base.jumps_are_shared = jumps_are_shared;
      priors.emplace_back(0, base);
      if (!drifts) continue;
      for (CurvePrior prior : with_drift) {
        // A deviation common to all curves at a clock is its jump or its visits' error.
        if (jumps_are_shared && !prior.is_shared) continue;
        prior.jump = jump;
        prior.jumps_are_shared = jumps_are_shared;
        priors.emplace_back(std::log(kDriftWeight / static_cast<double>(with_drift.size())), prior);
      }
    }
  }
  return priors;
}

void Averaged::Add(double log_likelihood, CurveValues posterior) {
  log_likelihoods_.push_back(log_likelihood);
  posteriors_.push_back(std::move(posterior));
}

CurveValues Averaged::Take() {
  const double best = *std::max_element(log_likelihoods_.begin(), log_likelihoods_.end());
  double sum = 0;
  for (double& weight : log_likelihoods_) sum += weight = std::exp(weight - best);
  const std::size_t size = posteriors_.front().values.size();
  CurveValues mean = {.values = std::vector<double>(size), .covariance = SymmetricMatrix(size)};
  for (std::size_t k = 0; k < posteriors_.size(); ++k) {
    for (std::size_t i = 0; i < size; ++i) {
      mean.values[i] += log_likelihoods_[k] / sum * posteriors_[k].values[i];
    }
  }
  for (std::size_t k = 0; k < posteriors_.size(); ++k) {
    const CurveValues& one = posteriors_[k];
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) {
        mean.covariance.at(i, j) +=
            log_likelihoods_[k] / sum *
            (one.covariance.at(i, j) +
             (one.values[i] - mean.values[i]) * (one.values[j] - mean.values[j]));
      }
    }
  }
  return mean;
}

SmoothedCurves SmoothCurves(const std::vector<CurvePoint>& points,
                            const std::vector<double>& values, const std::vector<double>& variances,
                            const std::vector<CurvePoint>& targets, bool drifts) {
  const std::size_t count = points.size();
  std::vector<double> means;  // [curve]
  std::vector<double> counts;
  // [curve]: from its first point to behind its last one. Targets are of curves that have some.
  std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> points_of;
  for (std::size_t i = 0; i < count; ++i) {
    points_of.resize(std::max(points_of.size(), points[i].curve + 1));
    auto& [begin, end] = points_of[points[i].curve];
    const auto place = static_cast<std::ptrdiff_t>(i);
    if (end == 0) begin = place;
    end = place + 1;
    means.resize(std::max(means.size(), points[i].curve + 1));
    counts.resize(means.size());
    means[points[i].curve] += values[i];
    counts[points[i].curve] += 1;
  }
  for (std::size_t curve = 0; curve < means.size(); ++curve) {
    means[curve] /= std::max(1.0, counts[curve]);
  }
  std::vector<double> deviation;
  for (std::size_t i = 0; i < count; ++i) deviation.push_back(values[i] - means[points[i].curve]);
  const auto factor_of = [&](const CurvePrior& prior) {
    SymmetricMatrix whole = CurveCovariance(points, prior);
    for (std::size_t i = 0; i < count; ++i) whole.at(i, i) += variances[i];
    return Cholesky(whole);
  };
  const CurvePrior base = {.offset = 1, .slope = 3};
  std::pair<double, double> bend = {-std::numeric_limits<double>::infinity(), kBends.front()};
  for (const double tried : kBends) {
    for (const auto& [weight, prior] : PriorsOf(base, tried, false)) {
      bend = std::max(bend, {LogLikelihood(factor_of(prior), deviation), tried});
    }
  }
  SmoothedCurves smooth;
  std::vector<std::pair<double, CurvePrior>> priors = PriorsOf(base, bend.second, drifts);
  double best = -std::numeric_limits<double>::infinity();
  for (auto& [likelihood, prior] : priors) {
    likelihood += LogLikelihood(factor_of(prior), deviation);
    if (likelihood > best) smooth.jump = prior.jump;
    best = std::max(best, likelihood);
  }
  Averaged averaged;
  for (const auto& [likelihood, prior] : priors) {
    if (likelihood < best - kNegligible) continue;
    const Cholesky factor = factor_of(prior);
    const std::vector<double> weights = factor.Solve(deviation);
    const auto shared = CovarianceWith(targets, points, prior);
    CurveValues posterior = {.values = {}, .covariance = SymmetricMatrix(targets.size())};
    for (std::size_t i = 0; i < targets.size(); ++i) {
      posterior.values.push_back(
          means[targets[i].curve] +
          std::inner_product(shared[i].begin(), shared[i].end(), weights.begin(), 0.0));
      const std::vector<double> solved = factor.Solve(shared[i]);
      for (std::size_t j = 0; j <= i; ++j) {
        const auto [begin, end] = prior.jumps_are_shared
                                      ? std::pair<std::ptrdiff_t, std::ptrdiff_t>(0, count)
                                      : points_of[targets[j].curve];
        posterior.covariance.at(i, j) = posterior.covariance.at(j, i) =
            CovarianceOfCurves(targets[i], targets[j], prior) -
            std::inner_product(solved.begin() + begin, solved.begin() + end,
                               shared[j].begin() + begin, 0.0);
      }
    }
    averaged.Add(likelihood, std::move(posterior));
  }
  smooth.at = averaged.Take();
  return smooth;
}

namespace {

// Standard errors that the difference must exceed. Each rank asks once, and a wrong yes costs more
// than a wrong no: plans would then wait at clocks that save nothing.
constexpr double kSure = 3;

double Dot(const std::array<double, kWaitingUnknowns>& a,
           const std::array<double, kWaitingUnknowns>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

std::array<double, kWaitingUnknowns> WaitingShape(int mhz, int highest_mhz) {
  const double x = std::pow(static_cast<double>(std::min(mhz, highest_mhz)) / highest_mhz, 2);
  return {1, x - 1, 4 * x * (1 - x)};
}

double WaitingCurve::VarianceOf(const std::array<double, kWaitingUnknowns>& weights) const {
  double variance = 0;
  for (std::size_t i = 0; i < kWaitingUnknowns; ++i) {
    for (std::size_t j = 0; j < kWaitingUnknowns; ++j) {
      variance += weights[i] * weights[j] * covariance.at(i, j);
    }
  }
  return std::max(0.0, variance);
}

BlockingPower WaitingCurve::At(int mhz) const {
  const auto shape = WaitingShape(mhz, highest_mhz);
  return {.watts = Dot(shape, watts), .watts_std = std::sqrt(VarianceOf(shape))};
}

bool WaitingCurve::DependsOnClock(int low_mhz) const {
  auto difference = WaitingShape(low_mhz, highest_mhz);
  difference.front() = 0;  // The highest clock's shape is 1, 0, 0.
  return std::abs(Dot(difference, watts)) > kSure * std::sqrt(VarianceOf(difference));
}

}  // namespace perseus::measure
