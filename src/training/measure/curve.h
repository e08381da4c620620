// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_CURVE_H_
#define PERSEUS_MEASURE_CURVE_H_

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "measure/dense.h"

// Smooths measurements over neighbouring clocks. Time and power change smoothly with the clock,
// except for effects of a card at single clocks. What was measured at a clock in one go (a visit)
// also has an error of its own: the card drifts, warms up, or is disturbed for some seconds. Only
// clocks that are visited twice tell these two apart. How smooth curves are and how much cards
// drift is not known: values and errors are the average over many priors, each weighted by how
// likely it makes the measurements.
namespace perseus::measure {

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
  double below = 0;       // By which share the clock is below the highest one, 0 to 1.
  bool apart = false;     // Measured under throttling: it gives no information about other clocks.
  bool unlocked = false;  // Measured with no clock set: the same, and a curve of its own.
  double visit = 0;       // Number of the visit, in the order of time.
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

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_CURVE_H_
