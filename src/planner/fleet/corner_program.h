// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_CORNER_PROGRAM_H_
#define PERSEUS_FLEET_CORNER_PROGRAM_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "fleet/power_curve.h"

namespace perseus::fleet {

// A linear program in which each unit (a job, or a job in a period) is somewhere on its curve,
// beside a few other variables; it minimises cost. A curve may have thousands of segments: the
// program begins with a few chords, and the prices of the rows tell where one must be split, until
// none must. So its answer is that of all segments. Solved by COIN-OR CLP; deterministic.
//
// A unit's watts may be above its curve where that lowers the cost, but not above its most.
class CornerProgram {
 public:
  // What a unit adds to a row.
  struct Term {
    std::size_t row = 0;
    double per_x = 0;
    double per_watt = 0;
  };

  CornerProgram();
  ~CornerProgram();
  CornerProgram(const CornerProgram&) = delete;
  CornerProgram& operator=(const CornerProgram&) = delete;

  // All rows, units and variables are added before the first Solve(). Values should be about 1.
  std::size_t AddRow(double lower, double upper);
  // The curve must outlive the program.
  std::size_t AddUnit(const PowerCurve* curve, double cost_per_x, double cost_per_watt,
                      std::vector<Term> terms);
  std::size_t AddVariable(double lower, double upper, double cost,
                          std::vector<std::pair<std::size_t, double>> terms);
  // What lacks in a row that could not be kept otherwise. It is used only where it must be.
  std::size_t AddShortfall(std::size_t row);

  void SetRowBounds(std::size_t row, double lower, double upper);

  // True: optimal. False: infeasible; shortfalls, where there are some, have their least sum.
  // Errors: kInternal.
  Result<bool> Solve();

  double Throughput(std::size_t unit) const;
  double Watts(std::size_t unit) const;
  double Value(std::size_t variable) const;
  // The change of cost for one more of a row's bound.
  double Dual(std::size_t row) const;

 private:
  struct Parts;

  // Where a unit is on an axis of its curve.
  double Along(std::size_t unit, std::vector<double> PowerCurve::*axis) const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_CORNER_PROGRAM_H_
