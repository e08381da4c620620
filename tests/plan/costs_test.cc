// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "model/saving_interval.h"
#include "perseus/costed_pipeline.h"
#include "perseus/planner.h"
#include "plan/cost_options.h"
#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::ProfileOf;
using testing::HasSubstr;

MATCHER_P3(IsOption, knob, time, energy, "") {
  return arg.knob == knob && arg.time_seconds == time && arg.energy_joules == energy;
}

constexpr const char* kOneStage =
    "0,forward,1400,1,100\n0,forward,1200,1.25,90\n0,forward,1000,2,60\n0,forward,800,2.5,100\n"
    "0,backward,1400,2,200\n0,backward,1200,2.5,150\n";

std::string ErrorOf(const std::string& rows, const PipelineDag& dag, const CostSpec& spec) {
  const auto pipeline = CostPipeline(ProfileOf(rows), dag, spec);
  if (pipeline) return "no error";
  EXPECT_EQ(pipeline.error().code, ErrorCode::kInvalidInput);
  return pipeline.error().message;
}

TEST(CostsTest, KeepsWhatIsParetoOptimalInEffectiveEnergy) {
  // Effective energies at 0 W: 100, 90, 60, 100.
  const CostedPipeline plain = Costed(kOneStage, DagOf("1f1b", 1, 1), Blocking(0));
  const CostTable& forward = plain.TableOf(0);
  EXPECT_EQ(forward.type, ComputationType::kForward);
  EXPECT_THAT(forward.options,
              testing::ElementsAre(IsOption(0, 1, 100), IsOption(1, 1.25, 90), IsOption(2, 2, 60)));
  EXPECT_EQ(forward.dominated, 1);
  EXPECT_EQ(forward.all_options.size(), 4U);
  // At 80 W: 20, -10, -100, -100: as cheap and slower is dominated.
  const CostedPipeline waiting = Costed(kOneStage, DagOf("1f1b", 1, 1), Blocking(80));
  EXPECT_EQ(waiting.TableOf(0).options.size(), 3U);
  // At 81 W the slowest one pays.
  const CostedPipeline more = Costed(kOneStage, DagOf("1f1b", 1, 1), Blocking(81));
  EXPECT_EQ(more.TableOf(0).options.size(), 4U);
  EXPECT_EQ(more.TableOf(0).dominated, 0);
}

TEST(CostsTest, TheBaselineIsTheHighestClockEvenWhereDominated) {
  const std::string rows = "0,forward,1000,1,90\n0,forward,1400,1.5,100\n0,backward,1400,1,1\n";
  const CostedPipeline pipeline = Costed(rows, DagOf("1f1b", 1, 1), Blocking(0));
  EXPECT_THAT(pipeline.TableOf(0).baseline, IsOption(0, 1.5, 100));
  EXPECT_THAT(pipeline.TableOf(0).options, testing::ElementsAre(IsOption(1, 1, 90)));
  EXPECT_THAT(pipeline.TableOf(0).all_options,
              testing::ElementsAre(IsOption(0, 1.5, 100), IsOption(1, 1, 90)));
}

TEST(CostsTest, LabelsTakeTheFastestAsBaseline) {
  const std::string rows =
      "0,forward,quiet,2,50\n0,forward,loud,1,90\n0,backward,loud,1,9\n0,backward,quiet,2,5\n";
  const CostedPipeline pipeline = Costed(rows, DagOf("1f1b", 1, 1), Blocking(0));
  EXPECT_FALSE(pipeline.knobs_are_numbers);
  EXPECT_EQ(pipeline.knobs[pipeline.TableOf(0).baseline.knob].label, "loud");
}

TEST(CostsTest, TheBaselineOfPartsThatRunAsOneIsTheFastestLabelOfBoth) {
  // The fastest of the parts are at different labels.
  const std::string rows =
      "0,forward,a,1,10\n"
      "0,backward_input,a,1,10\n0,backward_input,b,2,8\n0,backward_input,c,1.5,8\n"
      "0,backward_weight,a,4,5\n0,backward_weight,b,2,4\n0,backward_weight,c,2.25,4\n";
  const CostedPipeline pipeline = Costed(rows, DagOf("1f1b", 1, 1), Blocking(0));
  EXPECT_THAT(pipeline.TableOf(1).baseline, IsOption(2, 3.75, 12));
}

TEST(CostsTest, TensorParallelismMultipliesEnergiesAndBlockingPower) {
  CostSpec spec = Blocking(50);
  spec.tensor_parallel = 4;
  const CostedPipeline pipeline = Costed(kOneStage, DagOf("1f1b", 1, 1), spec);
  EXPECT_EQ(pipeline.tensor_parallel, 4);
  EXPECT_EQ(pipeline.total_blocking_power_watts, 200);
  EXPECT_EQ(pipeline.TableOf(0).blocking_power_watts, 200);
  EXPECT_THAT(pipeline.TableOf(0).baseline, IsOption(0, 1, 400));
}

TEST(CostsTest, RanksOfTheProfileAreSummedOnce) {
  const std::string rows =
      "stage,instruction,knob,time,energy,tp_rank\n"
      "0,forward,1400,1,100,0\n0,forward,1400,1.5,110,1\n"
      "0,backward,1400,2,200,0\n0,backward,1400,2,220,1\n";
  const CostedPipeline pipeline = Costed(rows, DagOf("1f1b", 1, 1), Blocking(50));
  EXPECT_EQ(pipeline.tensor_parallel, 2);
  EXPECT_THAT(pipeline.TableOf(0).baseline, IsOption(0, 1.5, 210));
  EXPECT_EQ(pipeline.total_blocking_power_watts, 100);

  CostSpec wrong = Blocking(50);
  wrong.tensor_parallel = 4;
  EXPECT_THAT(ErrorOf(rows, DagOf("1f1b", 1, 1), wrong), Mentions("p.csv", "2", "tp_rank", "4"));
}

TEST(CostsTest, EveryRankMayWaitAtAPowerOfItsOwn) {
  const std::string rows =
      "0,forward,1400,1,100\n0,backward,1400,1,100\n1,forward,1400,1,100\n1,backward,1400,1,100\n";
  CostSpec spec;
  spec.blocking_power_watts = {10, 30};
  const CostedPipeline pipeline = Costed(rows, DagOf("1f1b", 2, 1), spec);
  EXPECT_THAT(pipeline.rank_blocking_power_watts, testing::ElementsAre(10, 30));
  EXPECT_EQ(pipeline.total_blocking_power_watts, 40);
  std::vector<CostOption> chosen;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    EXPECT_EQ(pipeline.TableOf(i).blocking_power_watts, pipeline.TableOf(i).stage == 0 ? 10 : 30);
    chosen.push_back(pipeline.TableOf(i).baseline);
  }
  // 4 computations, and two seconds of waiting on each rank.
  EXPECT_EQ(plan::IterationEnergy(pipeline, chosen, 4), 400 + 2 * 10 + 2 * 30);
}

const std::string kTwoClocks =
    "0,forward,1400,1,100\n0,backward,1400,1,100\n1,forward,1400,1,100\n1,backward,1400,1,100\n"
    "0,forward,700,1.5,80\n0,backward,700,1.5,80\n1,forward,700,1.5,80\n1,backward,700,1.5,80\n";

TEST(CostsTest, WaitingDrawsWhatItsClockDoes) {
  CostSpec spec = Blocking(55);
  const CostedPipeline pipeline =
      Costed(kTwoClocks + "0,blocking,1400,1,30\n0,blocking,700,1,10\n", DagOf("1f1b", 2, 1), spec);
  EXPECT_THAT(pipeline.rank_blocking_power_watts, testing::ElementsAre(10, 55));
  EXPECT_EQ(pipeline.DearerWatts(0, 0), 20);
  EXPECT_EQ(pipeline.DearerWatts(1, 0), 0);
  EXPECT_EQ(pipeline.WaitingKnob(0), 1);
  EXPECT_EQ(pipeline.WaitingKnob(1), 0);  // Of equal ones the highest.
  EXPECT_TRUE(pipeline.Validate());
  const auto planner = Planner::Create(pipeline, {});
  ASSERT_TRUE(planner);
  // Rank 0 waits 2 s, between its forward and its backward; rank 1 waits as long.
  EXPECT_DOUBLE_EQ(planner->baseline().energy_joules, 400 + 2 * 30 + 2 * 55);
  const auto cheap = planner->Evaluate(planner->baseline().options, Waiting::kCheapest);
  EXPECT_DOUBLE_EQ(cheap->energy_joules, 400 + 2 * 10 + 2 * 55);
  EXPECT_NE(Costed(kTwoClocks, DagOf("1f1b", 2, 1), spec).Fingerprint(), pipeline.Fingerprint());
}

TEST(CostsTest, WaitingKeepsTheClockOfTheComputationBefore) {
  const std::string rows = kTwoClocks + ",blocking,1400,1,30\n,blocking,700,1,10\n";
  const CostedPipeline pipeline = Costed(rows, DagOf("1f1b", 2, 1), {});
  const auto planner = Planner::Create(pipeline, {});
  ASSERT_TRUE(planner);
  std::vector<CostOption> options = planner->baseline().options;
  const int forward = pipeline.dag.rank_order[0][0];
  options[forward] = pipeline.TableOf(forward).all_options[1];
  // Rank 0 waits 2 s after its slow forward. Rank 1 waits 1.5 s before and 1 s after, both at the
  // clock of its last computation.
  EXPECT_DOUBLE_EQ(planner->Evaluate(options)->energy_joules, 380 + 2 * 10 + 2.5 * 30);
}

TEST(CostsTest, WaitingMayBeTakenAsConstant) {
  CostSpec spec;
  spec.waiting_is_constant = true;
  const CostedPipeline pipeline =
      Costed(kTwoClocks + ",blocking,1400,1,30\n,blocking,700,1,10\n", DagOf("1f1b", 2, 1), spec);
  EXPECT_FALSE(pipeline.waiting_depends_on_clock());
  EXPECT_THAT(pipeline.rank_blocking_power_watts, testing::ElementsAre(30, 30));
  ASSERT_FALSE(pipeline.notes.empty());
  EXPECT_THAT(ErrorOf(kTwoClocks + "0,blocking,1400,1,30\n", DagOf("1f1b", 2, 1), {}),
              Mentions("blocking", "rank", "1"));
}

TEST(CostsTest, SplitsABackwardByTheRatio) {
  CostSpec spec = Blocking(0);
  spec.split_ratio = 0.25;
  const PipelineDag dag = DagOf("zbv-zero-bubble", 2, 2, {}, 2);
  std::string rows;
  for (const char* stage : {"0", "1"}) {
    rows += std::string(stage) + ",forward,1400,1,10\n" + stage + ",backward,1400,4,80\n";
  }
  const CostedPipeline pipeline = Costed(rows, dag, spec);
  for (const CostTable& table : pipeline.tables) {
    if (table.type == ComputationType::kForward) {
      EXPECT_FALSE(table.split);
      continue;
    }
    EXPECT_TRUE(table.split);
    const bool input = table.type == ComputationType::kBackwardInput;
    EXPECT_THAT(table.baseline, IsOption(0, input ? 1 : 3, input ? 20 : 60));
  }
}

TEST(CostsTest, JoinsInputAndWeightWhereTheScheduleRunsThemAsOne) {
  const std::string rows =
      "0,forward,1400,1,10\n"
      "0,backward_input,1400,1,10\n0,backward_input,1200,2,8\n"
      "0,backward_weight,1200,3,5\n0,backward_weight,1000,4,4\n";
  const CostedPipeline pipeline = Costed(rows, DagOf("1f1b", 1, 1), Blocking(0));
  const CostTable& backward = pipeline.TableOf(1);
  EXPECT_EQ(backward.type, ComputationType::kBackward);
  EXPECT_THAT(backward.all_options, testing::ElementsAre(IsOption(1, 5, 13)));
  EXPECT_THAT(backward.baseline, IsOption(1, 5, 13));
  EXPECT_FALSE(backward.split);
  EXPECT_THAT(ErrorOf("0,forward,1400,1,10\n0,backward_input,1400,1,10\n"
                      "0,backward_weight,1200,3,5\n",
                      DagOf("1f1b", 1, 1), Blocking(0)),
              Mentions("backward_input", "backward_weight", "common;"));
}

// Backwards of two stages, and one of their halves.
std::string BackwardAnd(const char* part) {
  std::string rows;
  for (const char* stage : {"0", "1"}) {
    for (const char* row :
         {"forward,1400,1,10", "backward,1400,4,80", "backward,1200,5,60", "backward,1000,7,50"}) {
      rows += fmt::format("{},{}\n", stage, row);
    }
    rows += fmt::format("{0},{1},1400,1,30\n{0},{1},1000,2,20\n", stage, part);
  }
  return rows;
}

TEST(CostsTest, TheHalfThatIsNotMeasuredIsTheRestOfBackward) {
  const PipelineDag dag = DagOf("zbv-zero-bubble", 2, 2, {}, 2);
  for (const char* part : {"backward_input", "backward_weight"}) {
    const CostedPipeline pipeline = Costed(BackwardAnd(part), dag, Blocking(0));
    int halves = 0;
    for (const CostTable& table : pipeline.tables) {
      EXPECT_FALSE(table.split);
      if (table.type == ComputationType::kForward) continue;
      ++halves;
      if (ComputationTypeName(table.type) == part) {
        EXPECT_THAT(table.all_options,
                    testing::ElementsAre(IsOption(0, 1, 30), IsOption(2, 2, 20)));
      } else {
        EXPECT_THAT(table.all_options,
                    testing::ElementsAre(IsOption(0, 3, 50), IsOption(2, 5, 30)));
        EXPECT_THAT(table.baseline, IsOption(0, 3, 50));
      }
    }
    EXPECT_EQ(halves, 4);
    EXPECT_TRUE(pipeline.notes.empty());
  }
}

TEST(CostsTest, TheRestOfBackwardMustBeSomething) {
  const PipelineDag dag = DagOf("zbv-zero-bubble", 2, 2, {}, 2);
  const auto rows = [](const char* input) {
    std::string text;
    for (const char* stage : {"0", "1"}) {
      text += fmt::format("{0},forward,1400,1,10\n{0},backward,1400,4,80\n{0},backward_input,{1}\n",
                          stage, input);
    }
    return text;
  };
  EXPECT_EQ(ErrorOf(rows("1400,4,30"), dag, Blocking(0)),
            "p.csv: the schedule runs backward_weight of stage 1, which is backward less "
            "backward_input, but at 1400 that is 0 s, as backward_input takes no less; correct the "
            "rows, or add some with instruction backward_weight");
  EXPECT_THAT(ErrorOf(rows("1400,1,81"), dag, Blocking(0)), Mentions("1400", "-1"));
  EXPECT_THAT(ErrorOf(rows("1200,1,30"), dag, Blocking(0)), Mentions("less", "rows"));
}

TEST(CostsTest, SaysWhatTheScheduleHasNoUseFor) {
  const std::string rows =
      "0,forward,1400,1,10\n0,backward,1400,4,80\n0,backward_input,1400,1,30\n";
  EXPECT_THAT(Costed(rows, DagOf("1f1b", 1, 1), Blocking(0)).notes,
              testing::ElementsAre(
                  testing::Field(&Note::text,
                                 "the schedule does not run backward_input by itself, so the "
                                 "profile's rows of it are not used (stage 0)")));
  EXPECT_THAT(Costed(BackwardAnd("backward_weight"), DagOf("1f1b", 2, 1), Blocking(0)).notes,
              testing::ElementsAre(testing::Field(&Note::text, Mentions("stage", "0", "1"))));
  EXPECT_TRUE(Costed(kOneStage, DagOf("1f1b", 1, 1), Blocking(0)).notes.empty());
}

TEST(CostsTest, ARecomputeCostsItsRowsOrWhatTheForwardDoes) {
  const PipelineDag dag = DagOf("early-recomputation-1f1b", 2, 1);
  std::string rows;
  for (const char* stage : {"0", "1"}) {
    rows += fmt::format(
        "{0},forward,1400,1,10\n{0},forward,1200,2,8\n{0},backward,1400,4,80\n"
        "{0},backward,1200,5,60\n",
        stage);
  }
  const auto recompute = [&](const CostedPipeline& pipeline, int stage) {
    return pipeline.TableOf(*pipeline.dag.Find({ComputationType::kRecompute, stage, 0}));
  };
  const CostedPipeline as_forward = Costed(rows, dag, Blocking(0));
  EXPECT_THAT(recompute(as_forward, 0).all_options,
              testing::ElementsAre(IsOption(0, 1, 10), IsOption(1, 2, 8)));
  // The last rank recomputes as part of its backward.
  EXPECT_THAT(recompute(as_forward, 1).all_options,
              testing::ElementsAre(IsOption(0, 5, 90), IsOption(1, 7, 68)));
  EXPECT_THAT(as_forward.notes,
              testing::ElementsAre(testing::Field(&Note::text, Mentions("recompute", "forward"))));

  const std::string both = rows + "0,recompute,1400,3,30\n1,recompute,1400,2,20\n";
  const CostedPipeline measured = Costed(both, dag, Blocking(0));
  EXPECT_THAT(recompute(measured, 0).all_options, testing::ElementsAre(IsOption(0, 3, 30)));
  EXPECT_THAT(recompute(measured, 1).all_options, testing::ElementsAre(IsOption(0, 6, 100)));
  EXPECT_TRUE(measured.notes.empty());

  // Who measured some stages measured a loop that does not recompute in the others.
  EXPECT_THAT(ErrorOf(rows + "0,recompute,1400,3,30\n", dag, Blocking(0)),
              Mentions("recompute", "1", "rows"));
}

TEST(CostsTest, RemembersThatTheProfileIsModelled) {
  Profile profile = ProfileOf(kOneStage);
  profile.modelled = "MODELLED";
  EXPECT_EQ(CostPipeline(profile, DagOf("1f1b", 1, 1), Blocking(0))->modelled, "MODELLED");
}

TEST(CostsTest, AFusedPairRunsAtOneKnob) {
  const PipelineDag dag = DagOf("dualpipev", 4, 4, {}, 2);
  std::string rows;
  for (const char* stage : {"0", "1", "2", "3"}) {
    rows += std::string(stage) + ",forward,1400,1,10\n" + stage + ",forward,1200,2,8\n";
    rows += std::string(stage) + ",backward,1400,2,20\n" + stage + ",backward,1200,3,12\n";
  }
  const CostedPipeline pipeline = Costed(rows, dag, Blocking(0));
  int fused = 0;
  for (const CostTable& table : pipeline.tables) {
    if (!table.fused_type || table.fused_type != ComputationType::kBackward) continue;
    ++fused;
    EXPECT_THAT(table.all_options, testing::ElementsAre(IsOption(0, 3, 30), IsOption(1, 5, 20)));
  }
  EXPECT_GT(fused, 0);

  std::string apart;
  for (const char* stage : {"0", "1", "2", "3"}) {
    apart += std::string(stage) + ",forward,1400,1,10\n" + stage + ",backward,1200,3,12\n";
  }
  EXPECT_THAT(ErrorOf(apart, dag, Blocking(0)), Mentions("one,", "common;"));
}

TEST(CostsTest, SaysWhatIsWrong) {
  const PipelineDag dag = DagOf("1f1b", 1, 1);
  CostSpec spec;
  EXPECT_THAT(ErrorOf(kOneStage, dag, spec), Mentions("0", "blocking", "1", "ranks"));
  spec.blocking_power_watts = {1, 2};
  EXPECT_THAT(ErrorOf(kOneStage, dag, spec), Mentions("2", "blocking", "1", "ranks"));
  for (const double bad :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(ErrorOf(kOneStage, dag, Blocking(bad)), Mentions(">=", "0"));
  }
  for (const double bad : {0.0, 1.0, -0.5, std::numeric_limits<double>::quiet_NaN()}) {
    spec = Blocking(1);
    spec.split_ratio = bad;
    EXPECT_THAT(ErrorOf(kOneStage, dag, spec), Mentions("split", "ratio"));
  }
  spec = Blocking(1);
  spec.tensor_parallel = -1;
  EXPECT_THAT(ErrorOf(kOneStage, dag, spec), Mentions("tensor", "-1"));
  EXPECT_THAT(ErrorOf(kOneStage, DagOf("1f1b", 2, 1), Blocking(1)), Mentions("p.csv", "1", "2"));
  // The reader makes sure of this, but a profile may be made without it.
  Profile forward_only = ProfileOf(kOneStage);
  forward_only.tables.pop_back();
  const auto lacking = CostPipeline(forward_only, dag, Blocking(1));
  ASSERT_FALSE(lacking);
  EXPECT_THAT(lacking.error().message, Mentions("stage", "0"));
}

// A recompute that was not measured costs what the forward does, and has its errors.
TEST(Costs, ARecomputeHasTheErrorsOfItsForward) {
  std::string rows = "stage,instruction,frequency,time,energy,error_sources\n";
  for (const char* const stage : {"0,", "1,"}) {
    for (const char* const row : {"forward,1400,1,100", "forward,1200,1.1,80",
                                  "backward,1400,2,200", "backward,1200,2.2,160"}) {
      rows.append(stage).append(row).append(",0.01 0.001|0.01 0.001|0.01\n");
    }
  }
  const Result<Profile> profile = ParseProfile(rows, "p.csv");
  ASSERT_TRUE(profile) << profile.error().message;
  const auto schedule = BuildSchedule({"early-recomputation-1f1b", 2, 1, 2});
  CostSpec spec;
  spec.blocking_power_watts = {20};
  const auto pipeline = CostPipeline(*profile, *BuildDag(*schedule, {}), spec);
  ASSERT_TRUE(pipeline) << pipeline.error().message;
  std::vector<CostOption> slowest;
  for (int i = 0; i < pipeline->dag.size(); ++i) {
    slowest.push_back(pipeline->TableOf(i).all_options.back());
  }
  const auto interval = model::IntervalOfSaving(*pipeline, slowest, Waiting::kSetClock);
  ASSERT_TRUE(interval);
  EXPECT_GT(interval->most_percent, interval->least_percent);
}

}  // namespace
}  // namespace perseus
