// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/straggler_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <set>
#include <vector>

#include "server/detection_series.h"

namespace perseus::server {
namespace {

using Kind = Finding::Kind;

constexpr int kBegin = 200;
constexpr int kEnd = 400;
constexpr int kLast = 600;

std::vector<Finding> Of(const std::vector<Finding>& findings, Kind kind) {
  std::vector<Finding> of;
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(of),
               [&](const Finding& finding) { return finding.kind == kind; });
  return of;
}

std::function<double(int, int)> Slow(int rank, double factor) {
  return [=](int of, int iteration) {
    return of == rank && iteration >= kBegin && iteration < kEnd ? factor : 1.0;
  };
}

// Rules about chance hold for nearly every job, not for every one:
// the same jobs each time, so that nobody meets the others by accident.
constexpr int kJobs = 150;

class Choices {
 public:
  std::uint64_t Seed() { return random_(); }
  template <typename T>
  T Of(std::initializer_list<T> values) {
    return *(values.begin() + random_() % values.size());
  }

 private:
  std::mt19937_64 random_{1};
};

TEST(StragglerDetectorRules, OutliersAloneAreNoStraggler) {
  Choices choices;
  for (int number = 0; number < kJobs; ++number) {
    SimulatedJob job(choices.Seed());
    job.noise = choices.Of({0.003, 0.01, 0.02});
    // With both at their largest one rank in 10,000 is found by chance.
    job.outliers = job.noise > 0.01 ? choices.Of({0.02, 0.05}) : choices.Of({0.02, 0.05, 0.1});
    job.outlier_size = choices.Of({1.5, 3.0, 100.0});
    StragglerDetector detector;
    EXPECT_TRUE(FindIn(&detector, &job, 0, kLast).empty()) << number;
  }
}

TEST(StragglerDetectorRules, AShiftAboveTheThresholdIsFoundAndIsOverWhenItIsOver) {
  Choices choices;
  for (int number = 0; number < kJobs; ++number) {
    SimulatedJob job(choices.Seed());
    const int rank = choices.Of({0, 1, 2, 3, 4, 5, 6, 7});
    const double factor = choices.Of({1.08, 1.15, 1.5, 3.0});
    job.noise = choices.Of({0.003, 0.01});
    job.outliers = choices.Of({0.0, 0.05});
    job.slowed = Slow(rank, factor);
    StragglerDetector detector;
    const std::vector<Finding> found = FindIn(&detector, &job, 0, kLast);
    const auto slow = Of(found, Kind::kStraggler);
    ASSERT_EQ(slow.size(), 1U) << number;
    EXPECT_TRUE(slow[0].rank == rank) << number;
    EXPECT_TRUE(slow[0].iteration >= kBegin) << number;
    EXPECT_TRUE(slow[0].iteration < kBegin + 32) << number;
    EXPECT_TRUE(std::abs(slow[0].factor / factor - 1) < 0.04) << number;
    EXPECT_TRUE(slow[0].all_types) << number;
    const auto well = Of(found, Kind::kRecovered);
    ASSERT_EQ(well.size(), 1U) << number;
    EXPECT_TRUE(well[0].iteration >= kEnd) << number;
    EXPECT_TRUE(well[0].iteration < kEnd + 48) << number;
    EXPECT_TRUE(detector.SlowRanks().empty()) << number;
  }
}

TEST(StragglerDetectorRules, WorkThatVariesIsNoStraggler) {
  Choices choices;
  for (int number = 0; number < kJobs; ++number) {
    SimulatedJob job(choices.Seed());
    job.token_spread = choices.Of({0.3, 0.5, 0.9});
    job.noise = 0.01;
    StragglerDetector detector;
    EXPECT_TRUE(FindIn(&detector, &job, 0, kLast).empty()) << number;
  }
}

TEST(StragglerDetectorRules, AtTheThresholdItDoesNotFlap) {
  Choices choices;
  for (int number = 0; number < kJobs; ++number) {
    SimulatedJob job(choices.Seed());
    job.noise = choices.Of({0.005, 0.01, 0.02});
    job.slowed = [](int rank, int iteration) {
      return rank == 3 && iteration >= kBegin ? 1.05 : 1.0;
    };
    StragglerDetector detector;
    // In 2,400 iterations around the threshold it may change its mind once.
    EXPECT_TRUE(FindIn(&detector, &job, 0, 5 * kLast).size() <= 3U) << number;
  }
}

// A shift of just the threshold, which the window's median is above half the time only.
TEST(StragglerDetectorRules, AShiftOfTheThresholdIsFoundSoonOnAQuietJob) {
  Choices choices;
  for (int number = 0; number < kJobs; ++number) {
    SimulatedJob job(choices.Seed());
    job.noise = choices.Of({0.003, 0.006});
    job.slowed = Slow(choices.Of({0, 3, 7}), 1.05);
    StragglerDetector detector;
    const auto slow = Of(FindIn(&detector, &job, 0, kEnd), Kind::kStraggler);
    ASSERT_EQ(slow.size(), 1U) << number;
    EXPECT_LT(slow[0].iteration, kBegin + 24) << number;
  }
}

// All ranks of a pipeline, not two of four, and as one cause.
TEST(StragglerDetectorRules, APipelineThatIsSlowIsFoundWhole) {
  Choices choices;
  int late = 0;
  for (int number = 0; number < kJobs; ++number) {
    SimulatedJob job(choices.Seed());
    job.noise = choices.Of({0.003, 0.01, 0.015});
    job.outliers = choices.Of({0.0, 0.05});
    const double factor = choices.Of({1.05, 1.07, 1.2});
    job.slowed = [&](int rank, int iteration) {
      return rank >= job.stages && iteration >= kBegin ? factor : 1.0;
    };
    StragglerDetector detector;
    const auto slow = Of(FindIn(&detector, &job, 0, kLast), Kind::kStraggler);
    EXPECT_EQ(slow.size(), 4U) << number;
    std::set<int> ranks;
    int told = 0;
    for (const Finding& finding : slow) {
      EXPECT_GE(finding.rank, job.stages) << number;
      ranks.insert(finding.rank);
      told += finding.is_of_told_cause ? 0 : 1;
    }
    EXPECT_EQ(ranks.size(), 4U) << number;
    EXPECT_EQ(told, 1) << number;
    if (!slow.empty() && slow[0].iteration >= kBegin + 32) ++late;
  }
  EXPECT_LE(late, kJobs / 50);
}

TEST(StragglerDetectorRules, OneSlowRankDoesNotMakeItsPipelineSlow) {
  Choices choices;
  for (int number = 0; number < kJobs; ++number) {
    SimulatedJob job(choices.Seed());
    job.noise = choices.Of({0.003, 0.01, 0.02});
    const int rank = choices.Of({4, 5, 6, 7});
    job.slowed = Slow(rank, choices.Of({1.2, 2.0, 10.0}));
    StragglerDetector detector;
    for (const Finding& finding : Of(FindIn(&detector, &job, 0, kLast), Kind::kStraggler)) {
      EXPECT_EQ(finding.rank, rank) << number;
      EXPECT_EQ(finding.together, 0) << number;
    }
  }
}

// Ten iterations slow, ten as usual, and so on.
TEST(StragglerDetectorRules, WhatComesAndGoesIsToldTwiceAtMost) {
  Choices choices;
  int told_in_all = 0;
  for (int number = 0; number < kJobs; ++number) {
    SimulatedJob job(choices.Seed());
    job.noise = choices.Of({0.003, 0.01, 0.02, 0.03});
    job.outliers = choices.Of({0.0, 0.05});
    const int first = choices.Of({4, 5, 7});  // A pipeline, a part of it or one rank.
    const double factor = choices.Of({1.1, 1.2, 1.5});
    job.slowed = [&](int rank, int iteration) {
      return rank >= first && iteration >= kBegin && iteration / 10 % 2 == 1 ? factor : 1.0;
    };
    StragglerDetector detector;
    int told = 0;
    for (const Finding& finding : Of(FindIn(&detector, &job, 0, 2 * kLast), Kind::kStraggler)) {
      EXPECT_GE(finding.rank, first) << number;
      told += finding.is_of_told_cause ? 0 : 1;
    }
    EXPECT_LE(told, 3) << number;
    told_in_all += told;
  }
  EXPECT_LE(told_in_all, 2 * kJobs);
}

TEST(StragglerDetectorTest, VariableWorkHidesNoStraggler) {
  SimulatedJob job(7);
  job.token_spread = 0.5;
  job.slowed = Slow(2, 1.2);
  StragglerDetector detector;
  const auto found = Of(FindIn(&detector, &job, 0, kLast), Kind::kStraggler);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 2);
  EXPECT_NEAR(found[0].factor, 1.2, 0.02);
}

TEST(StragglerDetectorTest, WithoutTokensTheSameWorkLooksLikeNoise) {
  SimulatedJob job(7);
  job.token_spread = 0.5;
  StragglerDetector detector;
  for (int iteration = 0; iteration < kLast; ++iteration) {
    std::vector<RankIteration> reports = job.Iterate(iteration);
    for (RankIteration& report : reports) report.tokens = 0;
    EXPECT_TRUE(detector.Add(iteration, reports).empty());
  }
}

TEST(StragglerDetectorTest, WhatAllShareIsDrift) {
  SimulatedJob job(3);
  job.slowed = [](int, int iteration) {
    return iteration >= kBegin && iteration < kEnd ? 1.15 : 1.0;
  };
  StragglerDetector detector;
  const auto found = FindIn(&detector, &job, 0, kLast);
  EXPECT_TRUE(Of(found, Kind::kStraggler).empty());
  ASSERT_EQ(Of(found, Kind::kDrift).size(), 1U);
  EXPECT_NEAR(Of(found, Kind::kDrift)[0].factor, 1.15, 0.02);
  EXPECT_EQ(Of(found, Kind::kDriftOver).size(), 1U);
}

TEST(StragglerDetectorTest, AStragglerIsFoundUnderDrift) {
  SimulatedJob job(3);
  job.slowed = [](int rank, int iteration) {
    return (iteration >= kBegin ? 1.15 : 1.0) * (rank == 1 && iteration >= kEnd ? 1.3 : 1.0);
  };
  StragglerDetector detector;
  const auto found = Of(FindIn(&detector, &job, 0, kLast), Kind::kStraggler);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_NEAR(found[0].factor, 1.3, 0.03);
}

TEST(StragglerDetectorTest, HalfOfAllRanksMayStraggle) {
  SimulatedJob job(4);
  job.slowed = [](int rank, int iteration) { return rank >= 4 && iteration >= kBegin ? 1.2 : 1.0; };
  StragglerDetector detector;
  const auto found = FindIn(&detector, &job, 0, kLast);
  EXPECT_EQ(Of(found, Kind::kStraggler).size(), 4U);
  EXPECT_TRUE(Of(found, Kind::kDrift).empty());
}

// Ranks at coarse clocks, say: nobody knows how long they should take.
TEST(StragglerDetectorTest, AStragglerStaysOneWhileOthersAreNotJudged) {
  for (const int judged : {2, 4, 6}) {  // Of eight, the slow one among them.
    SimulatedJob job(4);
    job.slowed = Slow(0, 1.2);
    StragglerDetector detector;
    std::vector<Finding> found = FindIn(&detector, &job, 0, kBegin + 50);
    EXPECT_EQ(Of(found, Kind::kStraggler).size(), 1U) << judged;
    for (int iteration = kBegin + 50; iteration < kEnd; ++iteration) {
      std::vector<RankIteration> ranks = job.Iterate(iteration);
      for (std::size_t i = static_cast<std::size_t>(judged); i < ranks.size(); ++i) {
        ranks[i].expected_busy_seconds = ranks[i].expected_time_seconds = 0;
      }
      EXPECT_TRUE(detector.Add(iteration, ranks).empty()) << judged;
    }
    EXPECT_EQ(detector.SlowRanks().size(), 1U) << judged;
  }
}

TEST(StragglerDetectorTest, AllThatAreJudgedMayBeSlowAsTheOthersAre) {
  SimulatedJob job(4);
  job.slowed = [](int rank, int iteration) { return rank < 6 && iteration >= kBegin ? 1.2 : 1.0; };
  StragglerDetector detector;
  std::vector<Finding> found = FindIn(&detector, &job, 0, kBegin);
  for (int iteration = kBegin; iteration < kEnd; ++iteration) {
    std::vector<RankIteration> ranks = job.Iterate(iteration);
    for (const std::size_t i : {6, 7}) {
      ranks[i].expected_busy_seconds = ranks[i].expected_time_seconds = 0;
    }
    for (const Finding& finding : detector.Add(iteration, ranks)) found.push_back(finding);
  }
  EXPECT_TRUE(found.empty());
}

TEST(StragglerDetectorTest, OneThatIsSlowFromItsFirstIterationIsFoundByItsStage) {
  SimulatedJob job(5);
  job.slowed = [](int rank, int) { return rank == 6 ? 1.25 : 1.0; };
  StragglerDetector detector;
  const auto found = Of(FindIn(&detector, &job, 0, kLast), Kind::kStraggler);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 6);
}

// An iteration that one of them does not report makes the other the first one that is learned.
TEST(StragglerDetectorTest, OneThatIsSlowFromItsFirstIterationIsFoundAlsoIfItIsLearnedFirst) {
  for (const int late : {1, 40}) {
    SimulatedJob job(5);
    job.slowed = [](int rank, int) { return rank == 6 ? 1.25 : 1.0; };
    StragglerDetector detector;
    std::vector<Finding> found;
    for (int iteration = 0; iteration < kLast; ++iteration) {
      std::vector<RankIteration> ranks = job.Iterate(iteration);
      if (iteration < late) ranks[2].expected_busy_seconds = ranks[2].expected_time_seconds = 0;
      for (const Finding& finding : detector.Add(iteration, ranks)) found.push_back(finding);
    }
    found = Of(found, Kind::kStraggler);
    ASSERT_EQ(found.size(), 1U) << late;
    EXPECT_EQ(found[0].rank, 6);
    EXPECT_NEAR(found[0].factor, 1.25, 0.04);
  }
}

TEST(StragglerDetectorTest, ASlowDriftOfOneRankDoesNotHide) {
  SimulatedJob job(6);
  // One threshold in 2,000 iterations, while references are learned again.
  job.slowed = [](int rank, int iteration) {
    return rank == 0 ? 1 + 0.05 * iteration / 2000 : 1.0;
  };
  StragglerDetector detector;
  const auto found = Of(FindIn(&detector, &job, 0, 8000), Kind::kStraggler);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 0);
}

TEST(StragglerDetectorTest, OneThatGetsWorseIsToldAgain) {
  SimulatedJob job(8);
  job.slowed = [](int rank, int iteration) {
    return rank != 5 ? 1.0 : iteration >= kEnd ? 1.5 : iteration >= kBegin ? 1.2 : 1.0;
  };
  StragglerDetector detector;
  const auto found = FindIn(&detector, &job, 0, kLast);
  ASSERT_EQ(Of(found, Kind::kFactor).size(), 1U);
  EXPECT_NEAR(Of(found, Kind::kFactor)[0].factor, 1.5, 0.03);
  EXPECT_TRUE(Of(found, Kind::kRecovered).empty());
}

TEST(StragglerDetectorTest, TheTypeIsNamedWhereItMakesUpMostOfIt) {
  for (const bool forward_alone : {true, false}) {
    SimulatedJob job(9);
    StragglerDetector detector;
    std::vector<Finding> found;
    for (int iteration = 0; iteration < kLast; ++iteration) {
      std::vector<RankIteration> reports = job.Iterate(iteration);
      if (iteration >= kBegin) {
        RankIteration& slow = reports[2];
        slow.busy_by_type[0] *= 1.5;
        if (!forward_alone) slow.busy_by_type[1] *= 1.2;  // 63 % of it is forward's.
        slow.busy_seconds = slow.busy_by_type[0] + slow.busy_by_type[1];
      }
      for (const Finding& finding : detector.Add(iteration, reports)) found.push_back(finding);
    }
    const auto slow = Of(found, Kind::kStraggler);
    ASSERT_EQ(slow.size(), 1U);
    EXPECT_FALSE(slow[0].all_types);
    EXPECT_EQ(slow[0].type.has_value(), forward_alone);
    if (forward_alone) {
      EXPECT_EQ(*slow[0].type, ComputationType::kForward);
    }
  }
}

TEST(StragglerDetectorTest, WaitingIsNotStraggling) {
  SimulatedJob job(10);
  StragglerDetector detector;
  std::vector<Finding> found;
  for (int iteration = 0; iteration < kLast; ++iteration) {
    std::vector<RankIteration> reports = job.Iterate(iteration);
    for (RankIteration& report : reports) {
      if (iteration >= kBegin) report.time_seconds *= 1.3;
    }
    for (const Finding& finding : detector.Add(iteration, reports)) found.push_back(finding);
  }
  EXPECT_TRUE(Of(found, Kind::kStraggler).empty());
  ASSERT_EQ(Of(found, Kind::kSlowIterations).size(), 1U);
  EXPECT_NEAR(Of(found, Kind::kSlowIterations)[0].factor, 1.3, 0.01);
  EXPECT_GT(Of(found, Kind::kSlowIterations)[0].waiting_share, 0.8);
}

TEST(StragglerDetectorTest, AnotherPlanThatIsPredictedLessWellIsNoStraggler) {
  SimulatedJob job(11);
  StragglerDetector detector;
  std::vector<Finding> found;
  for (int iteration = 0; iteration < kLast; ++iteration) {
    std::vector<RankIteration> reports = job.Iterate(iteration);
    for (RankIteration& report : reports) {
      report.regime = iteration >= kBegin ? 2 : 1;
      // Its profile is 2 % off, but for one rank, where it is 4 %.
      if (iteration >= kBegin) report.expected_busy_seconds /= report.rank == 3 ? 1.04 : 1.02;
    }
    for (const Finding& finding : detector.Add(iteration, reports)) found.push_back(finding);
  }
  EXPECT_TRUE(found.empty());
}

TEST(StragglerDetectorTest, OneThatWasFoundBeforeARestartRecovers) {
  SimulatedJob job(12);
  job.slowed = [](int rank, int iteration) { return rank == 5 && iteration < kBegin ? 1.3 : 1.0; };
  StragglerDetector detector;
  detector.Adopt(5, 1.3, std::log(1.05));  // Its 1 % a rank.
  EXPECT_EQ(detector.SlowRanks().size(), 1U);
  EXPECT_TRUE(FindIn(&detector, &job, 0, kBegin).empty());
  const auto found = FindIn(&detector, &job, kBegin, kLast);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, Kind::kRecovered);
}

}  // namespace
}  // namespace perseus::server
