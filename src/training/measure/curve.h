// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_CURVE_H_
#define PERSEUS_MEASURE_CURVE_H_

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "measure/kind.h"

namespace perseus::measure {

// A symmetric matrix of doubles, row by row; only its lower half is read.
class SymmetricMatrix {
 public:
  explicit SymmetricMatrix(std::size_t size = 0) : size_(size), values_(size * size) {}

  std::size_t size() const { return size_; }
  double& at(std::size_t row, std::size_t column) { return values_[row * size_ + column]; }
  double at(std::size_t row, std::size_t column) const { return values_[row * size_ + column]; }
  // Adds to both halves.
  void Add(std::size_t row, std::size_t column, double value);

 private:
  std::size_t size_;
  std::vector<double> values_;
};

// The Cholesky factor L of a positive definite matrix L L^T. If rounding makes a pivot 0 or less,
// it is replaced by 1e-14 of its diagonal. The solution is then huge in that direction, but so is
// its variance.
class Cholesky {
 public:
  explicit Cholesky(const SymmetricMatrix& matrix);

  std::vector<double> Solve(std::vector<double> right) const;
  SymmetricMatrix Inverse() const;
  double LogDeterminant() const;  // Of the matrix, not of the factor.

 private:
  std::size_t size_;
  // Of each row: its first column that is not 0. Those before it are skipped, so that curves that
  // say nothing of each other cost what each of them costs.
  std::vector<std::size_t> first_;
  std::vector<double> lower_;
};

// Vectors, at most `most` of them, whose outer products add up to nearly a positive semidefinite
// matrix: what remains has a small diagonal. A pivoted Cholesky factor.
std::vector<std::vector<double>> LargestFactors(const SymmetricMatrix& matrix, std::size_t most);

// The same for a covariance matrix whose elements further than `band` from the diagonal are 0.
// Divides vectors by the factor in place, so that errors with this covariance become independent
// with variance 1.
class BandedWhitener {
 public:
  // `at(i, j)` for i >= j, i - j <= band.
  BandedWhitener(std::size_t size, std::size_t band);
  double& at(std::size_t row, std::size_t column) {
    return values_[row * (band_ + 1) + (row - column)];
  }
  void Factor();
  void Whiten(std::vector<double>* column) const;
  double LogDeterminant() const;

 private:
  double value(std::size_t row, std::size_t column) const {
    return values_[row * (band_ + 1) + (row - column)];
  }

  std::size_t size_;
  std::size_t band_;
  std::vector<double> values_;
};

// Smooths measurements over neighbouring clocks. Time and power change smoothly with the clock,
// except for effects of a card at single clocks. What was measured at a clock in one go (a visit)
// also has an error of its own: the card drifts, warms up, or is disturbed for some seconds. Only
// clocks that are visited twice tell these two apart. How smooth curves are and how much cards
// drift is not known: values and errors are the average over many priors, each weighted by how
// likely it makes the measurements.

// The prior of a curve: a straight line with wide uncertainty, plus a smooth deviation (an
// integrated Wiener process, the prior of cubic smoothing splines), plus an independent jump at
// each clock, plus an error of each visit. All values are relative to the size of the curve.
struct CurvePrior {
  double offset = 0.5;  // Standard deviation of the line at the highest clock.
  double slope = 2;     // Standard deviation of the line's slope over the whole clock range.
  double bend = 2;      // Of the smooth deviation: change of slope over the whole clock range.
  double jump = 0.006;
  bool jumps_are_shared = false;  // Whether all curves have the same jump at a clock.
  double drift = 0;               // Standard deviation of the error of a visit.
  double memory = 0;       // Visits after which this error is another one; 0: each has its own.
  bool is_shared = false;  // Whether all curves have the same error in a visit.
};

// The priors that are tried.
inline constexpr std::array<double, 4> kBends = {0.12, 0.5, 2, 8};
inline constexpr std::array<double, 5> kJumps = {0.0005, 0.002, 0.006, 0.02, 0.05};
inline constexpr std::array<double, 4> kDrifts = {0.002, 0.004, 0.008, 0.016};
inline constexpr std::array<double, 4> kMemories = {0, 3, 12, 48};

// A value of a curve.
struct CurvePoint {
  std::size_t curve = 0;
  double below = 0;    // By which share the clock is below the highest one, 0 to 1.
  bool apart = false;  // Measured under throttling: it gives no information about other clocks.
  bool default_clocks = false;  // Measured at default clocks: the same, and a curve of its own.
  double visit = 0;             // Number of the visit, in the order of time.
};

// Covariance of what is measured at the points, without errors of single computations.
SymmetricMatrix CurveCovariance(const std::vector<CurvePoint>& points, const CurvePrior& prior);
// Covariance of the curves' values at two points, without the errors of visits.
double CovarianceOfCurves(const CurvePoint& a, const CurvePoint& b, const CurvePrior& prior);

// Values with the covariance of their errors.
struct CurveValues {
  std::vector<double> values;
  SymmetricMatrix covariance;
};

// Posteriors under several priors, weighted by their likelihoods.
class Averaged {
 public:
  void Add(double log_likelihood, CurveValues posterior);
  CurveValues Take();

 private:
  std::vector<double> log_likelihoods_;
  std::vector<CurveValues> posteriors_;
};

// All priors that are tried: with one of the bends, and without drift unless `drifts`. The first
// number is the logarithm of the prior's own weight.
std::vector<std::pair<double, CurvePrior>> PriorsOf(CurvePrior base, double bend, bool drifts);
// Priors that are less likely than the best by this factor (in logarithms) do not count.
inline constexpr double kNegligible = 7;

struct SmoothedCurves {
  CurveValues at;   // At the targets.
  double jump = 0;  // CurvePrior::jump of the most likely prior.
};

// Smooths values measured at `points` with independent errors of these variances.
SmoothedCurves SmoothCurves(const std::vector<CurvePoint>& points,
                            const std::vector<double>& values, const std::vector<double>& variances,
                            const std::vector<CurvePoint>& targets, bool drifts);

// A GPU that waits spins in a kernel at the clock that is set. With x = (clock / highest clock)^2
// it draws
//
//   watts at the highest clock + slope (x - 1) + bend 4 x (1 - x).
//
// The bend is 0 for a + b clock^2. Its prior is narrow: wide enough for powers between the clock
// and its cube, so waits that are too short to be seen at single clocks still give a + b clock^2.

// The weight of each of its unknowns at a clock. `highest_mhz`: the highest that the card keeps;
// above, where it is throttled, it is taken to wait at that.
constexpr std::size_t kWaitingUnknowns = 3;
std::array<double, kWaitingUnknowns> WaitingShape(int mhz, int highest_mhz);

// Standard deviations of slope and bend before anything is measured, relative to the mean power of
// the card.
inline constexpr std::array<double, kWaitingUnknowns - 1> kWaitingSpreads = {0.25, 0.05};

struct WaitingCurve {
  std::array<double, kWaitingUnknowns> watts = {};
  SymmetricMatrix covariance{kWaitingUnknowns};
  int highest_mhz = 1;

  BlockingPower At(int mhz) const;
  // Whether the measurements show that waiting draws less, or more, at the low clock. Else it is
  // one number.
  bool DependsOnClock(int low_mhz) const;

 private:
  double VarianceOf(const std::array<double, kWaitingUnknowns>& weights) const;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_CURVE_H_
