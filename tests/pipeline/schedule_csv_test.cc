// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "perseus/schedule.h"
#include "schedule_testing.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using ::testing::StartsWith;

Schedule Parse(std::string_view text) {
  auto schedule = ParseSchedule(text, "s.csv");
  EXPECT_TRUE(schedule) << schedule.error().message;
  return schedule ? *schedule : Schedule();
}

std::string ParseErrorOf(std::string_view text) {
  const auto schedule = ParseSchedule(text, "s.csv");
  if (schedule) return "(no error)";
  EXPECT_EQ(schedule.error().code, ErrorCode::kInvalidInput);
  return schedule.error().message;
}

TEST(ScheduleCsvTest, RoundTripOfEveryShape) {
  for (const ScheduleSpec& spec : AllShapes(4, 9, 3)) {
    const auto built = BuildSchedule(spec);
    ASSERT_TRUE(built);
    const Schedule read = Parse(FormatSchedule(*built));
    ASSERT_EQ(read.ranks, built->ranks);
    ASSERT_EQ(read.num_ranks, built->num_ranks);
    ASSERT_EQ(read.num_stages, built->num_stages);
    ASSERT_EQ(read.num_microbatches, built->num_microbatches);
  }
}

TEST(ScheduleCsvTest, ReadsIdleCellsSpacesQuotesAndLineEnds) {
  const std::string expected = "0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n";
  EXPECT_EQ(FormatSchedule(Parse(expected)), expected);
  EXPECT_EQ(FormatSchedule(Parse("0F0, 0F1 ,,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n")), expected);
  EXPECT_EQ(FormatSchedule(Parse("\"0F0\",\" 0F1 \" ,\"\",0B0,0B1\n1F0,1B0,1F1,1B1\n\n , \n")),
            expected);
  EXPECT_EQ(FormatSchedule(Parse("\xEF\xBB\xBF"
                                 "0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,\t1B1")),
            expected);
}

TEST(ScheduleCsvTest, IsNamedAfterTheFileWithoutItsFolder) {
  const auto schedule = ParseSchedule("0F0,0B0", "/some/where/mine.csv");
  ASSERT_TRUE(schedule);
  EXPECT_EQ(schedule->name, "mine.csv");
}

TEST(ScheduleCsvTest, CommunicationIsIgnored) {
  EXPECT_EQ(FormatSchedule(Parse("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
                                 "1RECV_F0,1F0,1B0,1SEND_B0\n")),
            "0F0,0B0\r\n1F0,1B0\r\n");
}

TEST(ScheduleCsvTest, RankOfAStageComesFromTheFile) {
  const Schedule schedule = Parse("1F0,1B0\n0F0,2F0,2B0,0B0\n");
  EXPECT_EQ(schedule.num_ranks, 2);
  EXPECT_EQ(schedule.num_stages, 3);
  EXPECT_EQ(schedule.ranks[0][0].id.stage, 1);
}

TEST(ScheduleCsvTest, OldSplitBackwardsArePerStage) {
  // Stage 0 is old (B beside W and no I), stage 1 has whole backwards.
  EXPECT_EQ(FormatSchedule(Parse("0F0,0B0,0W0\n1F0,1B0\n")), "0F0,0I0,0W0\r\n1F0,1B0\r\n");
  // A stage that has I means B where it says B.
  const std::string mixed = "0F0,0F1,0B0,0I1,0W1\r\n";
  EXPECT_EQ(FormatSchedule(Parse(mixed)), mixed);
  // The old B may be half of an overlap.
  EXPECT_EQ(FormatSchedule(Parse("0F0,(0F1;0B0)OVERLAP_F_B,0B1,0W0,0W1")),
            "0F0,(0F1;0I0)OVERLAP_F_B,0I1,0W0,0W1\r\n");
}

TEST(ScheduleCsvTest, ErrorsNameLineAndColumn) {
  EXPECT_THAT(ParseErrorOf("0F0,0F1junk"), StartsWith("s.csv:1:8: unexpected 'junk' after"));
  EXPECT_THAT(ParseErrorOf("0F0,0B0\n1F0, 0BW"), StartsWith("s.csv:2:7: 'BW' is no action"));
  EXPECT_THAT(ParseErrorOf("F0"), StartsWith("s.csv:1:1: expected the number of a stage in 'F0'"));
  EXPECT_THAT(ParseErrorOf("0F"), StartsWith("s.csv:1:3: expected the number of a microbatch"));
  EXPECT_THAT(ParseErrorOf("-1F0"), StartsWith("s.csv:1:1: expected the number of a stage"));
  EXPECT_THAT(ParseErrorOf("0f0"), StartsWith("s.csv:1:2: '' is no action"));
  EXPECT_THAT(ParseErrorOf("99999999999F0"),
              StartsWith("s.csv:1:1: the number of the stage in '99999999999F0' is too large"));
  EXPECT_THAT(ParseErrorOf("0F0 0B0"), StartsWith("s.csv:1:4: unexpected ' 0B0'"));
  EXPECT_THAT(ParseErrorOf("0UNSHARD0"), StartsWith("s.csv:1:9: unexpected '0'"));
  EXPECT_THAT(ParseErrorOf("stage,instruction,frequency"), StartsWith("s.csv:1:1: expected the"));
  EXPECT_THAT(ParseErrorOf("\"0F0\",\"0Q0\""), StartsWith("s.csv:1:9: 'Q' is no action"));
}

TEST(ScheduleCsvTest, ErrorsOfOverlaps) {
  for (const std::string_view cell :
       {"(0F0)OVERLAP_F_B", "(0F0;0F1)OVERLAP_F_B", "(0B0;0F0)OVERLAP_F_B", "(0F0;0B0)",
        "(0F0;0B0)OVERLAP_F_B1", "(0F0;0W0)OVERLAP_F_B", "(0F0;0SEND_B0)OVERLAP_F_B",
        "(0F0;0B0;0W0)OVERLAP_F_B", "(0R0;0B1)OVERLAP_F_B", "(0F0;0R0)OVERLAP_F_B",
        "(0W0;0B0)OVERLAP_F_B"}) {
    EXPECT_THAT(ParseErrorOf(cell), HasSubstr("is not an overlap of a forward with a backward"));
  }
  EXPECT_THAT(ParseErrorOf("((0F0;0B0)OVERLAP_F_B;0B0)OVERLAP_F_B"), StartsWith("s.csv:1:2: "));
}

TEST(ScheduleCsvTest, ErrorsOfTheCsvItself) {
  EXPECT_EQ(ParseErrorOf("0F0,\"0B0"),
            "s.csv:1:5: this quote is never closed; end the cell with another one");
  EXPECT_EQ(ParseErrorOf("\"0F0\"x,0B0"),
            "s.csv:1:6: expected a comma or the end of the line after the quoted cell");
  EXPECT_THAT(ParseErrorOf("0F0,\"0B\n0\""),
              StartsWith("s.csv:1:8: expected the number of a microbatch in '0B\\n0'"));
  EXPECT_EQ(ParseErrorOf(std::string_view("0F0,\0B0", 7)),
            "s.csv:1:5: found a NUL byte, so this is a binary file; expected a CSV text");
  EXPECT_THAT(ParseErrorOf("0F0,\xFF"), StartsWith("s.csv:1:5: expected text in UTF-8"));
  // Lines that other tables skip are ranks here.
  EXPECT_THAT(ParseErrorOf("0F0,0B0\n# rank 1\n1F0,1B0"),
              StartsWith("s.csv:2:1: expected the number of a stage in '# rank 1'"));
}

TEST(ScheduleCsvTest, EmptyFilesAndRanks) {
  for (const std::string_view text : {"", "\n\n", ",,\r\n", "0UNSHARD", "\xEF\xBB\xBF"}) {
    EXPECT_THAT(ParseErrorOf(text), StartsWith("s.csv: holds no computation")) << text;
  }
  EXPECT_THAT(ParseErrorOf("0F0,0B0\n\n1F0,1B0\n"),
              StartsWith("s.csv:2:1: rank 1 has no computations"));
}

TEST(ScheduleCsvTest, ScheduleErrorsNameTheFile) {
  EXPECT_EQ(ParseErrorOf("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1"),
            "s.csv: the schedule deadlocks: rank 0 waits at 0B0 for 1B0 of rank 1, rank 1 waits at "
            "1F1 for 0F1 of rank 0");
  EXPECT_EQ(ParseErrorOf("0F0,0B0,2000000000F0"),
            "s.csv: has stage 2000000000, but only 3 computations: every stage must run every "
            "microbatch");
  EXPECT_EQ(ParseErrorOf("0F2147483647,0B0"),
            "s.csv: has microbatch 2147483647, but only 2 computations: every stage must run every "
            "microbatch");
}

class ScheduleFileTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string ReadErrorOf(const std::string& path) {
    const auto schedule = ReadSchedule(path);
    return schedule ? "(no error)" : schedule.error().message;
  }

  const std::filesystem::path folder_ = [] {
    std::string name = (std::filesystem::temp_directory_path() / "perseus-XXXXXX").string();
    return std::filesystem::path(mkdtemp(name.data()));
  }();
};

TEST_F(ScheduleFileTest, ReadsAFile) {
  const auto schedule = ReadSchedule(Write("mine.csv", "0F0,0B0\r\n"));
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_EQ(schedule->name, "mine.csv");
  EXPECT_EQ(RankText(*schedule, 0), "0F0,0B0");
}

TEST_F(ScheduleFileTest, RefusesWhatIsNoScheduleFile) {
  EXPECT_THAT(ReadErrorOf(folder_), Mentions("directory;"));
  EXPECT_THAT(ReadErrorOf(folder_ / "none"), Mentions("file;"));
  EXPECT_THAT(ReadErrorOf(Write("binary", std::string("\x7F"
                                                      "ELF\0",
                                                      5))),
              Mentions("binary:1:5:", "NUL"));
  EXPECT_THAT(ReadErrorOf("/dev/zero"), Mentions("device;"));
  const std::string large = Write("large", "");
  std::filesystem::resize_file(large, (128 << 20) + 1);
  EXPECT_THAT(ReadErrorOf(large), Mentions("128", "MiB"));
}

}  // namespace
}  // namespace perseus
