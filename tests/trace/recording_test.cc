// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/mentions.h"
#include "trace/links.h"
#include "trace/made_up_trace.h"

namespace perseus::trace {
namespace {

constexpr const char* kForward = "0,0,0,7,forward-compute,0,1,0,0,0,0\n";
constexpr const char* kBackward = "0,0,0,7,backward-compute,1,1,0,0,0,0\n";

std::string ErrorOf(const std::string& text) {
  const auto recording = ParseRecording(text, "t.csv");
  if (!recording) return recording.error().message;
  const auto links = LinkOperations(*recording);
  return links ? "" : links.error().message;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(RecordingTest, DerivesTheShape) {
  MadeUpJob job;
  job.pipelines = 3;
  const auto recording = ParseRecording(MadeUpTrace(job), "t.csv");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->pipelines, 3);
  EXPECT_EQ(recording->stages, 2);
  EXPECT_EQ(recording->gpus_per_rank, 4);
  EXPECT_EQ(recording->virtual_stages, 1);
  EXPECT_EQ(recording->microbatches, 3);
  EXPECT_EQ(recording->steps, (std::vector<int>{10, 13}));
  EXPECT_EQ(recording->rank_of, (std::vector<int>{0, 12, 4, 16, 8, 20}));
  EXPECT_EQ(recording->first_of.size(), 2u * 6 + 1);
}

TEST(RecordingTest, TakesColumnsAndRowsInAnyOrder) {
  const std::string text =
      "gmc,mb_id,mc,seq_id,duration,start_ts,optype,step,rank,stage,dp_rank\r\n"
      "0,0,0,0,1,1,backward-compute,7,0,0,0\r\n0,0,0,0,1,0,forward-compute,7,0,0,0\r\n";
  const auto recording = ParseRecording(text, "t.csv");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->operations.size(), 2u);
  EXPECT_EQ(recording->operations[0].kind, OperationKind::kForward);
  EXPECT_EQ(recording->operations[0].line, 3u);
  EXPECT_EQ(recording->operations[1].line, 2u);
}

TEST(RecordingTest, SaysWhereACellIsWrong) {
  const std::string good = std::string(kHeader) + kForward + kBackward;
  EXPECT_EQ(ErrorOf(good), "");
  EXPECT_THAT(ErrorOf(Replaced(good, "backward-compute", "backward")),
              Mentions("t.csv:3:9:", "'backward'"));
  EXPECT_THAT(ErrorOf(Replaced(good, "compute,0,1", "compute,-1,1")),
              Mentions("t.csv:2:25:", "start_ts"));
  EXPECT_THAT(ErrorOf(Replaced(good, "compute,0,1", "compute,nan,1")), Mentions("t.csv:2:25"));
  EXPECT_THAT(ErrorOf(Replaced(good, "compute,0,1", "compute,0,x")),
              Mentions("t.csv:2:27:", "'x'"));
  EXPECT_THAT(ErrorOf(Replaced(good, "0,0,0,7,f", "70000,0,0,7,f")),
              Mentions("t.csv:2:1:", "dp_rank"));
  EXPECT_THAT(ErrorOf(Replaced(good, "1,0,0,0,0\n", "1,0,0,-1,0\n")),
              Mentions("t.csv:2:33:", "mb_id"));
  EXPECT_THAT(ErrorOf(good + "0,0,0\n"), Mentions("t.csv:4:1:", "3", "11"));
}

TEST(RecordingTest, SaysWhatTheHeaderLacks) {
  EXPECT_THAT(ErrorOf(""), Mentions("empty;"));
  EXPECT_THAT(ErrorOf(kHeader), Mentions("header", "rows"));
  EXPECT_THAT(ErrorOf("dp_rank,stage\n1,2\n"), Mentions("t.csv:1:1:", "'rank'"));
  EXPECT_THAT(ErrorOf(Replaced(kHeader, "stage", "stages") + kForward),
              Mentions("t.csv:1:9:", "'stages'", "'stage'"));
  EXPECT_THAT(ErrorOf(Replaced(kHeader, "stage", "rank") + kForward), Mentions("'rank'"));
  EXPECT_THAT(ErrorOf(std::string(kHeader) + std::string(1, '\0')), Mentions("NUL"));
}

TEST(RecordingTest, RefusesWhatCannotBeOneJob) {
  const std::string good = std::string(kHeader) + kForward + kBackward;
  EXPECT_THAT(ErrorOf(std::string(kHeader) + kForward),
              Mentions("1", "forward-compute", "0", "backward"));
  EXPECT_THAT(ErrorOf(good + kForward), Mentions("t.csv:4:", "seq_id", "0"));
  EXPECT_THAT(ErrorOf(Replaced(good, "1,0,0,0,0\n", "1,1,0,0,0\n")),
              Mentions("t.csv:2:", "seq_id", "1"));
  EXPECT_THAT(ErrorOf(good + "2,0,8,7,gc,0,0,0,-1,-1,-1\n"), Mentions("7", "dp_rank", "1", "0"));
  EXPECT_THAT(ErrorOf(good + "0,1,8,7,gc,0,0,0,-1,-1,-1\n"),
              Mentions("stage", "1", "0", "forward-compute"));
  EXPECT_THAT(ErrorOf(good + "0,0,1,7,gc,0,0,0,-1,-1,-1\n"), Mentions("rank", "0"));
  EXPECT_THAT(ErrorOf(Replaced(good, "0,0,0,0\n", "0,0,0,3\n")), Mentions("gmc", "3"));
  EXPECT_THAT(ErrorOf(good + "1,0,0,7,gc,0,0,0,-1,-1,-1\n"), Mentions("rank", "0"));
}

TEST(RecordingTest, RefusesTransfersThatDoNotFit) {
  const std::string text = MadeUpTrace({});
  const std::string relabelled = Replaced(text, "0,1,8,10,forward-recv", "0,1,8,10,backward-recv");
  EXPECT_THAT(ErrorOf(relabelled), Mentions("seq_id"));
  // One computation of stage 1 says another microbatch: its transfer has no other side.
  const std::size_t computation = text.find("0,1,8,10,forward-compute");
  std::string other = text;
  const std::size_t end = other.find('\n', computation);
  ASSERT_EQ(other.substr(end - 6, 6), ",0,0,1") << other.substr(computation, end - computation);
  other.replace(end - 6, 6, ",0,9,1");
  EXPECT_THAT(ErrorOf(other), Mentions("side;"));
}

TEST(RecordingTest, RefusesCircles) {
  // Stage 0 claims to have run its backward before its forward.
  std::string text =
      MadeUpTrace({.pipelines = 1, .microbatches = 1, .steps = 1, .launch_seconds = 1});
  const std::size_t row = text.find("backward-compute,", text.find("0,0,0,10,backward-compute"));
  ASSERT_NE(row, std::string::npos);
  const std::size_t from = row + std::string("backward-compute,").size();
  text.replace(from, text.find(',', from) - from, "0");
  EXPECT_THAT(ErrorOf(text), Mentions("circle"));
}

}  // namespace
}  // namespace perseus::trace
