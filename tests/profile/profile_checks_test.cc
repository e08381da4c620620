// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "perseus/note.h"
#include "perseus/profile.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

struct Cell {
  std::string knob = "1400";
  double seconds = 0.1;
  double joules = 30;
};

std::vector<Note> NotesOf(const std::vector<Cell>& forward) {
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (const Cell& cell : forward) {
    csv += fmt::format("0,forward,{},{},{}\n", cell.knob, cell.seconds, cell.joules);
  }
  csv += fmt::format("0,backward,{},0.2,60\n", forward.front().knob);
  const auto read = ParseProfile(csv, "p.csv");
  EXPECT_TRUE(read) << read.error().message;
  std::vector<Note> notes = read ? read->notes : std::vector<Note>();
  if (forward.size() == 1 && !notes.empty()) {
    EXPECT_THAT(notes.back().text, Mentions("choose,"));
    notes.pop_back();
  }
  return notes;
}

auto Is(Severity severity, int line, const std::string& text) {
  return AllOf(Field(&Note::severity, severity), Field(&Note::source, "p.csv"),
               Field(&Note::line, line), Field(&Note::text, HasSubstr(text)));
}

// What lies on a limit is plausible; what is beyond is not.
TEST(ProfileChecksTest, LimitsOfPowerTimeAndClock) {
  for (const Cell& sound :
       {Cell{"1400", 1, 5}, Cell{"1400", 1, 3000}, Cell{"100", 0.1, 30}, Cell{"4000", 0.1, 30},
        Cell{"1400", 1e-5, 3e-3}, Cell{"1400", 10, 3000}}) {
    EXPECT_TRUE(NotesOf({sound}).empty()) << sound.knob << " " << sound.seconds;
  }
  const auto implausible = [](const Cell& cell, const std::string& text) {
    EXPECT_THAT(NotesOf({cell}), testing::Contains(Is(Severity::kImplausible, 2, text)));
  };
  implausible({"1400", 1, 4.9}, "draws 4.9 W");
  implausible({"1400", 1, 3001}, "draws 3e+03 W");
  implausible({"99", 0.1, 30}, "99 MHz");
  implausible({"4001", 0.1, 30}, "4001 MHz");
  implausible({"1400", 9e-6, 3e-3}, "takes 9e-06 s");
  implausible({"1400", 31, 3100}, "takes 31 s");
  EXPECT_THAT(NotesOf({{"1400", 11, 3000}}), ElementsAre(Is(Severity::kOdd, 2, "takes 11 s")));
  EXPECT_THAT(NotesOf({{"1400", 30, 3000}}), ElementsAre(Is(Severity::kOdd, 2, "takes 30 s")));
  // A low clock may take long.
  EXPECT_TRUE(NotesOf({{"1400", 10, 3000}, {"200", 50, 5000}}).empty());
}

TEST(ProfileChecksTest, OneClockLeavesNoChoice) {
  const auto notes = [](const std::string& more) {
    const auto read = ParseProfile(
        "stage,instruction,frequency,time,energy\n0,forward,1400,0.1,30\n0,backward,1400,0.2,60\n" +
            more,
        "p.csv");
    return read.value().notes;
  };
  EXPECT_THAT(notes(""), ElementsAre(Is(Severity::kOdd, 0, "one clock only")));
  EXPECT_TRUE(notes("0,backward,1200,0.22,55\n").empty());
}

// Milliseconds taken for seconds are too long and too weak, and are noted once.
TEST(ProfileChecksTest, OneNoteForOneFault) {
  EXPECT_THAT(NotesOf({{"1400", 100, 30}}),
              ElementsAre(Is(Severity::kImplausible, 2, "draws 0.3 W")));
}

TEST(ProfileChecksTest, OneNoteForAllRowsOfAFault) {
  EXPECT_THAT(NotesOf({{"1400", 100, 30}, {"1300", 110, 29}, {"1200", 120, 28}}),
              testing::Contains(Is(Severity::kImplausible, 2, "(as in 2 other rows)")));
}

TEST(ProfileChecksTest, UnitsOfClocks) {
  const auto refused = [](const std::string& clock, const std::string& remedy) {
    const auto read =
        ParseProfile(fmt::format("stage,instruction,frequency,time,energy\n0,forward,{0},0.1,30\n"
                                 "0,backward,{0},0.2,60\n",
                                 clock),
                     "p.csv");
    ASSERT_FALSE(read) << clock;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(read.error().message, Mentions("p.csv:2:11:", "1", remedy));
  };
  refused("0.855", "0.855GHz");
  refused("855000", "1000");
  refused("855000000", "1000000");
  refused("49", "4000");
  refused("10001", "4000");
  // A profile that was filled in without a file.
  Profile profile =
      ParseProfile(
          "stage,instruction,frequency,time,energy\n0,forward,50,0.1,30\n0,backward,50,0.2,60\n",
          "p.csv")
          .value();
  EXPECT_TRUE(profile.Validate());
  profile.knobs.front().number = 1.41;
  EXPECT_THAT(profile.Validate().error().message, Mentions("1.41", "1.41GHz"));
  EXPECT_TRUE(NotesOf({{"0.855GHz", 0.1, 30}}).empty());
  EXPECT_TRUE(NotesOf({{"300W", 0.1, 30}}).empty());  // A power cap is no clock.
}

TEST(ProfileChecksTest, AHighestClockThatIsSlow) {
  const auto two = [](double highest) {
    return NotesOf({{"1400", highest, 300 * highest}, {"1200", 0.1, 25}});
  };
  EXPECT_TRUE(two(0.11).empty());
  EXPECT_THAT(two(0.12), ElementsAre(Is(Severity::kOdd, 2, "1.2 times as long as at 1200")));
  EXPECT_THAT(two(0.16), ElementsAre(Is(Severity::kImplausible, 2, "1.6 times")));
}

TEST(NoteTest, TheWorstIsRefused) {
  const Note odd = {.text = "odd", .source = "a"};
  const Note bad = {
      .severity = Severity::kImplausible, .text = "bad", .source = "b", .line = 2, .column = 3};
  EXPECT_TRUE(RefuseNotes({}, true));
  EXPECT_TRUE(RefuseNotes({odd, bad}, false));
  EXPECT_EQ(RefuseNotes({odd, bad}, true).error().message, "b:2:3: bad (and 1 more such)");
  const Note impossible = {.severity = Severity::kImpossible, .text = "no", .source = ""};
  EXPECT_EQ(RefuseNotes({odd, impossible, bad}, false).error().message, "no");
  for (const Severity severity : {Severity::kOdd, Severity::kImplausible, Severity::kImpossible}) {
    EXPECT_EQ(ParseSeverity(SeverityName(severity)), severity);
  }
  EXPECT_FALSE(ParseSeverity("wrong"));
}

// Whoever measured is not told of wrong units.
TEST(ProfileChecksTest, MeasuredProfilesHaveNothingImplausible) {
  const char* shared = std::getenv("PERSEUS_SHARED_DATA");
  const std::filesystem::path root =
      std::filesystem::path(shared != nullptr ? shared : "../shared/data") / "sosp24";
  std::vector<std::filesystem::path> profiles = {"examples/gpt3-1.3b-a100-sxm.csv"};
  for (const std::filesystem::path& folder :
       {root / "derived", root / "sosp24_data" / "emulation" / "stage_profile"}) {
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".csv") profiles.push_back(entry.path());
    }
  }
  for (const std::filesystem::path& path : profiles) {
    const auto read = ReadProfile(path.string());
    ASSERT_TRUE(read) << read.error().message;
    for (const Note& note : read->notes) {
      EXPECT_EQ(note.severity, Severity::kOdd) << NoteText(note);
    }
  }
}

}  // namespace
}  // namespace perseus
