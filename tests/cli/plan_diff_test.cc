// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/planning/diff.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

PlannedComputation Computation(ComputationType type, int stage, int microbatch, double megahertz) {
  PlannedComputation planned;
  planned.id = {type, stage, microbatch};
  planned.knob = {std::to_string(static_cast<int>(megahertz)), megahertz};
  planned.duration_seconds = 1400 / megahertz;
  planned.energy_joules = megahertz / 10;
  return planned;
}

// Two ranks of one stage each with two microbatches, forward and backward.
PlanDocument TwoRanks(double megahertz) {
  PlanDocument plan;
  plan.schedule = "gpipe";
  plan.stages = 2;
  plan.microbatches = 2;
  plan.profile_sha256 = "a";
  plan.profile_source = "a.csv";
  plan.iteration_time_seconds = 10;
  plan.energy_joules = 100;
  plan.saving_percent = 10;
  plan.baseline.iteration_time_seconds = 10;
  for (int stage = 0; stage < 2; ++stage) {
    PlannedRank rank;
    for (const auto type : {ComputationType::kForward, ComputationType::kBackward}) {
      for (int microbatch = 0; microbatch < 2; ++microbatch) {
        rank.computations.push_back(Computation(type, stage, microbatch, megahertz));
      }
    }
    plan.ranks.push_back(std::move(rank));
  }
  return plan;
}

// The plan that `change` makes of TwoRanks(1400).
PlanDocument Changed(const std::function<void(PlanDocument*)>& change) {
  PlanDocument plan = TwoRanks(1400);
  change(&plan);
  return plan;
}

Result<PlanDiff> Compared(const PlanDocument& before, const PlanDocument& after) {
  return ComparePlans({"old", &before}, {"new", &after});
}

std::string TextOf(const PlanDocument& before, const PlanDocument& after) {
  Style style;
  style.columns = 100;
  return PlanDiffText(Compared(before, after).value(), {"old", &before}, {"new", &after}, style);
}

TEST(PlanDiffTest, CountsWhatMoves) {
  const PlanDocument before = TwoRanks(1400);
  PlanDocument after = TwoRanks(1400);
  after.ranks[1].computations[0] = Computation(ComputationType::kForward, 1, 0, 1200);
  after.ranks[1].computations[1] = Computation(ComputationType::kForward, 1, 1, 1500);
  after.ranks[1].computations[2] = Computation(ComputationType::kBackward, 1, 0, 1000);
  const PlanDiff diff = Compared(before, after).value();
  EXPECT_EQ(diff.all.of, 8);
  EXPECT_EQ(diff.all.moved, 3);
  EXPECT_EQ(diff.all.lower, 2);
  EXPECT_EQ(diff.all.higher, 1);
  ASSERT_EQ(diff.ranks.size(), 2u);
  EXPECT_EQ(diff.ranks[0].moved, 0);
  EXPECT_EQ(diff.ranks[1].moved, 3);
  ASSERT_EQ(diff.kinds.size(), 4u);
  const KindDiff& backward = diff.kinds[2];
  EXPECT_EQ(backward.stage, 1);
  EXPECT_EQ(backward.type, "backward");
  EXPECT_EQ(backward.of, 2);
  EXPECT_EQ(backward.moved, 1);
  EXPECT_DOUBLE_EQ(backward.old_mean_knob, 1400);
  EXPECT_DOUBLE_EQ(backward.new_mean_knob, 1200);
  EXPECT_DOUBLE_EQ(backward.old_seconds, 2);
  EXPECT_DOUBLE_EQ(backward.new_seconds, 2.4);
  EXPECT_DOUBLE_EQ(backward.new_joules, 240);
}

TEST(PlanDiffTest, SaysTheResultFirst) {
  PlanDocument after = TwoRanks(1400);
  after.iteration_time_seconds = 11;
  after.energy_joules = 90;
  after.saving_percent = 19;
  after.knob_changes = 3;
  after.ranks[1].computations[0] = Computation(ComputationType::kForward, 1, 0, 1200);
  const std::string text = TextOf(TwoRanks(1400), after);
  EXPECT_THAT(text, HasSubstr("Result    with the new plan an iteration takes 10.00 % longer and "
                              "uses 10.00 % less energy.\n"));
  EXPECT_THAT(text, HasSubstr("saving             10.00 %  19.00 %   +9.00 points\n"));
  EXPECT_THAT(text, HasSubstr("changes of clock         0        3             +3\n"));
  EXPECT_THAT(text, HasSubstr("1 of 8 computations get another one: 1 a lower one, 0 a higher"));
  EXPECT_THAT(text, HasSubstr("Ranks     1 of 2 ranks get other clocks: 1.\n"));
  EXPECT_THAT(text, HasSubstr("    1  forward      1 of 2      1       0  1,400 -> 1,300"));
  // Equal figures are not said.
  for (const char* absent : {"Profile", "Made for", "Limits", "Work", "backward", "emulated"}) {
    EXPECT_THAT(text, Not(HasSubstr(absent)));
  }
}

TEST(PlanDiffTest, ThePlanItselfIsTheSame) {
  const std::string text = TextOf(TwoRanks(1400), TwoRanks(1400));
  EXPECT_THAT(text, HasSubstr("all clocks are the same"));
  EXPECT_THAT(text, HasSubstr("no rank gets other clocks"));
  EXPECT_THAT(text, Not(HasSubstr("stage  computation")));
}

TEST(PlanDiffTest, SaysWhatElsePlansWereMadeFor) {
  const PlanDocument after = Changed([](PlanDocument* plan) {
    plan->profile_sha256 = "b";
    plan->profile_source = "b.csv";
    plan->constraints.granularity = Granularity::kStage;
    plan->conditions.emplace().noise.per_computation = 0.01;
    plan->expected.emplace().saving_percent = 7.25;
    plan->data_parallel = 4;
    plan->profile_modelled = "MODELLED.";
    plan->ranks[0].computations[0].work = 2;
    plan->ranks[1].waiting_knob = Knob{"300", 300};
  });
  const std::string text = TextOf(TwoRanks(1400), after);
  EXPECT_THAT(text, HasSubstr("Profile   another one (a.csv and b.csv)"));
  EXPECT_THAT(text, HasSubstr("Limits    old: none. New: granularity = stage.\n"));
  EXPECT_THAT(text, HasSubstr("Made for  old: every clock comes in time, and nothing varies. New: "
                              "noise of 1 %"));
  EXPECT_THAT(text, HasSubstr("emulated saving           n/a   7.25 %\n"));
  EXPECT_THAT(text, HasSubstr("Pipelines old: 1. New: 4.\n"));
  EXPECT_THAT(text, HasSubstr("Note      old: measured. New: MODELLED."));
  EXPECT_THAT(text, HasSubstr("Work      1 of 8 computations have another amount of work.\n"));
  EXPECT_THAT(text, HasSubstr("Waiting at another clock: 1.\n"));
}

TEST(PlanDiffTest, JoinsRanksThatFollowEachOther) {
  PlanDocument before = TwoRanks(1400);
  before.ranks.resize(1);
  for (int rank = 1; rank < 7; ++rank) before.ranks.push_back(before.ranks[0]);
  PlanDocument after = before;
  for (const int rank : {0, 1, 2, 4, 6}) {
    after.ranks[rank].computations[0] = Computation(ComputationType::kForward, 0, 0, 1200);
  }
  EXPECT_THAT(TextOf(before, after), HasSubstr("5 of 7 ranks get other clocks: 0-2, 4, 6.\n"));
}

TEST(PlanDiffTest, LabelsAreNeitherLowerNorHigher) {
  const auto labels = [](PlanDocument* plan) { plan->knobs_are_numbers = false; };
  const PlanDocument before = Changed(labels);
  PlanDocument after = before;
  after.ranks[0].computations[0].knob.label = "cap-200";
  const std::string text = TextOf(before, after);
  EXPECT_THAT(text, HasSubstr("1 of 8 computations get another one.\n"));
  EXPECT_THAT(text, Not(HasSubstr("MHz")));
  const PlanDiff diff = Compared(before, after).value();
  const auto json = PlanDiffJson(diff, {"old", &before}, {"new", &after});
  EXPECT_FALSE(json.contains("lower"));
  EXPECT_EQ(json["moved"], 1);
}

TEST(PlanDiffTest, RefusesPlansOfDifferentJobs) {
  const struct {
    std::function<void(PlanDocument*)> change;
    std::string says;
  } cases[] = {
      {[](PlanDocument* plan) { plan->stages = 4; }, "(stages: 2 and 4)"},
      {[](PlanDocument* plan) { plan->virtual_stages = 2; }, "(virtual stages: 1 and 2)"},
      {[](PlanDocument* plan) { plan->microbatches = 3; }, "(microbatches: 2 and 3)"},
      {[](PlanDocument* plan) { plan->tensor_parallel = 8; },
       "(tensor-parallel GPUs a rank: 1 and 8)"},
      {[](PlanDocument* plan) { plan->knobs_are_numbers = false; },
       "(what is set: clocks in MHz and knobs that are labels)"},
      {[](PlanDocument* plan) { plan->ranks.pop_back(); }, "(ranks: 2 and 1)"},
      {[](PlanDocument* plan) { plan->ranks[1].computations.pop_back(); },
       "(computation 3 of rank 1: backward of stage 1, microbatch 1 and nothing)"},
      {[](PlanDocument* plan) {
         std::swap(plan->ranks[0].computations[1], plan->ranks[0].computations[2]);
       },
       "(computation 1 of rank 0: forward of stage 0, microbatch 1 and backward of stage 0, "
       "microbatch 0)"},
  };
  for (const auto& each : cases) {
    const auto diff = Compared(TwoRanks(1400), Changed(each.change));
    ASSERT_FALSE(diff) << each.says;
    EXPECT_EQ(diff.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(diff.error().message,
                HasSubstr("old and new are plans of different jobs " + each.says));
  }
}

}  // namespace
}  // namespace perseus::cli
