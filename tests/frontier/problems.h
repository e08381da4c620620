// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_FRONTIER_PROBLEMS_H_
#define PERSEUS_TESTS_FRONTIER_PROBLEMS_H_

#include <random>
#include <string>
#include <vector>

#include "perseus/frontier.h"

namespace perseus::frontier_testing {

// The shape of a random problem.
struct ProblemShape {
  int most_activities = 5;
  int most_options = 4;
  int longest = 4;  // Times are whole numbers from 0 to this.
  bool delays = true;
  // Costs that make every slope of every hull a whole number, so that doubles
  // hold all results exactly.
  bool whole_slopes = false;
};

// Times and costs are small whole numbers; options in any order, dominated,
// equal, off the hull or single; parts may be disconnected; activities share
// curves.
TimeCostProblem RandomProblem(std::mt19937& random, const ProblemShape& shape);

// The header's example, solved by hand in frontier_test.cc.
TimeCostProblem HouseProblem();

// `count` activities one after the other, all on curve 0.
TimeCostProblem Chain(std::vector<TimeCost> curve, int count);

// A 1F1B pipeline whose stages differ a little, from whole numbers: the same
// bits everywhere.
TimeCostProblem UnevenPipeline(int stages, int microbatches);

// Options with one field set.
FrontierOptions StopAtTime(double time);
FrontierOptions StopAtSlope(double slope);
FrontierOptions WithQuantum(double slope_quantum);
FrontierOptions WithSchedules(std::vector<double> times);

// The lower convex hull at `time`, from the definition: the least chord of any
// two options, or option no slower. Infinite below the fastest.
double HullCost(const std::vector<TimeCost>& options, double time);

// The end of the earliest-start schedule with the given durations.
double LongestPath(const TimeCostProblem& problem, const std::vector<double>& durations);

// [k]: the least cost for the whole-numbered deadline k, by trying every
// combination of whole durations; infinite where none fits. Lengths being whole,
// the linear program has a whole optimum there and no corner elsewhere.
std::vector<double> EnumerateCosts(const TimeCostProblem& problem);

// The frontier between breakpoints and at them. Precondition: not left of the first.
double CostAt(const TimeCostFrontier& frontier, double time);

// Checks a schedule against every condition of optimality: it is feasible and
// costs what it says; prices conserve flow; and the dual bound they prove is
// that cost. `curves` as QuantisedCurves() gives them. Empty, or what is wrong.
// `tolerance` is relative; 0 demands equality of doubles.
std::string CheckOptimal(const TimeCostProblem& problem,
                         const std::vector<std::vector<TimeCost>>& curves,
                         const TimeCostSchedule& schedule, double tolerance);

// Checks the form of a frontier: times and costs strictly monotonous, slopes
// falling to 0 and equal to the difference quotients. Empty, or what is wrong.
std::string CheckConvex(const TimeCostFrontier& frontier, double tolerance);

}  // namespace perseus::frontier_testing

#endif  // PERSEUS_TESTS_FRONTIER_PROBLEMS_H_
