// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/what_if.h"

#include <gtest/gtest.h>

#include <string>

#include "trace/links.h"
#include "trace/made_up_trace.h"
#include "trace/trace_answer.h"
#include "trace/trace_replay.h"

namespace perseus::trace {
namespace {

struct Asked {
  Recording recording;
  Links links;
  WhatIf answer;
};

Asked Ask(const MadeUpJob& job) {
  Asked asked;
  auto recording = ParseRecording(MadeUpTrace(job), "t.csv");
  EXPECT_TRUE(recording) << recording.error().message;
  asked.recording = *recording;
  auto links = LinkOperations(asked.recording);
  EXPECT_TRUE(links) << links.error().message;
  asked.links = *links;
  asked.answer = AskWhatIf(asked.recording, asked.links);
  return asked;
}

// Three microbatches of F 1 s and B 2 s, transfers of 10 ms: F0 of stage 0, F0 B0 of
// stage 1, B0 F2 of stage 0, F2 B2 of stage 1, B2 of stage 0, and the optimizer.
constexpr double kEvenSeconds = 1 + 0.01 + 3 + 0.01 + 3 + 0.01 + 3 + 0.01 + 2 + 0.5;

TEST(WhatIfTest, AnEvenJobHasNoStragglers) {
  const WhatIf answer = Ask({}).answer;
  ASSERT_EQ(answer.steps.size(), 2u);
  for (const StepTimes& step : answer.steps) {
    EXPECT_NEAR(step.recorded_seconds, kEvenSeconds, 1e-9);
    EXPECT_NEAR(step.replayed_seconds, kEvenSeconds, 1e-9);
    EXPECT_NEAR(step.without_stragglers_seconds, kEvenSeconds, 1e-9);
  }
  EXPECT_NEAR(answer.blocking_slowdown, 1, 1e-9);
  EXPECT_NEAR(answer.launch_slowdown, 1, 1e-9);
}

TEST(WhatIfTest, LaunchDelaysAreNamedAndGoneInTheReplay) {
  MadeUpJob job;
  job.launch_seconds = 0.75;
  const WhatIf answer = Ask(job).answer;
  EXPECT_NEAR(answer.recorded_seconds, kEvenSeconds + 0.75, 1e-9);
  EXPECT_NEAR(answer.replayed_seconds, kEvenSeconds, 1e-9);
  ASSERT_FALSE(answer.launch_delays.empty());
  EXPECT_EQ(answer.launch_delays[0].operation, "forward-compute");
  EXPECT_EQ(answer.launch_delays[0].stage, 0);
  EXPECT_NEAR(answer.launch_delays[0].seconds, 0.75, 1e-9);
  EXPECT_NEAR(answer.other_chain_seconds, 0, 1e-9);
}

TEST(WhatIfTest, FindsTheSlowRank) {
  MadeUpJob job;
  job.seconds = [](int, int pipeline, int stage, int, bool forward) {
    return (forward ? 1.0 : 2.0) * (pipeline == 1 && stage == 0 ? 1.5 : 1.0);
  };
  const Asked asked = Ask(job);
  const WhatIf& answer = asked.answer;
  EXPECT_GT(answer.blocking_slowdown, 1.1);
  const int slow = asked.recording.Place(1, 0);
  for (int place = 0; place < asked.recording.places(); ++place) {
    if (place != slow) {
      EXPECT_LT(answer.by_place[place], answer.by_place[slow]) << place;
    }
  }
  EXPECT_GT(answer.by_pipeline[1], answer.by_pipeline[0]);
  EXPECT_GT(answer.by_stage[0], answer.by_stage[1]);
  EXPECT_EQ(answer.by_operation.front().name, "backward-compute");
}

TEST(WhatIfTest, LeavesOutWhatIsTooMuchToReplay) {
  MadeUpJob job;
  job.pipelines = 3;
  const Asked asked = Ask(job);
  EXPECT_EQ(asked.answer.by_place.size(), 6U);
  const double operations = static_cast<double>(asked.recording.operations.size());
  const WhatIf two = AskWhatIf(asked.recording, asked.links, 2 * operations);
  EXPECT_EQ(two.by_stage, asked.answer.by_stage);
  EXPECT_TRUE(two.by_pipeline.empty());
  EXPECT_TRUE(two.by_place.empty());
  EXPECT_EQ(two.by_operation.size(), asked.answer.by_operation.size());
  TraceAnswer answer;
  answer.recording = &asked.recording;
  answer.links = &asked.links;
  answer.name = "t.csv";
  answer.what_if = two;
  const std::string json = FormatTraceJson(answer);
  EXPECT_NE(json.find("\"blocking_by_pipeline\": null"), std::string::npos) << json;
  EXPECT_NE(json.find("\"blocking_by_rank\": null"), std::string::npos);
  const std::string page = FormatTraceHtml(answer);
  EXPECT_NE(page.find("6 ranks are too many to replay each"), std::string::npos);
}

TEST(WhatIfTest, WaitingForThePeerIsNoTransfer) {
  const Asked asked = Ask({});
  const std::vector<double> own = OwnSeconds(asked.recording, asked.links);
  int transfers = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Operation& operation = asked.recording.operations[i];
    if (!IsTransfer(operation.kind)) continue;
    ++transfers;
    EXPECT_NEAR(own[i], 0.01, 1e-9) << OperationKindName(operation.kind);
  }
  EXPECT_EQ(transfers, 2 * 2 * 4 * 3);
}

TEST(WhatIfTest, UsualTimesAreMeansAndMedians) {
  MadeUpJob job;
  job.seconds = [](int step, int pipeline, int stage, int m, bool forward) {
    const bool odd = step == 0 && pipeline == 0 && stage == 0 && m == 0;
    return forward ? (odd ? 13.0 : 1.0) : 2.0;
  };
  const Asked asked = Ask(job);
  const std::vector<double> own = OwnSeconds(asked.recording, asked.links);
  const std::vector<double> usual = UsualSeconds(asked.recording, own);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const OperationKind kind = asked.recording.operations[i].kind;
    // 24 forwards, one of them of 13 s.
    if (kind == OperationKind::kForward) {
      EXPECT_NEAR(usual[i], 1.5, 1e-9);
    }
    if (kind == OperationKind::kForwardSend) {
      EXPECT_NEAR(usual[i], 0.01, 1e-9);
    }
  }
}

}  // namespace
}  // namespace perseus::trace
