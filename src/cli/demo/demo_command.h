// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_DEMO_DEMO_COMMAND_H_
#define PERSEUS_CLI_DEMO_DEMO_COMMAND_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/demo/demo.h"

namespace perseus::cli {

// Time and energy of the iterations that were added. Medians, for a machine with other work makes
// single iterations much longer; and what they all took, where nothing may be left out.
class RoundFigures {
 public:
  void Add(const demo::DemoRound& round);
  int count() const { return static_cast<int>(seconds_.size()); }
  double Seconds() const;  // 0 where none was added.
  double Joules() const;
  double MeanSeconds() const;
  double TotalJoules() const;
  int Disturbed() const;  // How many took 2 % longer than the shortest.

 private:
  std::vector<double> seconds_;
  std::vector<double> joules_;
};

// Whether the iteration is one that others are compared with. The first one of each kind is not:
// it begins with cold processes.
bool IsBaseline(const demo::DemoRound& round);

// One iteration in a line, compared with the baseline of its condition.
std::string DemoRow(const demo::DemoRound& round, const RoundFigures& baseline);

// The results: a table and facts, the first of which is whether to believe them.
std::string DemoSummary(const demo::DemoResult& result);

// How long the server took to find the straggler, and that it was over; "" where it did not look.
std::string DemoFindings(const demo::DemoResult& result, const demo::DemoPlan& plan);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_DEMO_DEMO_COMMAND_H_
