// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What ranks' timelines show of transfers and stalls, on pipelines whose true ones are known.

#include "server/planning/measured_gaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/pipeline.h"
#include "perseus/profile.h"
#include "server/detect/conditions_watch.h"

namespace perseus::server {
namespace {

struct Truth {
  std::vector<double> transfers;  // [boundary], seconds.
  double stall = 0;
  double host_gap = 20e-6;  // Between computations that follow each other.
};

PipelineDag DagOf(const std::string& schedule, int stages, int virtual_stages,
                  const std::vector<double>& transfers) {
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < stages; ++stage) {
    const std::string at = std::to_string(stage);
    csv += at + ",forward,1400,0.01,2\n" + at + ",backward,1400,0.02,4\n";
  }
  std::string settings = R"({"schedule":")" + schedule + R"(","microbatches":8,"stages":)" +
                         std::to_string(stages) + R"(,"blocking_power":50)";
  if (virtual_stages > 1) settings += R"(,"virtual_stages":)" + std::to_string(virtual_stages);
  JobFile file = ParseJobFile(settings + "}", "job", JobFileFormat::kJson).value();
  file.comm_delay_seconds = transfers;
  return Job::Make(ParseProfile(csv, "profile.csv").value(), file).value().pipeline.dag;
}

// Iterations on a machine with the truth's transfers and stalls, as ranks see them.
class Machine {
 public:
  Machine(const PipelineDag& dag, const Truth& truth, std::uint64_t seed)
      : dag_(dag), truth_(truth), random_(seed) {
    // Which rows change clocks is the plan's, so the same in all iterations.
    std::bernoulli_distribution changes(0.3);
    for (int i = 0; i < dag.size(); ++i) changes_.push_back(changes(random_));
  }

  std::vector<std::vector<RowSpan>> Run() {
    std::normal_distribution<double> noise(1, 0.01);
    std::exponential_distribution<double> jitter(1 / 2e-6);
    Timing timing;
    std::vector<double> last_end(static_cast<std::size_t>(dag_.num_ranks), 0.0);
    ReplayBy(
        dag_,
        [&](int i, double ready, double* start, double* end) {
          const Computation& computation = dag_.computations[static_cast<std::size_t>(i)];
          double& before = last_end[static_cast<std::size_t>(computation.rank)];
          if (computation.position > 0) {
            ready = std::max(ready, before + truth_.host_gap + jitter(random_));
          }
          const bool stalls = changes_[static_cast<std::size_t>(i)];
          *start = ready + (stalls ? truth_.stall : 0);
          const bool is_forward = computation.id.type == ComputationType::kForward;
          // Stages differ, so that some ranks wait for others.
          const double seconds = (is_forward ? 0.010 : 0.020) * (1 + 0.1 * (computation.rank % 3));
          *end = *start + seconds * noise(random_);
          before = *end;
        },
        &timing);
    std::vector<std::vector<RowSpan>> ranks;
    std::uniform_real_distribution<double> earlier(0, 0.5);
    for (const std::vector<int>& order : dag_.rank_order) {
      // Each rank's clock begins with its own iteration.
      const double since = earlier(random_);
      std::vector<RowSpan>& rows = ranks.emplace_back();
      for (const int i : order) {
        const auto at = static_cast<std::size_t>(i);
        rows.push_back({.begin_seconds = since + timing.start_seconds[at],
                        .end_seconds = since + timing.end_seconds[at],
                        .changes = changes_[at]});
      }
    }
    return ranks;
  }

 private:
  const PipelineDag& dag_;
  Truth truth_;
  std::mt19937_64 random_;
  std::vector<bool> changes_;
};

RankRows Told(int rank, std::int64_t iteration, std::vector<RowSpan> rows) {
  return {.rank = rank, .iteration = iteration, .plan_version = 1, .rows = std::move(rows)};
}

std::vector<double> RandomTransfers(int stages, std::mt19937_64* random) {
  std::uniform_real_distribution<double> seconds(0.0001, 0.004);
  std::vector<double> transfers(static_cast<std::size_t>(stages - 1));
  for (double& each : transfers) each = seconds(*random);
  return transfers;
}

TEST(GapEstimate, FindsTransfersAndStallsOfAnySchedule) {
  struct Case {
    const char* schedule;
    int stages;
    int virtual_stages;
  };
  std::mt19937_64 random(7);
  for (const Case& each : {Case{"1f1b", 4, 1}, Case{"gpipe", 4, 1}, Case{"1f1b", 8, 1},
                           Case{"interleaved-1f1b", 8, 2}, Case{"zbv-zero-bubble", 8, 2}}) {
    SCOPED_TRACE(each.schedule);
    for (int seed = 0; seed < 10; ++seed) {
      Truth truth = {.transfers = RandomTransfers(each.stages, &random), .stall = 0.0004};
      const PipelineDag dag =
          DagOf(each.schedule, each.stages, each.virtual_stages, truth.transfers);
      Machine machine(dag, truth, static_cast<std::uint64_t>(seed));
      GapEstimate estimate;
      for (int k = 0; k < 16; ++k) estimate.Add(dag, machine.Run());
      const auto transfers = estimate.Transfers();
      EXPECT_GE(transfers.size(), 1U);
      for (const MeasuredTransfer& transfer : transfers) {
        const double true_seconds = truth.transfers[static_cast<std::size_t>(transfer.boundary)];
        EXPECT_NEAR(transfer.seconds, true_seconds, 25e-6) << transfer.boundary;
      }
      // Where every own clock changes, the host's gap counts as stall.
      const auto stall = estimate.Stall();
      if (stall) {
        EXPECT_NEAR(stall->seconds, truth.stall, truth.host_gap + 10e-6);
      }
    }
  }
}

TEST(GapEstimate, FindsEachBoundaryOfAUsualPipeline) {
  const Truth truth = {.transfers = {0.001, 0.002, 0.003}, .stall = 0.0002};
  const PipelineDag dag = DagOf("1f1b", 4, 1, truth.transfers);
  Machine machine(dag, truth, 1);
  GapEstimate estimate;
  for (int k = 0; k < 7; ++k) estimate.Add(dag, machine.Run());
  EXPECT_TRUE(estimate.Transfers().empty()) << "too few to be sure";
  estimate.Add(dag, machine.Run());
  EXPECT_EQ(estimate.Transfers().size(), 3U);
  ASSERT_TRUE(estimate.Stall().has_value());
  EXPECT_NEAR(estimate.Stall()->seconds, 0.0002, 10e-6);
}

TEST(GapEstimate, APauseInOneIterationChangesNothing) {
  const Truth truth = {.transfers = {0.001, 0.001, 0.001}, .stall = 0};
  const PipelineDag dag = DagOf("1f1b", 4, 1, truth.transfers);
  Machine machine(dag, truth, 2);
  Truth slow = truth;
  slow.transfers = {0.5, 0.5, 0.5};
  const PipelineDag slow_dag = DagOf("1f1b", 4, 1, slow.transfers);
  Machine pause(slow_dag, slow, 2);
  GapEstimate estimate;
  for (int k = 0; k < 20; ++k) estimate.Add(dag, k % 7 == 3 ? pause.Run() : machine.Run());
  ASSERT_EQ(estimate.Transfers().size(), 3U);
  for (const auto& each : estimate.Transfers()) EXPECT_NEAR(each.seconds, 0.001, 25e-6);
}

TEST(GapEstimate, IgnoresWhatDoesNotFit) {
  const Truth truth = {.transfers = {0.001, 0.001, 0.001}};
  const PipelineDag dag = DagOf("1f1b", 4, 1, truth.transfers);
  Machine machine(dag, truth, 3);
  GapEstimate estimate;
  for (int k = 0; k < 20; ++k) {
    auto ranks = machine.Run();
    if (k % 2 == 0) {
      ranks.pop_back();
    } else {
      ranks.back().pop_back();
    }
    estimate.Add(dag, ranks);
  }
  EXPECT_TRUE(estimate.Transfers().empty());
  EXPECT_FALSE(estimate.Stall().has_value());
}

TEST(GapWatch, PutsRanksTogetherInAnyOrder) {
  const Truth truth = {.transfers = {0.001, 0.002, 0.003}};
  const PipelineDag dag = DagOf("1f1b", 4, 1, truth.transfers);
  Machine machine(dag, truth, 4);
  GapEstimate all;
  GapWatch watch;
  std::vector<std::pair<int, std::pair<int, std::vector<RowSpan>>>> told;  // (iteration, rank)
  for (int iteration = 0; iteration < 16; ++iteration) {
    const auto ranks = machine.Run();
    all.Add(dag, ranks);
    for (int rank = 0; rank < 4; ++rank) {
      told.push_back({iteration, {rank, ranks[static_cast<std::size_t>(rank)]}});
    }
  }
  // Ranks report some iterations later than others.
  std::mt19937_64 random(5);
  for (std::size_t first = 0; first < told.size(); first += 16) {
    std::shuffle(told.begin() + static_cast<std::ptrdiff_t>(first),
                 told.begin() + static_cast<std::ptrdiff_t>(first + 16), random);
  }
  for (const auto& [iteration, of_rank] : told) {
    watch.Take(dag, Told(of_rank.first, iteration, of_rank.second));
  }
  ASSERT_EQ(watch.estimate().Transfers().size(), 3U);
  // The order of iterations differs, but medians do not.
  EXPECT_EQ(watch.estimate().Transfers(), all.Transfers());
}

// What waits for a rank in vain must not keep out what comes after a restart from a checkpoint.
TEST(GapWatch, LearnsAfterTrainingBeganAgainAtAnEarlierIteration) {
  const Truth truth = {.transfers = {0.001, 0.002, 0.003}};
  const PipelineDag dag = DagOf("1f1b", 4, 1, truth.transfers);
  Machine machine(dag, truth, 8);
  GapWatch watch;
  for (int iteration = 1000; iteration < 1100; iteration += 10) {
    watch.Take(dag, Told(0, iteration, machine.Run()[0]));
  }
  for (int iteration = 0; iteration < 160; iteration += 10) {
    const auto ranks = machine.Run();
    for (int rank = 0; rank < 4; ++rank) {
      watch.Take(dag, Told(rank, iteration, ranks[static_cast<std::size_t>(rank)]));
    }
  }
  EXPECT_EQ(watch.estimate().Transfers().size(), 3U);
}

TEST(GapWatch, LearnsNothingWithoutOneRank) {
  const Truth truth = {.transfers = {0.001, 0.002, 0.003}};
  const PipelineDag dag = DagOf("1f1b", 4, 1, truth.transfers);
  Machine machine(dag, truth, 6);
  GapWatch watch;
  for (int iteration = 0; iteration < 100; ++iteration) {
    const auto ranks = machine.Run();
    for (int rank = 0; rank < 3; ++rank) {
      watch.Take(dag, Told(rank, iteration, ranks[static_cast<std::size_t>(rank)]));
    }
    watch.Take(dag, Told(4, iteration, ranks[3]));  // Of no rank of the pipeline.
  }
  EXPECT_TRUE(watch.estimate().Transfers().empty());
}

TEST(GapWatch, GivesAnIterationOnceItIsWhole) {
  const PipelineDag dag = DagOf("1f1b", 4, 1, {0.001, 0.002, 0.003});
  Machine machine(dag, {.transfers = {0.001, 0.002, 0.003}}, 9);
  const auto ranks = machine.Run();
  GapWatch watch;
  for (const int rank : {2, 0, 3}) {
    EXPECT_FALSE(watch.Take(dag, Told(rank, 10, ranks[static_cast<std::size_t>(rank)])));
  }
  EXPECT_FALSE(watch.Take(dag, Told(1, 20, ranks[1]))) << "another iteration";
  const auto whole = watch.Take(dag, Told(1, 10, ranks[1]));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->ranks, ranks);
  EXPECT_TRUE(whole->as_planned);
  // One rank at other clocks is enough.
  for (int rank = 0; rank < 4; ++rank) {
    RankRows told = Told(rank, 30, ranks[static_cast<std::size_t>(rank)]);
    told.as_planned = rank != 1;
    const auto other = watch.Take(dag, told);
    ASSERT_EQ(other.has_value(), rank == 3);
    if (other) {
      EXPECT_FALSE(other->as_planned);
    }
  }
}

// Rows of an iteration before training began again are of another one with the same number.
TEST(GapWatch, DoesNotMixIterationsOfTwoRuns) {
  const PipelineDag dag = DagOf("1f1b", 2, 1, {0.001});
  Machine machine(dag, {.transfers = {0.001}}, 10);
  const auto before = machine.Run();
  const auto after = machine.Run();
  GapWatch watch;
  const auto at = [&](double seconds, RankRows told) {
    told.heard_seconds = seconds;
    return watch.Take(dag, std::move(told));
  };
  EXPECT_FALSE(at(100, Told(0, 10, before[0])));
  EXPECT_FALSE(at(1000, Told(1, 10, after[1])));
  const auto whole = at(1001, Told(0, 10, after[0]));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->ranks, after);
}

// A rank may send more rows than its pipeline has: they are not even kept.
TEST(GapWatch, KeepsNoRowsThatDoNotFit) {
  const PipelineDag dag = DagOf("1f1b", 2, 1, {0.001});
  Machine machine(dag, {.transfers = {0.001}}, 11);
  auto ranks = machine.Run();
  GapWatch watch;
  EXPECT_FALSE(watch.Take(dag, Told(0, 10, ranks[0])));
  ranks[1].push_back({});
  EXPECT_FALSE(watch.Take(dag, Told(1, 10, ranks[1])));
  ranks[1].pop_back();
  EXPECT_TRUE(watch.Take(dag, Told(1, 10, ranks[1]))) << "its own word counts";
}

TEST(DelaysOf, TakesTheMedianWhereNothingWasMeasured) {
  const auto measured = [](int boundary, double seconds) {
    return MeasuredTransfer{.boundary = boundary, .seconds = seconds};
  };
  EXPECT_TRUE(DelaysOf({}, 4).empty());
  EXPECT_TRUE(DelaysOf({measured(0, 1)}, 1).empty());
  EXPECT_EQ(DelaysOf({measured(0, 0.1), measured(3, 0.3), measured(1, 0.2)}, 5),
            (std::vector<double>{0.1, 0.2, 0.2, 0.3}));
}

TEST(TransfersHaveMoved, OnlyWhereAnIterationFeelsIt) {
  const auto at = [](double seconds, double error) {
    return std::vector<MeasuredTransfer>{
        {.boundary = 0, .seconds = seconds, .error_seconds = error, .iterations = 8},
        {.boundary = 1, .seconds = seconds, .error_seconds = error, .iterations = 8}};
  };
  EXPECT_TRUE(TransfersHaveMoved({}, at(0.001, 1e-6), 5));
  EXPECT_FALSE(TransfersHaveMoved({}, at(0.0001, 1e-6), 5)) << "nobody feels it";
  EXPECT_FALSE(TransfersHaveMoved({}, at(0.001, 0.001), 5)) << "not sure";
  EXPECT_FALSE(TransfersHaveMoved(at(0.001, 1e-6), at(0.0011, 1e-6), 5));
  EXPECT_TRUE(TransfersHaveMoved(at(0.001, 1e-6), at(0.003, 1e-6), 5));
  EXPECT_FALSE(TransfersHaveMoved(at(0.001, 1e-6), {}, 5));
}

}  // namespace
}  // namespace perseus::server
