// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "emulation_fixture.h"
#include "perseus/emulation_report.h"
#include "report/trace_writer.h"
#include "trace_reader.h"

namespace perseus::report {
namespace {

using Json = nlohmann::json;

class EmulationTraceTest : public ::testing::Test {
 protected:
  const EmulatedSample made_ = MakeEmulatedSample(9, 50);
  const Json events_ = ReadTrace(*FormatEmulationTimelineTrace(made_.Bare()));
};

TEST_F(EmulationTraceTest, APipelineIsAProcessAndARankAThread) {
  std::map<int, std::string> processes;
  std::set<int> threads;
  for (const Json& event : events_) {
    if (event.at("name") == "process_name") {
      processes[event.at("pid")] = event.at("args").at("name");
    }
    if (event.at("name") == "thread_name") {
      EXPECT_TRUE(threads.insert(event.at("tid").get<int>()).second);
    }
  }
  EXPECT_EQ(processes,
            (std::map<int, std::string>{{1, "pipeline 2 (straggles)"}, {2, "pipeline 0"}}));
  EXPECT_EQ(threads.size(), 8u);
}

TEST_F(EmulationTraceTest, HoldsEveryComputationAsItRan) {
  std::map<int, double> joules;
  int slices = 0;
  for (const Json& event : events_) {
    if (event.at("ph") != "X") continue;
    ++slices;
    const Json& args = event.at("args");
    joules[event.at("pid")] += args.at("energy_j").get<double>();
    const double seconds = event.at("dur").get<double>() * 1e-6;
    EXPECT_NEAR(args.at("power_w").get<double>() * seconds, args.at("energy_j").get<double>(),
                1e-4 * args.at("energy_j").get<double>());
    EXPECT_TRUE(args.at("clock").is_number());
    // Whole nanoseconds.
    const double ns = event.at("ts").get<double>() * 1e3;
    EXPECT_NEAR(ns, std::round(ns), 1e-3);
  }
  EXPECT_EQ(slices, 2 * 64);
  EXPECT_NEAR(joules[1], 1.25 * joules[2], 1e-6 * joules[1]);
  EXPECT_TRUE(std::any_of(events_.begin(), events_.end(), [](const Json& event) {
    return event.at("name") == "F3" && event.at("ph") == "X";
  }));
}

TEST_F(EmulationTraceTest, PowerIntegratesToTheEnergyUntilTheBarrier) {
  for (int pid = 1; pid <= 2; ++pid) {
    double joules = 0, last_us = 0, watts = 0;
    for (const Json& event : events_) {
      if (event.at("ph") != "C" || event.at("pid") != pid) continue;
      joules += watts * (event.at("ts").get<double>() - last_us) * 1e-6;
      last_us = event.at("ts");
      watts = event.at("args").at("W");
    }
    EXPECT_EQ(watts, 0);
    const EmulatedTimeline& timeline = made_.emulation.timeline;
    EXPECT_NEAR(last_us * 1e-6, timeline.time_seconds, 1e-9);
    double expected = 84 * 4 * timeline.time_seconds;
    for (const EmulatedComputation& ran : timeline.pipelines[pid - 1].computations) {
      expected += ran.joules - 84 * (ran.end_seconds - ran.start_seconds);
    }
    EXPECT_NEAR(joules, expected, 1e-6 * expected);
  }
}

TEST_F(EmulationTraceTest, MarksTheEnds) {
  std::map<std::string, int> markers;
  for (const Json& event : events_) {
    if (event.at("ph") == "i") ++markers[event.at("name")];
  }
  EXPECT_EQ(markers, (std::map<std::string, int>{{"iteration ends", 2}, {"pipeline ends", 2}}));
}

// A change of power costs no look at every rank: that would be 10^11 additions.
TEST(TraceWriterTest, PowerOfManyRanksTakesTimeByComputation) {
  constexpr int kRanks = 200'000;
  CostedPipeline pipeline;
  pipeline.dag.num_ranks = kRanks;
  pipeline.rank_blocking_power_watts.assign(kRanks, 1);
  std::vector<std::int64_t> starts, ends;
  for (int rank = 0; rank < kRanks; ++rank) {
    pipeline.dag.computations.push_back({.rank = rank, .id = {}, .fused = {}});
    starts.push_back(2 * rank);
    ends.push_back(2 * rank + 3);  // Two at a time.
  }
  TraceWriter out;
  out.PipelinePower(1, pipeline, starts, ends, std::vector<double>(kRanks, 4), {}, ends.back());
  std::map<double, int> steps;
  for (const Json& event : ReadTrace(out.bytes())) {
    if (event.at("ph") == "C") ++steps[event.at("args").at("W").get<double>()];
  }
  EXPECT_EQ(steps, (std::map<double, int>{{200'003, kRanks},      // One computes, others wait.
                                          {200'006, kRanks - 1},  // Two do.
                                          {0, 1}}));
}

TEST(EmulationTraceOfNothingTest, IsEmpty) {
  EmulatedSample made = MakeEmulatedSample(1, 1);
  made.emulation.timeline = {};
  EXPECT_EQ(*FormatEmulationTimelineTrace(made.Bare()), "");
}

}  // namespace
}  // namespace perseus::report
