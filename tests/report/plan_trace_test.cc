// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "perseus/report.h"
#include "report_fixture.h"
#include "trace_reader.h"

namespace perseus::report {
namespace {

using Json = nlohmann::json;

std::vector<Json> Events(const Json& trace, const std::string& phase, int pid) {
  std::vector<Json> found;
  for (const Json& event : trace) {
    if (event.at("ph") == phase && event.at("pid") == pid) found.push_back(event);
  }
  return found;
}

class PlanTraceTest : public ::testing::Test {
 protected:
  const Sample sample_ = MakeSample("1f1b", 4, 1, 8);
  const std::string text_ = *FormatTimelineTrace(sample_.Input());
  const Json trace_ = ReadTrace(text_);
};

TEST_F(PlanTraceTest, NamesProcessesAndThreadsWithIdsThatPerfettoKeepsApart) {
  std::set<int> all_tids;
  const std::map<int, std::string> processes = {{1, "before: all-maximum clocks"},
                                                {2, "after: plan"}};
  for (const auto& [pid, process_name] : processes) {
    std::vector<std::string> threads;
    std::string name;
    for (const Json& event : Events(trace_, "M", pid)) {
      if (event.at("name") == "process_name") name = event.at("args").at("name");
      if (event.at("name") == "thread_name") {
        threads.push_back(event.at("args").at("name"));
        EXPECT_TRUE(all_tids.insert(event.at("tid").get<int>()).second);
      }
    }
    EXPECT_EQ(name, process_name);
    EXPECT_EQ(threads, (std::vector<std::string>{"rank 0 (stage 0)", "rank 1 (stage 1)",
                                                 "rank 2 (stage 2)", "rank 3 (stage 3)"}));
    EXPECT_FALSE(all_tids.contains(pid));
  }
  EXPECT_FALSE(all_tids.contains(0));
}

TEST_F(PlanTraceTest, SlicesAreThePlansComputations) {
  for (int pid = 1; pid <= 2; ++pid) {
    const Plan& plan = pid == 1 ? sample_.baseline : sample_.chosen;
    const std::vector<Json> slices = Events(trace_, "X", pid);
    ASSERT_EQ(slices.size(), static_cast<std::size_t>(sample_.pipeline.dag.size()));
    std::size_t k = 0;
    for (const std::vector<int>& order : sample_.pipeline.dag.rank_order) {
      double previous_end = 0;
      for (const int i : order) {
        const Json& slice = slices[k++];
        const ComputationId& id = sample_.pipeline.dag.computations[i].id;
        const CostOption& option = plan.options[i];
        EXPECT_EQ(slice.at("name"),
                  std::string(1, ComputationTypeLetter(id.type)) + std::to_string(id.microbatch));
        EXPECT_EQ(slice.at("args").at("stage"), id.stage);
        EXPECT_EQ(slice.at("args").at("clock"), sample_.pipeline.knobs[option.knob].number);
        EXPECT_NEAR(slice.at("args").at("energy_j").get<double>(), option.energy_joules, 1e-6);
        EXPECT_NEAR(slice.at("dur").get<double>(), option.time_seconds * 1e6, 2e-3);
        // Nanoseconds are whole, so a rounding in doubles is all that may differ.
        EXPECT_GE(slice.at("ts").get<double>(), previous_end - 1e-6);
        previous_end = slice.at("ts").get<double>() + slice.at("dur").get<double>();
      }
    }
  }
}

TEST_F(PlanTraceTest, TotalPowerIntegratesToTheEnergyOfThePlan) {
  for (int pid = 1; pid <= 2; ++pid) {
    const Plan& plan = pid == 1 ? sample_.baseline : sample_.chosen;
    double joules = 0, watts = 0, since = 0;
    for (const Json& event : Events(trace_, "C", pid)) {
      if (event.at("name") != "pipeline power (W)") continue;
      joules += watts * (event.at("ts").get<double>() - since) * 1e-6;
      watts = event.at("args").at("W");
      since = event.at("ts");
    }
    EXPECT_NEAR(since * 1e-6, plan.iteration_time_seconds, 1e-9);
    EXPECT_EQ(watts, 0);
    EXPECT_NEAR(joules, plan.energy_joules, 1e-6 * plan.energy_joules);
  }
}

TEST_F(PlanTraceTest, EveryRankHasAClockTrack) {
  std::set<std::string> tracks;
  for (const Json& event : Events(trace_, "C", 2)) tracks.insert(event.at("name"));
  EXPECT_EQ(tracks,
            (std::set<std::string>{"pipeline power (W)", "rank 0 clock (MHz)", "rank 1 clock (MHz)",
                                   "rank 2 clock (MHz)", "rank 3 clock (MHz)"}));
}

TEST_F(PlanTraceTest, IsDeterministic) { EXPECT_EQ(*FormatTimelineTrace(sample_.Input()), text_); }

TEST(PlanTraceLabelTest, HostileLabelsStayStrings) {
  Sample sample = MakeSample("dualpipev", 8, 2, 8);
  sample.pipeline.knobs_are_numbers = false;
  const std::string hostile = "\"},\n{\"\\ \xff";
  for (Knob& knob : sample.pipeline.knobs) knob.label = hostile;
  const Json trace = ReadTrace(*FormatTimelineTrace(sample.Input()));
  bool fused = false;
  for (const Json& slice : Events(trace, "X", 2)) {
    EXPECT_EQ(slice.at("args").at("clock"), hostile);
    fused = fused || slice.at("args").contains("fused_stage");
  }
  EXPECT_TRUE(fused);
}

}  // namespace
}  // namespace perseus::report
