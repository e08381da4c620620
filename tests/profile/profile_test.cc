// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "profile/sha256.h"

namespace perseus {
namespace {

constexpr std::string_view kHeader = "stage,instruction,frequency,time,energy\n";
constexpr std::string_view kSmall =
    "stage,instruction,frequency,time,energy\n"
    "0,forward,1200,0.2,8\n"
    "0,forward,1410,0.1,10\n"
    "0,backward,1410,0.3,30\n";

Profile Read(std::string_view text) {
  auto profile = ParseProfile(text, "p.csv");
  EXPECT_TRUE(profile.has_value()) << profile.error().message;
  return profile ? *profile : Profile();
}

std::string ErrorOf(std::string_view text) {
  const auto profile = ParseProfile(text, "p.csv");
  return profile ? "no error" : profile.error().message;
}

// All that a profile says, but for its hash and name.
std::string Text(const Profile& p) {
  std::string text = fmt::format("{} {} {} {}\n", p.knobs_are_numbers, p.num_stages,
                                 p.tensor_parallel_ranks, p.rows);
  for (const Knob& k : p.knobs) text += fmt::format("{}={} ", k.label, k.number);
  for (const OptionTable& t : p.tables) {
    text += fmt::format("\n{} {} {}:", t.stage, ComputationTypeName(t.type), t.baseline);
    for (const Option& o : t.options) {
      text += fmt::format(" ({} {} {} {} {})", o.knob, o.time_seconds, o.energy_joules,
                          o.time_std_seconds, o.energy_std_joules);
    }
  }
  return text;
}

constexpr std::string_view kRows =
    "stage,instruction,frequency,time,energy\n0,forward,1400,1,100\n0,backward,1400,2,200\n"
    "0,forward,1000,1.5,90\n1,forward,1200,1,100\n1,backward,1000,2,200\n";

TEST(ProfileTest, RowsOfBlockingSayWhatAGpuThatWaitsDraws) {
  const Profile profile =
      Read(std::string(kRows) + ",blocking,1400,2,160\n,blocking,800,1,50\n1,blocking,1000,1,33\n");
  EXPECT_EQ(profile.rows, 8);
  ASSERT_EQ(profile.knobs.size(), 3);  // 800 MHz is a clock of no computation.
  EXPECT_TRUE(profile.SaysWaiting());
  EXPECT_EQ(profile.WaitingWattsOf(0, 0), 80);
  EXPECT_DOUBLE_EQ(profile.WaitingWattsOf(0, 1), 70);  // Between the two rows.
  EXPECT_DOUBLE_EQ(profile.WaitingWattsOf(0, 2), 60);
  EXPECT_EQ(profile.WaitingWattsOf(1, 0), 33);  // Held outside.
  EXPECT_EQ(profile.WaitingWattsOf(1, 2), 33);
  EXPECT_TRUE(profile.Validate());
  EXPECT_FALSE(Read(kRows).SaysWaiting());
  const Profile one = Read(std::string(kRows) + "1,blocking,1000,1,33\n");
  EXPECT_FALSE(one.SaysWaiting());
  EXPECT_FALSE(one.SaysWaitingOf(0));
  EXPECT_TRUE(one.SaysWaitingOf(1));
}

TEST(ProfileTest, ManyRanksThatWaitMakeAMean) {
  const Profile profile = Read(
      "stage,instruction,frequency,time,energy,dp_rank\n0,forward,1400,1,100,0\n"
      "0,backward,1400,2,200,0\n,blocking,1400,1,60,0\n,blocking,1400,1,80,1\n");
  EXPECT_EQ(profile.WaitingWattsOf(0, 0), 70);
}

TEST(ProfileTest, WrongRowsOfBlockingAreErrors) {
  const auto with = [](std::string_view row) { return ErrorOf(std::string(kRows) + row.data()); };
  EXPECT_THAT(with(",blocking,1400,0,1\n"), Mentions("p.csv:7:16:", "time"));
  EXPECT_THAT(with(",blocking,1400,1,-1\n"), Mentions("p.csv:7:18:", "energy"));
  EXPECT_THAT(with(",blocking,1400,1,1\n,blocking,1400,1,2\n"),
              Mentions("p.csv:8:2:", "7", "1400"));
  EXPECT_THAT(with("7,blocking,1400,1,1\n"), Mentions("p.csv:7:1:", "7", "0", "1"));
  EXPECT_THAT(with("x,blocking,1400,1,1\n"), Mentions("p.csv:7:1:", "stage"));
  EXPECT_THAT(with(",blocking,300W,1,1\n"), Mentions("p.csv:7:11:", "300W"));
  EXPECT_THAT(with(",bloking,1400,1,1\n"), Mentions("p.csv:7:2:", "bloking", "'blocking'?"));
  EXPECT_THAT(ErrorOf("stage,instruction,frequency,time,energy\n,blocking,1400,1,1\n"),
              Mentions("blocking", "computation"));
  EXPECT_THAT(ErrorOf("stage,instruction,knob,time,energy\n0,forward,fast,1,100\n"
                      "0,backward,fast,1,9\n0,backward,calm,2,8\n,blocking,fast,1,1\n"),
              Mentions("p.csv:5:1:", "calm", "labels"));
}

TEST(ProfileTest, RowsWithNoClockSetAreNoOptions) {
  const Profile profile =
      Read(std::string(kRows) + "0,backward,default,1.9,230\n0,forward,default,0.9,120\n");
  EXPECT_TRUE(profile.Validate());
  EXPECT_TRUE(profile.notes.empty());
  EXPECT_EQ(profile.rows, 7);
  EXPECT_TRUE(profile.knobs_are_numbers);
  ASSERT_EQ(profile.knobs.size(), 3);
  EXPECT_EQ(profile.Find(0, ComputationType::kForward)->options.size(), 2);
  ASSERT_EQ(profile.default_clocks.size(), 2);
  const DefaultClockCost* const forward =
      profile.FindDefaultClockCost(0, ComputationType::kForward);
  ASSERT_NE(forward, nullptr);
  EXPECT_EQ(forward->time_seconds, 0.9);
  EXPECT_EQ(forward->energy_joules, 120);
  EXPECT_EQ(profile.FindDefaultClockCost(0, ComputationType::kBackward)->time_seconds, 1.9);
  EXPECT_EQ(profile.FindDefaultClockCost(1, ComputationType::kForward), nullptr);
  Profile wrong = profile;
  wrong.default_clocks[1].time_seconds = 0;
  EXPECT_FALSE(wrong.Validate());
  std::swap(wrong.default_clocks[0], wrong.default_clocks[1]);
  EXPECT_FALSE(wrong.Validate());
  wrong = profile;
  wrong.default_clocks[1].stage = 7;
  EXPECT_FALSE(wrong.Validate());
}

TEST(ProfileTest, AmongPowerCapsAndUnitsItIsTheSame) {
  EXPECT_EQ(Read("stage,instruction,knob,time,energy\n0,forward,default,1,9\n"
                 "0,forward,300W,2,8\n0,backward,250W,2,8\n")
                .default_clocks.size(),
            1);
  EXPECT_EQ(Read("stage,instruction,knob,time,energy\n0,forward,default,1,9\n"
                 "0,forward,1.41GHz,2,8\n0,backward,1.2GHz,2,8\n")
                .default_clocks.size(),
            1);
}

// As before there were such rows.
TEST(ProfileTest, AmongLabelsDefaultIsALabel) {
  const Profile profile = Read(
      "stage,instruction,knob,time,energy\n0,forward,default,1,9\n0,forward,calm,2,8\n"
      "0,backward,default,1,9\n");
  EXPECT_TRUE(profile.default_clocks.empty());
  EXPECT_EQ(profile.knobs.size(), 2);
  EXPECT_EQ(Read("stage,instruction,knob,time,energy\n0,forward,default,1,9\n"
                 "0,backward,default,1,9\n")
                .knobs.size(),
            1);
}

TEST(ProfileTest, RanksWithNoClockSetAreTakenTogetherAsOthers) {
  const Profile profile = Read(
      "stage,instruction,frequency,time,energy,tp_rank\n0,forward,1400,1,100,0\n"
      "0,forward,1400,1.5,110,1\n0,backward,1400,1,10,0\n0,backward,1400,1,10,1\n"
      "0,forward,default,0.8,120,1\n0,forward,default,0.9,130,0\n");
  const DefaultClockCost* const forward =
      profile.FindDefaultClockCost(0, ComputationType::kForward);
  ASSERT_NE(forward, nullptr);
  EXPECT_EQ(forward->time_seconds, 0.9);
  EXPECT_EQ(forward->energy_joules, 250);
}

TEST(ProfileTest, WrongRowsWithNoClockSetAreErrors) {
  const auto with = [](std::string_view row) { return ErrorOf(std::string(kRows) + row.data()); };
  EXPECT_THAT(with("0,forward,default,0,1\n"), Mentions("p.csv:7:19:", "time"));
  EXPECT_THAT(with("0,forward,unlockd,1,1\n"), Mentions("p.csv:7:11:", "unlockd"));
  EXPECT_THAT(with("0,forward,default,1,1\n0,forward,default,1,2\n"),
              Mentions("p.csv:8:1:", "7", "default"));
  EXPECT_THAT(with("0,recompute,default,1,1\n"), Mentions("p.csv:7:3:", "recompute", "clock"));
  EXPECT_THAT(with("9,forward,default,1,1\n"), Mentions("p.csv:7:3:", "9", "clock"));
  EXPECT_THAT(with(",blocking,default,1,1\n"),
              Mentions("p.csv:7:11:", "blocking", "default", "remove", "clock"));
  EXPECT_THAT(ErrorOf("stage,instruction,frequency,time,energy\n0,forward,default,1,1\n"
                      ",blocking,1400,1,1\n"),
              Mentions("p.csv", "default", "clocks"));
}

TEST(ProfileTest, BuilderAddsWhatWaitingDraws) {
  ProfileBuilder builder;
  builder.Add(0, ComputationType::kForward, 1400, 1, 2)
      .Add(0, ComputationType::kBackward, 1000, 1, 2);
  builder.AddWaiting({}, 1400, 90).AddWaiting(0, 1000, 40);
  const auto profile = builder.Build();
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->WaitingWattsOf(0, 0), 40);
}

std::string WithoutLineEnds(std::string text, const std::string& line_end) {
  for (std::size_t i = 0; (i = text.find('\n', i)) != std::string::npos; i += line_end.size()) {
    text.replace(i, 1, line_end);
  }
  return text;
}

TEST(ProfileTest, ReadsTablesInOrder) {
  const Profile p = Read(kSmall);
  EXPECT_EQ(p.source, "p.csv");
  EXPECT_EQ(p.sha256, Sha256Hex(kSmall));
  EXPECT_EQ(Text(p),
            "true 1 0 3\n1410=1410 1200=1200 \n"
            "0 forward 1: (1 0.2 8 0 0) (0 0.1 10 0 0)\n"
            "0 backward 0: (0 0.3 30 0 0)");
  ASSERT_NE(p.Find(0, ComputationType::kBackward), nullptr);
  EXPECT_EQ(p.Find(0, ComputationType::kBackward)->options.size(), 1U);
  EXPECT_EQ(p.Find(0, ComputationType::kBackwardInput), nullptr);
  EXPECT_EQ(p.Find(1, ComputationType::kForward), nullptr);
  EXPECT_EQ(p.Find(-1, ComputationType::kForward), nullptr);
}

TEST(ProfileTest, IgnoresWhatDoesNotMatter) {
  const std::string expected = Text(Read(kSmall));
  const std::string small(kSmall);
  EXPECT_EQ(Text(Read("\xEF\xBB\xBF" + small)), expected);
  EXPECT_EQ(Text(Read(WithoutLineEnds(small, "\r\n"))), expected);
  EXPECT_EQ(Text(Read(WithoutLineEnds(small, "\r"))), expected);
  EXPECT_EQ(Text(Read(WithoutLineEnds(small, "\n\n  # caf\xE9, \"\n\t\n"))), expected);
  EXPECT_EQ(Text(Read(small.substr(0, small.size() - 1))), expected);
  EXPECT_EQ(Text(Read("note,energy , time,\"frequency\",instruction,stage,ep_rank\n"
                      "\"a, \"\"b\"\"\n\",8,+0.2, 1200 ,\"forward\",+0,\n"
                      ",10,1e-1,1410,forward,0,1\n,30,.3,\" 1410\",backward,0,2\n")),
            Text(Read("stage,instruction,frequency,time,energy\n0,forward,1200,0.2,8\n"
                      "0,forward,1410,0.1,10\n0,backward,\" 1410\",0.3,30\n")));
}

TEST(ProfileTest, KnobsAreLabelsOrNumbers) {
  const Profile numbers =
      Read(std::string(kHeader) + "0,forward,900,3,1\n0,forward,1410.0,1,3\n0,backward,1410,1,3\n");
  EXPECT_EQ(Text(numbers),
            "true 1 0 3\n1410.0=1410 900=900 \n0 forward 1: (1 3 1 0 0) (0 1 3 0 0)\n"
            "0 backward 0: (0 1 3 0 0)");
  // Labels have no highest: the baseline is the fastest of each table.
  const Profile labels = Read(
      "stage,instruction,knob,time,energy\n0,forward,low,3,1\n"
      "0,forward,1200MHz/12SM,1,3\n0,backward,low,2,3\n0,backward,1200MHz/12SM,2,2\n");
  EXPECT_EQ(Text(labels),
            "false 1 0 4\nlow=0 1200MHz/12SM=0 \n0 forward 1: (0 3 1 0 0) (1 1 3 0 0)\n"
            "0 backward 1: (0 2 3 0 0) (1 2 2 0 0)");
  EXPECT_FALSE(labels.KnobsAreRanked());
  ASSERT_FALSE(labels.notes.empty());
  EXPECT_EQ(NoteText(labels.notes.back()),
            "p.csv: knobs are labels, which have no highest: savings are measured against the "
            "fastest option of each stage and instruction ('1200MHz/12SM' for stage 0 forward), "
            "unless a baseline is named");
}

TEST(ProfileTest, NumbersWithAUnitAreNumbers) {
  const auto rows = [](std::string_view low, std::string_view high) {
    return fmt::format("{}0,forward,{},2,10\n0,forward,{},1,12\n0,backward,{},1,30\n", kHeader, low,
                       high, high);
  };
  // Ascending: with the first row as baseline, "no slowdown" would be half as fast.
  const std::string clocks =
      "true 1 0 3\n1410=1410 900=900 \n0 forward 1: (1 2 10 0 0) (0 1 12 0 0)\n"
      "0 backward 0: (0 1 30 0 0)";
  for (const auto& [low, high] :
       {std::pair("900MHz", "1410MHz"), std::pair("900 MHz", "1410 mhz"),
        std::pair("0.9GHz", "1.41GHz"), std::pair("0.9 GHz", "\"1.41 ghz\"")}) {
    const Profile p = Read(rows(low, high));
    EXPECT_EQ(Text(p), clocks);
    EXPECT_EQ(p.knob_unit, "MHz");
    EXPECT_TRUE(p.notes.empty());
  }
  EXPECT_EQ(Read(rows("900", "1410")).knob_unit, "");
  // Ordered, but no clocks.
  const Profile caps = Read(rows("150W", "300 W"));
  EXPECT_EQ(Text(caps),
            "false 1 0 3\n300 W=300 150W=150 \n0 forward 1: (1 2 10 0 0) (0 1 12 0 0)\n"
            "0 backward 0: (0 1 30 0 0)");
  EXPECT_EQ(caps.knob_unit, "W");
  EXPECT_TRUE(caps.KnobsAreRanked());
  EXPECT_TRUE(caps.notes.empty());
  const Profile kilowatts = Read(rows("0.15kW", "0.3 kW"));
  EXPECT_EQ(kilowatts.knobs.front().label, "0.3 kW");
  EXPECT_EQ(kilowatts.knob_unit, "kW");
  EXPECT_TRUE(kilowatts.KnobsAreRanked());
}

TEST(ProfileTest, ABaselineCanBeNamedAmongLabels) {
  const std::string text(
      "stage,instruction,knob,time,energy\n0,forward,a,3,1\n0,forward,b,1,3\n"
      "0,backward,b,1,3\n");
  const auto named = ParseProfile(text, "p.csv", {.baseline = "b"});
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->tables[0].baseline, 1);
  for (const Note& note : named->notes) {
    EXPECT_EQ(note.text.find("knobs are labels"), std::string::npos);
  }
  const auto error = [](const std::string& profile, const std::string& label) {
    const auto read = ParseProfile(profile, "p.csv", {.baseline = label});
    return read ? "no error" : read.error().message;
  };
  EXPECT_EQ(error(text, "a"),
            "p.csv:4:3: stage 0 backward has no row at 'a', which is to be the baseline; expected "
            "one for every stage and instruction");
  EXPECT_EQ(error(text, "c\x1b"),
            "p.csv:2:11: 'c\\x1b' is to be the baseline, but is no knob of the profile");
  EXPECT_EQ(error(std::string(kSmall), "1200"),
            "p.csv:2:11: '1200' is to be the baseline, but knobs are numbers here, and their "
            "highest is the baseline; name none");
}

TEST(ProfileTest, SaysWhatItWasModelledBy) {
  const std::string small(kSmall);
  EXPECT_EQ(Read(small).modelled, "");
  EXPECT_EQ(Read("# Mine\n\n \t#MODELLED, not measured: by me. \r\n" + small).modelled,
            "MODELLED, not measured: by me.");
  EXPECT_EQ(Read("\xEF\xBB\xBF# MODELLED\r# MODELLED twice\r" + small).modelled, "MODELLED");
  EXPECT_EQ(Read("# MODELLED \x1b[2J\n" + small).modelled, "MODELLED");
  EXPECT_EQ(Read("# MODELLED" + std::string(1000, '!') + "\n" + small).modelled, "MODELLED");
  EXPECT_EQ(Read("# not MODELLED\n" + small + "# MODELLED\n").modelled, "");
}

TEST(ProfileTest, AggregatesRanks) {
  const Profile tp = Read(
      "stage,instruction,frequency,time,energy,time_std,energy_std,dp_rank,tp_rank\n"
      "0,forward,1000,1,10,.1,3,0,0\n0,forward,1000,2,20,.2,4,0,1\n"
      "0,forward,1000,4,30,.4,0,1,0\n0,forward,1000,3,40,.3,0,1,1\n"
      "0,backward,1000,1,1,,,0,0\n0,backward,1000,1,1,,,0,1\n"
      "0,backward,1000,1,1,,,1,0\n0,backward,1000,1,1,,,1,1\n");
  EXPECT_EQ(Text(tp),
            "true 1 2 8\n1000=1000 \n0 forward 0: (0 4 50 0.4 2.5)\n0 backward 0: (0 1 2 0 0)");
  const Profile dp = Read(
      "stage,instruction,frequency,time,energy,rank\n0,forward,1000,1,10,0\n"
      "0,forward,1000,2,20,1\n0,backward,1000,1,1,0\n0,backward,1000,1,3,1\n");
  EXPECT_EQ(Text(dp),
            "true 1 0 4\n1000=1000 \n0 forward 0: (0 2 15 0 0)\n0 backward 0: (0 1 2 0 0)");
}

TEST(ProfileTest, SplitBackwardIsEnough) {
  EXPECT_EQ(Read(std::string(kHeader) + "0,forward,1000,1,1\n0,backward_weight,1000,1,1\n"
                                        "0,backward_input,1000,1,1\n")
                .tables.size(),
            3U);
}

struct BadText {
  std::string text;
  std::string error;
};

TEST(ProfileTest, NamesWhatIsWrongAndWhere) {
  const std::string header(kHeader);
  const std::string good = header + "0,forward,1,1,1\n0,backward,1,1,1\n";
  const std::string ranks = "stage,instruction,frequency,time,energy,dp_rank,tp_rank\n";
  const std::string pp = "stage,instruction,frequency,time,energy,pp_rank\n";
  const std::string missing_energy =
      "expected stage,instruction,frequency,time,energy in any order, found ";
  const std::vector<BadText> cases = {
      {"",
       "p.csv:1:1: the profile is empty; expected a header "
       "(stage,instruction,frequency,time,energy) and a row for each measurement"},
      {"# only\n\n",
       "p.csv:3:1: the profile is empty; expected a header "
       "(stage,instruction,frequency,time,energy) and a row for each measurement"},
      {header,
       "p.csv:2:1: the profile has a header but no rows; expected one for each "
       "measurement"},
      {"stage,instruction,frequency,time\n", "p.csv:1:1: the header has no column 'energy'; " +
                                                 missing_energy +
                                                 "'stage', 'instruction', 'frequency', 'time'"},
      {"stage,instruction,time,energy\n",
       "p.csv:1:1: the header has no column 'frequency' (or 'knob'); " + missing_energy +
           "'stage', 'instruction', 'time', 'energy'"},
      {"stage;time\n", "p.csv:1:1: the header has no column 'stage'; " + missing_energy +
                           "'stage;time'; separate cells by commas, not semicolons"},
      {"stage,instruction,frequency,time,enery\n",
       "p.csv:1:34: unknown column 'enery'; did you mean 'energy'?"},
      {"\xEF\xBB\xBFStage\n", "p.csv:1:1: unknown column 'Stage'; did you mean 'stage'?"},
      {"stage,enregy\n", "p.csv:1:7: unknown column 'enregy'; did you mean 'energy'?"},
      {"stage,stage\n", "p.csv:1:7: column 'stage' is there twice; remove one"},
      {"knob,frequency\n", "p.csv:1:6: columns 'knob' and 'frequency' mean the same; remove one"},
      {header + "0,forward,1,1\n",
       "p.csv:2:14: the row has 4 cells, expected 5 as in the header; "
       "add what is missing"},
      {header + "0,forward,1,1,1,7\n",
       "p.csv:2:17: the row has 6 cells, expected 5 as in the header; put a cell that holds a "
       "comma in quotes"},
      {header + "0,forward,\"1,1,1\n",
       "p.csv:2:11: this quote is never closed; end the cell with another one"},
      {header + "0,for\"ward,1,1,1\n",
       "p.csv:2:6: found a quote inside a cell; put the whole cell in quotes and write each quote "
       "in it twice"},
      {header + "0,\"forward\"x,1,1,1\n",
       "p.csv:2:12: expected a comma or the end of the line after the quoted cell"},
      {header + "0,forward,\xC3\xA9\xFF,1,1\n",
       "p.csv:2:12: expected text in UTF-8, found a byte that is none; save the file as UTF-8"},
      {header + std::string("0,for\0ward", 10),
       "p.csv:2:6: found a NUL byte, so this is a binary file; expected a CSV text"},
      {"\xFF\xFEs", "p.csv:1:1: the profile is in UTF-16; save it as UTF-8"},
      {header + "0,forwrad,1,1,1\n",
       "p.csv:2:3: unknown instruction 'forwrad': expected forward, backward, "
       "backward_input, backward_weight, recompute or blocking; did you mean 'forward'?"},
      {header + "0,\x1b[2J,1,1,1\n",
       "p.csv:2:3: unknown instruction '\\x1b[2J': expected forward, backward, "
       "backward_input, backward_weight, recompute or blocking"},
      {header + "0,forward,1,fast,1\n",
       "p.csv:2:13: time 'fast' is not a number; expected seconds, above 0"},
      {header + "0,forward,\xC3\xA9,fast,1\n",
       "p.csv:2:13: time 'fast' is not a number; expected seconds, above 0"},
      {header + "0,forward,1," + std::string(100, '9') + "x,1\n",
       "p.csv:2:13: time '" + std::string(40, '9') +
           "...' is not a number; expected seconds, above 0"},
      {header + "0,forward,1,0x10,1\n",
       "p.csv:2:13: time '0x10' is not a number; expected seconds, above 0"},
      {header + "0,forward,1,+-1,1\n",
       "p.csv:2:13: time '+-1' is not a number; expected seconds, above 0"},
      {header + "0,forward,1,nan,1\n",
       "p.csv:2:13: time 'nan' is not a finite number; expected seconds, above 0"},
      {header + "0,forward,1,-inf,1\n",
       "p.csv:2:13: time '-inf' is not a finite number; expected seconds, above 0"},
      {header + "0,forward,1,1e999,1\n",
       "p.csv:2:13: time '1e999' is not a finite number; expected seconds, above 0"},
      {header + "0,forward,1,1e13,1\n",
       "p.csv:2:13: time '1e13' is impossibly large; expected seconds, above 0"},
      {header + "0,forward,1,,1\n", "p.csv:2:13: time cell is empty; expected seconds, above 0"},
      {header + "0,forward,1,0,1\n", "p.csv:2:13: time '0' is zero; expected seconds, above 0"},
      {header + "0,forward,1,-1,1\n",
       "p.csv:2:13: time '-1' is negative; expected seconds, above 0"},
      {header + "0,forward,1,1, -1\n",
       "p.csv:2:16: energy '-1' is negative; expected joules, 0 or more"},
      {"time_std," + header + "-1,0,forward,1,1,1\n",
       "p.csv:2:1: time_std '-1' is negative; expected seconds, 0 or more"},
      {header + "1.5,forward,1,1,1\n",
       "p.csv:2:1: stage '1.5' is not a whole number; expected a whole number from 0 to 65535"},
      {header + "-1,forward,1,1,1\n",
       "p.csv:2:1: stage '-1' is negative; expected a whole number from 0 to 65535"},
      {header + "65536,forward,1,1,1\n",
       "p.csv:2:1: stage '65536' is too large; expected a whole number from 0 to 65535"},
      {header + "99999999999999999999,forward,1,1,1\n",
       "p.csv:2:1: stage '99999999999999999999' is too large; expected a whole number from 0 to "
       "65535"},
      {header + ",forward,1,1,1\n",
       "p.csv:2:1: stage cell is empty; expected a whole number from 0 to 65535"},
      {"tp_rank," + header + "x,0,forward,1,1,1\n",
       "p.csv:2:1: tp_rank 'x' is not a whole number; expected a whole number from 0 to 16777215"},
      {header + "0,forward,,1,1\n",
       "p.csv:2:11: frequency cell is empty; expected a number above 0 or a label"},
      {good + "0,forward,0,1,1\n",
       "p.csv:4:11: frequency '0' is no speed that a GPU can run at; expected a number above 0 (or "
       "labels that are no numbers)"},
      {good + "0,forward,-5,1,1\n",
       "p.csv:4:11: frequency '-5' is negative; expected a number above 0 (or labels that are no "
       "numbers)"},
      {good + "0,forward,inf,1,1\n",
       "p.csv:4:11: frequency 'inf' is not a finite number; expected a number above 0 (or labels "
       "that are no numbers)"},
      {header + "0,forward,1410,1,1\n0,forward,12OO,1,1\n0,forward,1000,1,1\n",
       "p.csv:3:11: frequency '12OO' is not a number like the other knobs ('1410', line 2); "
       "correct it, or, if labels are meant, write all of them so that none is a number"},
      {header + "0,forward,1410,1,1\n0,forward,1200MHz/12SM,1,1\n0,forward,low,1,1\n",
       "p.csv:2:11: frequency '1410' is a number and no label like the other knobs "
       "('1200MHz/12SM', line 3); correct it, or, if labels are meant, write all of them so that "
       "none is a number"},
      {header + "0,forward,1410,1,1\n0,forward,1200MHz,1,1\n",
       "p.csv:3:11: frequency '1200MHz' has not the unit of '1410' (line 2); write one unit in the "
       "whole file"},
      {header + "0,forward,300W,1,1\n0,forward,200MHz,1,1\n",
       "p.csv:3:11: frequency '200MHz' has not the unit of '300W' (line 2); write one unit in the "
       "whole file"},
      {header + "0,forward,0MHz,1,1\n",
       "p.csv:2:11: frequency '0MHz' is no speed that a GPU can run at; expected a number above 0 "
       "(or labels that are no numbers)"},
      {good + "0,forward,1.0,2,2\n",
       "p.csv:4:1: stage 0 forward at 1 is on line 2 already; keep one row of the two"},
      {ranks + "0,forward,1,1,1,0,3\n0,forward,1,1,1,0,3\n",
       "p.csv:3:1: stage 0 forward at 1, tp_rank 3, dp_rank 0 is on line 2 already; keep one row "
       "of the two"},
      {good + "2,forward,1,1,1\n3,forward,1,1,1\n",
       "p.csv:4:1: stage 1 is missing, but here is stage 2 (the last is 3); expected a row for "
       "every stage from 0 on"},
      {header + "0,forward,1,1,1\n",
       "p.csv:2:3: stage 0 has no row for backward; expected forward, and backward or both "
       "backward_input and backward_weight"},
      {header + "0,backward,1,1,1\n",
       "p.csv:2:3: stage 0 has no row for forward; expected forward, and backward or both "
       "backward_input and backward_weight"},
      {header + "0,forward,1,1,1\n0,backward_input,1,1,1\n",
       "p.csv:2:3: stage 0 has no row for backward_weight; expected forward, and backward or both "
       "backward_input and backward_weight"},
      {header + "0,forward,1,1,1\n0,backward_weight,1,1,1\n",
       "p.csv:2:3: stage 0 has no row for backward_input; expected forward, and backward or both "
       "backward_input and backward_weight"},
      {ranks + "0,forward,1,1,1,0,0\n0,forward,1,1,1,0,1\n0,backward,1,1,1,0,0\n",
       "p.csv:4:1: stage 0 backward at 1 has no row for tp_rank 1, dp_rank 0, but stage 0 forward "
       "at 1 has (line 3); expected every option of a stage measured on the same ranks"},
      {ranks + "0,forward,1,1,1,0,0\n0,backward,1,1,1,0,1\n0,backward,1,1,1,0,0\n",
       "p.csv:2:1: stage 0 forward at 1 has no row for tp_rank 1, dp_rank 0, but stage 0 backward "
       "at 1 has (line 3); expected every option of a stage measured on the same ranks"},
      {ranks + "0,forward,1,1,1,0,0\n0,forward,1,1,1,0,1\n0,forward,1,1,1,1,0\n",
       "p.csv:2:1: stage 0 forward at 1 has no row for tp_rank 1, dp_rank 1, which others have; "
       "expected every tensor-parallel rank of every replica"},
      {ranks + "0,forward,1,1,1,0,0\n0,forward,1,1,1,0,1\n0,backward,1,1,1,0,0\n"
               "0,backward,1,1,1,0,1\n1,forward,1,1,1,0,0\n",
       "p.csv:6:1: stage 1 forward at 1 has no row for tp_rank 1, which others have; expected "
       "every tensor-parallel rank of every replica"},
      {ranks + "0,forward,1,1,1,0,0\n0,backward,1,1,1,0,0\n1,forward,1,1,1,0,0\n"
               "1,forward,1,1,1,0,1\n",
       "p.csv:4:1: stage 1 forward at 1 has tp_rank 1, which stage 0 has not; expected the same "
       "tensor-parallel ranks at every stage"},
      {pp + "0,forward,1,1,1,0\n0,backward,1,1,1,1\n",
       "p.csv:3:18: stage 0 has pp_rank 1 here and 0 on line 2; expected one pipeline rank for "
       "each stage"},
  };
  for (const BadText& bad : cases) EXPECT_EQ(ErrorOf(bad.text), bad.error) << bad.text;
}

TEST(ProfileTest, RefusesWhatIsNoProfileFile) {
  const auto error = [](const std::string& path) {
    const auto profile = ReadProfile(path);
    return profile ? std::string("no error") : profile.error().message;
  };
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / fmt::format("perseus-profile-{}", ::getpid());
  std::filesystem::create_directories(directory);
  EXPECT_NE(error(directory).find("directory"), std::string::npos);
  EXPECT_NE(error(directory / "none.csv").find("no such file"), std::string::npos);
  EXPECT_NE(error("/dev/zero").find("device"), std::string::npos);
  const std::filesystem::path huge = directory / "huge.csv";
  std::ofstream(huge).close();
  std::filesystem::resize_file(huge, std::uintmax_t{1} << 30);  // Sparse.
  EXPECT_NE(error(huge).find("256 MiB"), std::string::npos);
  const std::filesystem::path good = directory / "good.csv";
  std::ofstream(good) << kSmall;
  EXPECT_EQ(error(good), "no error");
  std::filesystem::remove_all(directory);
}

// A profile of many replicas is read in time that goes with its size: with a
// search for each replica among all, this would take a minute, a legal file hours.
TEST(ProfileTest, ManyReplicasAreNoMoreThanManyRows) {
  constexpr int kReplicas = 250'000;
  std::string text = "stage,instruction,frequency,time,energy,dp_rank,tp_rank\n";
  for (const char* instruction : {"forward", "backward"}) {
    for (int dp_rank = 0; dp_rank < kReplicas; ++dp_rank) {
      text += fmt::format("0,{},1000,1,1,{},0\n", instruction, dp_rank);
    }
  }
  const Profile p = Read(text);
  EXPECT_EQ(p.rows, 2 * kReplicas);
  EXPECT_EQ(p.tables.size(), 2U);
}

RC_GTEST_PROP(ProfileProperty, OrderOfRowsAndColumnsDoesNotMatter, ()) {
  const int stages = *rc::gen::inRange(1, 4);
  const int knobs = *rc::gen::inRange(1, 5);
  const int tp = *rc::gen::inRange(1, 4);
  const int dp = *rc::gen::inRange(1, 4);
  using Cells = std::array<std::string, 7>;
  std::vector<Cells> rows;
  double energy_sum = 0;
  double slowest = 0;
  for (int s = 0; s < stages; ++s) {
    for (const std::string instruction : {"forward", "backward"}) {
      for (int k = 0; k < knobs; ++k) {
        for (int i = 0; i < tp * dp; ++i) {
          const int time = *rc::gen::inRange(1, 1000);
          const int energy = *rc::gen::inRange(0, 1000);
          energy_sum += energy;
          slowest = std::max<double>(slowest, time);
          rows.push_back({std::to_string(s), instruction, std::to_string(100 + k),
                          std::to_string(time), std::to_string(energy), std::to_string(i / tp),
                          std::to_string(i % tp)});
        }
      }
    }
  }
  const Cells header = {"stage", "instruction", "knob", "time", "energy", "dp_rank", "tp_rank"};
  std::vector<std::size_t> columns = {0, 1, 2, 3, 4, 5, 6};
  const auto text = [&](const std::string& line_end) {
    std::string result;
    const auto add = [&](const Cells& cells) {
      for (std::size_t i = 0; i < columns.size(); ++i) {
        result += (i == 0 ? "" : ",") + cells.at(columns[i]);
      }
      result += line_end;
    };
    add(header);
    for (const Cells& row : rows) add(row);
    return result;
  };
  const auto sorted = [](const std::string& bytes) {
    auto profile = ParseProfile(bytes, "p.csv");
    RC_ASSERT(profile.has_value());
    for (OptionTable& table : profile->tables) {
      const int baseline = table.options.at(static_cast<std::size_t>(table.baseline)).knob;
      std::sort(table.options.begin(), table.options.end(),
                [](const Option& a, const Option& b) { return a.knob < b.knob; });
      table.baseline = 0;
      RC_ASSERT(baseline == 0);
    }
    return *profile;
  };
  const Profile before = sorted(text("\n"));
  double energy = 0;
  double time = 0;
  for (const OptionTable& table : before.tables) {
    for (const Option& option : table.options) {
      energy += option.energy_joules;
      time = std::max(time, option.time_seconds);
    }
  }
  RC_ASSERT(std::abs(energy - energy_sum / dp) <= 1e-9 * (1 + energy_sum));
  RC_ASSERT(time == slowest);
  for (std::size_t i = rows.size(); i > 1; --i) {
    std::swap(rows[i - 1], rows[*rc::gen::inRange<std::size_t>(0, i)]);
  }
  for (std::size_t i = columns.size(); i > 1; --i) {
    std::swap(columns[i - 1], columns[*rc::gen::inRange<std::size_t>(0, i)]);
  }
  RC_ASSERT(Text(sorted(text("\r\n"))) == Text(before));
}

struct SharedFile {
  std::string path;
  int stages;
  int knobs;
  int rows;
};

TEST(ProfileTest, ReadsTheProfilesOfThePaper) {
  const char* shared = std::getenv("PERSEUS_SHARED_DATA");
  const std::filesystem::path root =
      std::filesystem::path(shared != nullptr ? shared : "../shared/data") / "sosp24";
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << "no measured data at " << root << "; set PERSEUS_SHARED_DATA";
  }
  for (const SharedFile& file : std::vector<SharedFile>{
           {"sosp24_data/emulation/stage_profile/gpt3-175b+a100_sxm_bf16.csv", 8, 38, 608},
           {"sosp24_data/emulation/stage_profile/bloom+a40_bf16.csv", 8, 60, 960},
           {"derived/A100_bert-huge-uncased_dp1_tp1_pp4_mbs8_nmb32.csv", 4, 19, 63},
           {"derived/A100_gpt3-xl_dp1_tp1_pp4_mbs8_nmb128.csv", 4, 14, 43},
           {"derived/A40_bloom-3b_dp1_tp1_pp8_mbs4_nmb128.csv", 8, 36, 164},
           {"derived/A40_wide-resnet101_8_dp1_tp1_pp8_mbs32_nmb48.csv", 8, 42, 207}}) {
    const auto profile = ReadProfile(root / file.path);
    ASSERT_TRUE(profile.has_value()) << profile.error().message;
    EXPECT_EQ(profile->num_stages, file.stages) << file.path;
    EXPECT_EQ(profile->knobs.size(), static_cast<std::size_t>(file.knobs)) << file.path;
    EXPECT_EQ(profile->rows, file.rows) << file.path;
    EXPECT_TRUE(profile->knobs_are_numbers);
    EXPECT_EQ(profile->tables.size(), static_cast<std::size_t>(2 * file.stages));
  }
}

}  // namespace
}  // namespace perseus
