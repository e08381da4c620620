// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "perseus/pipeline.h"
#include "schedule_testing.h"

namespace perseus {
namespace {

using enum ComputationType;

PipelineDag DagFor(const ScheduleSpec& spec, const FixedTimes& fixed = {}) {
  return BuildDag(BuildSchedule(spec).value(), fixed).value();
}

std::vector<double> Durations(const PipelineDag& dag, double forward, double backward) {
  std::vector<double> durations;
  for (const Computation& computation : dag.computations) {
    durations.push_back(computation.id.type == kForward ? forward : backward);
  }
  return durations;
}

TEST(ReplayTest, IterationTimesKnownFromTheLiterature) {
  // 1F1B and GPipe: (m + P - 1)(f + b).
  for (const std::string name : {"1f1b", "gpipe"}) {
    const PipelineDag dag = DagFor({name, 4, 1, 8});
    const Timing timing = Replay(dag, Durations(dag, 1, 2));
    EXPECT_EQ(timing.iteration_time_seconds, (8 + 3) * 3) << name;
  }
  // Interleaving divides the bubble by V: m V (f + b) + (P - 1)(f + b).
  const PipelineDag interleaved = DagFor({"interleaved-1f1b", 8, 2, 8});
  EXPECT_EQ(Replay(interleaved, Durations(interleaved, 1, 2)).iteration_time_seconds, (16 + 3) * 3);
  // ZB-V with F = I = W: 6 m units on the first rank, P - 1 of idle time.
  const PipelineDag zbv = DagFor({"zbv", 8, 2, 8});
  EXPECT_EQ(Replay(zbv, Durations(zbv, 1, 1)).iteration_time_seconds, 6 * 8 + 3);
}

TEST(ReplayTest, FixedTimes) {
  FixedTimes fixed;
  fixed.comm_delay_seconds = {10};
  fixed.data_loading_seconds = 100;
  fixed.iteration_overhead_seconds = 1000;
  const PipelineDag dag = DagFor({"1f1b", 2, 1, 1}, fixed);
  // Load, F, send, F, B, send, B, step.
  EXPECT_EQ(Replay(dag, Durations(dag, 1, 2)).iteration_time_seconds,
            100 + 1 + 10 + 1 + 2 + 10 + 2 + 1000);
  const PipelineDag alone = DagFor({"1f1b", 1, 1, 3}, fixed);
  EXPECT_EQ(Replay(alone, Durations(alone, 1, 2)).iteration_time_seconds, 3 * 103 + 1000);
}

// Every dependency of the model, stated anew: nothing of the DAG is used but
// which computation is which.
void ExpectDependenciesHold(const PipelineDag& dag, const Timing& timing, const FixedTimes& fixed) {
  std::map<ComputationId, int> at;
  for (int i = 0; i < dag.size(); ++i) {
    const Computation& computation = dag.computations[i];
    at[computation.id] = i;
    if (computation.fused) at[*computation.fused] = i;
  }
  const auto backward_of = [&](int stage, int microbatch) {
    const auto whole = at.find({kBackward, stage, microbatch});
    return whole != at.end() ? whole->second : at.at({kBackwardInput, stage, microbatch});
  };
  const auto holds = [&](int from, int to, double transfer) {
    const bool same_rank = dag.computations[from].rank == dag.computations[to].rank;
    RC_ASSERT(timing.start_seconds[to] >= timing.end_seconds[from] + (same_rank ? 0.0 : transfer));
  };
  for (const auto& [id, i] : at) {
    const auto [type, stage, microbatch] = id;
    switch (type) {
      case kForward:
        if (stage > 0) {
          holds(at.at({kForward, stage - 1, microbatch}), i, fixed.comm_delay_seconds[stage - 1]);
        } else {
          RC_ASSERT(timing.start_seconds[i] >= fixed.data_loading_seconds);
        }
        break;
      case kBackward:
      case kBackwardInput:
        holds(at.at({kForward, stage, microbatch}), i, 0);
        if (const auto recompute = at.find({kRecompute, stage, microbatch});
            recompute != at.end() && recompute->second != i) {
          holds(recompute->second, i, 0);
        }
        if (stage + 1 < dag.num_stages) {
          holds(backward_of(stage + 1, microbatch), i, fixed.comm_delay_seconds[stage]);
        }
        break;
      case kBackwardWeight:
        holds(at.at({kBackwardInput, stage, microbatch}), i, 0);
        break;
      case kRecompute:
        holds(at.at({kForward, stage, microbatch}), i, 0);
        break;
    }
  }
}

RC_GTEST_PROP(ReplayTest, RandomDurationsKeepEveryDependencyAndLeaveNoSlack, ()) {
  static const std::vector<ScheduleSpec> kShapes = AllShapes(4, 9, 3);
  const ScheduleSpec spec = *rc::gen::elementOf(kShapes);
  const auto milliseconds = [](int most) { return *rc::gen::inRange(0, most) * 1e-3; };
  FixedTimes fixed;
  for (int i = 0; i + 1 < spec.num_stages; ++i) {
    fixed.comm_delay_seconds.push_back(milliseconds(5));
  }
  fixed.data_loading_seconds = milliseconds(5);
  const PipelineDag dag = DagFor(spec, fixed);
  std::vector<double> durations;
  for (int i = 0; i < dag.size(); ++i) durations.push_back(milliseconds(100));
  const Timing timing = Replay(dag, durations);
  ExpectDependenciesHold(dag, timing, fixed);
  double last_end = 0;
  for (int to = 0; to < dag.size(); ++to) {
    RC_ASSERT(timing.end_seconds[to] == timing.start_seconds[to] + durations[to]);
    last_end = std::max(last_end, timing.end_seconds[to]);
    // As early as possible: something ends just then.
    double cause = dag.start_delay_seconds[to];
    for (int k = dag.first_precedence[to]; k < dag.first_precedence[to + 1]; ++k) {
      const Precedence& p = dag.precedences[k];
      cause = std::max(cause, timing.end_seconds[p.from] + p.delay_seconds);
    }
    RC_ASSERT(timing.start_seconds[to] == cause);
  }
  RC_ASSERT(timing.iteration_time_seconds == last_end);
}

// The definition: critical is what makes the iteration longer when it is.
RC_GTEST_PROP(CriticalComputationsTest, AreThoseWhoseDelayDelaysTheIteration, ()) {
  static const std::vector<ScheduleSpec> kShapes = AllShapes(3, 5, 2);
  const PipelineDag dag = DagFor(*rc::gen::elementOf(kShapes));
  std::vector<double> durations;
  for (int i = 0; i < dag.size(); ++i) durations.push_back(*rc::gen::inRange(1, 6));
  const Timing timing = Replay(dag, durations);
  const std::vector<bool> critical = CriticalComputations(dag, timing);
  for (int i = 0; i < dag.size(); ++i) {
    durations[i] += 0.5;
    const double longer = Replay(dag, durations).iteration_time_seconds;
    durations[i] -= 0.5;
    RC_ASSERT(critical[i] == (longer > timing.iteration_time_seconds));
  }
}

TEST(CriticalComputationsTest, FirstRankOfAUniform1F1BWaits) {
  const PipelineDag dag = DagFor({"1f1b", 2, 1, 2});
  const std::vector<bool> critical = CriticalComputations(dag, Replay(dag, Durations(dag, 1, 2)));
  std::vector<std::string> names;
  for (int i = 0; i < dag.size(); ++i) {
    const ComputationId& id = dag.computations[i].id;
    if (!critical[i]) {
      names.push_back(std::to_string(id.stage) + ComputationTypeLetter(id.type) +
                      std::to_string(id.microbatch));
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"0F1", "0B0"}));
}

TEST(ComputationPhasesTest, WarmUpSteadyCoolDown) {
  const PipelineDag dag = DagFor({"1f1b", 3, 1, 4});
  const std::vector<Phase> phases = ComputationPhases(dag);
  const auto phases_of = [&](int rank) {
    std::string text;
    for (const int i : dag.rank_order[rank]) text += "wsc"[static_cast<int>(phases[i])];
    return text;
  };
  EXPECT_EQ(phases_of(0), "wwwssccc");  // F F F B F B B B
  EXPECT_EQ(phases_of(1), "wwsssscc");  // F F B F B F B B
  EXPECT_EQ(phases_of(2), "wssssssc");  // F B F B F B F B
}

TEST(ComputationPhasesTest, FusedStepsAreSteady) {
  const PipelineDag dag = DagFor({"dualpipev", 4, 2, 4});
  const std::vector<Phase> phases = ComputationPhases(dag);
  for (int i = 0; i < dag.size(); ++i) {
    if (dag.computations[i].fused) {
      EXPECT_EQ(phases[i], Phase::kSteady);
    }
  }
}

TEST(ComputationPhasesTest, GPipeHasNoSteadyPhase) {
  for (const Phase phase : ComputationPhases(DagFor({"gpipe", 3, 1, 4}))) {
    EXPECT_NE(phase, Phase::kSteady);
  }
}

}  // namespace
}  // namespace perseus
