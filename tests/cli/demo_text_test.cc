// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/demo/demo_command.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using demo::DemoResult;
using demo::DemoRound;
using demo::Part;
using ::testing::Not;
using ::testing::StartsWith;

DemoRound Round(Part part, int number, double seconds, double joules) {
  DemoRound round;
  round.part = part;
  round.number = number;
  round.seconds = seconds;
  round.joules = joules;
  return round;
}

TEST(DemoTextTest, OneIterationThatTheMachineDelaysMovesNoMedian) {
  DemoResult result;
  // The first begins with cold processes.
  result.rounds.push_back(Round(Part::kBaseline, 0, 9, 9000));
  for (const double seconds : {1.0, 5.0, 1.0}) {
    const int number = static_cast<int>(result.rounds.size());
    result.rounds.push_back(Round(Part::kBaseline, number, seconds, 1000 * seconds));
  }
  result.rounds.push_back(Round(Part::kWaiting, 0, 7, 7000));
  for (const double seconds : {1.01, 6.0, 1.01, 1.01, 1.01}) {
    result.rounds.push_back(Round(Part::kPlanned, 0, seconds, seconds > 2 ? 5000 : 900));
  }
  const std::string text = DemoSummary(result);
  EXPECT_THAT(text, Mentions("median"));
  EXPECT_THAT(text, testing::ContainsRegex("1[.]0100 +.1[.]00 %"));
  // It is not left out of what was used, nor of the mean.
  EXPECT_THAT(text, Mentions("-3,600.0", "5,000.0", "-72.0", "5"));
  EXPECT_THAT(text, Mentions("+100.80"));
}

// A late plan disturbs some iterations, other work of the machine many.
TEST(DemoTextTest, FiguresOfABusyMachineAreNotToBeTrusted) {
  DemoResult result;
  for (const double seconds : {9.0, 1.0, 1.0}) {
    result.rounds.push_back(
        Round(Part::kBaseline, static_cast<int>(result.rounds.size()), seconds, 1000));
  }
  for (const double seconds : {1.01, 1.05, 1.02, 1.06, 1.01, 1.0}) {
    result.rounds.push_back(Round(Part::kPlanned, 0, seconds, 900));
  }
  EXPECT_THAT(DemoSummary(result), Not(Mentions("BUSY")));  // 2 of 8.
  result.rounds.push_back(Round(Part::kPlanned, 0, 1.03, 900));
  EXPECT_THAT(DemoSummary(result), testing::ContainsRegex("BUSY .* 3 of 9 "));
}

TEST(DemoTextTest, AnEvenNumberHasTwoInTheMiddle) {
  RoundFigures median;
  EXPECT_EQ(median.Seconds(), 0);
  for (const double seconds : {4.0, 1.0, 100.0, 2.0}) {
    median.Add(Round(Part::kBaseline, 1, seconds, 10 * seconds));
  }
  EXPECT_EQ(median.count(), 4);
  EXPECT_EQ(median.Seconds(), 3);
  EXPECT_EQ(median.Joules(), 30);
}

TEST(DemoTextTest, ARowSaysWhichRanksHaveThePlanAlready) {
  DemoRound round = Round(Part::kWaiting, 2, 0.5, 100);
  EXPECT_THAT(DemoRow(round, {}), StartsWith("no plan yet    2"));
  EXPECT_THAT(DemoRow(round, {}), Not(Mentions("ranks")));
  round.plan_version = 1;
  round.ranks_with_plan = 5;
  EXPECT_THAT(DemoRow(round, {}), StartsWith("plan comes     2"));
  EXPECT_THAT(DemoRow(round, {}), Mentions("1", "5", "8"));
}

}  // namespace
}  // namespace perseus::cli
