// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "perseus/profile.h"
#include "profile/profile_checks.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using profile::CurvePoint;
using profile::FindOddPoints;
using profile::OddPoint;
using profile::Steepness;
using ::testing::HasSubstr;

// The lines of a profile, cell by cell.
class Table {
 public:
  explicit Table(const std::string& text) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      std::istringstream cells(line);
      std::vector<std::string>& row = rows_.emplace_back();
      for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
      if (row.size() == 5 && row[0] != "stage") data_.push_back(rows_.size() - 1);
    }
  }

  std::string Text() const {
    std::string text;
    for (const std::vector<std::string>& row : rows_) {
      text += fmt::format("{}\n", fmt::join(row, ","));
    }
    return text;
  }

  // Multiplies the time (3) or the energy (4) of a random row. Its line.
  int Scale(std::mt19937& random, std::size_t column, double factor) {
    const std::size_t row = data_[random() % data_.size()];
    std::string& cell = rows_[row][column];
    cell = fmt::format("{}", std::stod(cell) * factor);
    return static_cast<int>(row) + 1;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> data_;  // Indices of data rows.
};

std::vector<Note> NotesOf(const std::string& text) {
  const auto read = ParseProfile(text, "p.csv");
  EXPECT_TRUE(read) << read.error().message;
  return read ? read->notes : std::vector<Note>();
}

// The modelled sample, of every so many clocks.
std::string Sample(int clock_step = 15) {
  std::ifstream file(PERSEUS_SOURCE_DIR "/examples/gpt3-1.3b-a100-sxm.csv");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    int stage = 0, mhz = 0;
    char type[16] = "";
    const bool is_row = std::sscanf(line.c_str(), "%d,%15[a-z],%d", &stage, type, &mhz) == 3;
    if (!is_row || (1410 - mhz) % clock_step == 0) text += line + "\n";
  }
  EXPECT_FALSE(text.empty());
  return text;
}

// Every injected fault is found where it is, and nothing else.
void ExpectFaultsFound(const std::string& text, int repeats) {
  std::mt19937 random(1);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (const double factor : {1.3, 1 / 1.3, 10.0, 0.1, 1e-5}) {
      const std::size_t column = 3 + random() % 2;
      Table table(text);
      const int line = table.Scale(random, column, factor);
      const std::vector<Note> notes = NotesOf(table.Text());
      ASSERT_EQ(notes.size(), 1U) << "line " << line << " times " << factor;
      EXPECT_EQ(notes.front().line, line);
      EXPECT_THAT(notes.front().text,
                  HasSubstr(fmt::format("the {} of stage", column == 3 ? "time" : "energy")));
    }
  }
}

TEST(OddCellsTest, ModelledProfilesHaveNoneAndFaultsInThemAreFound) {
  EXPECT_TRUE(NotesOf(Sample()).empty());
  ExpectFaultsFound(Sample(), 20);
}

TEST(OddCellsTest, GrossFaultsAreFoundAmongFewClocks) {
  const std::string text = Sample(90);
  std::mt19937 random(2);
  for (int repeat = 0; repeat < 50; ++repeat) {
    for (const double factor : {10.0, 0.1, 1e-5}) {
      Table table(text);
      const int line = table.Scale(random, 3 + random() % 2, factor);
      const std::vector<Note> notes = NotesOf(table.Text());
      ASSERT_EQ(notes.size(), 1U);
      EXPECT_EQ(notes.front().line, line);
    }
  }
}

TEST(OddCellsTest, MeasuredProfilesHaveNoneAndFaultsInThemAreFound) {
  const char* shared = std::getenv("PERSEUS_SHARED_DATA");
  const std::filesystem::path folder =
      std::filesystem::path(shared != nullptr ? shared : "../shared/data") / "sosp24" /
      "sosp24_data" / "emulation" / "stage_profile";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no measured data at " << folder << "; set PERSEUS_SHARED_DATA";
  }
  for (const char* name : {"gpt3-175b+a100_sxm_bf16.csv", "bloom+a40_bf16.csv"}) {
    std::ifstream file(folder / name);
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_TRUE(NotesOf(text.str()).empty()) << name;
    ExpectFaultsFound(text.str(), 20);
  }
}

// Noise of 2 % on every cell, as on power-capped cards: no alarm, but gross
// faults are still found.
TEST(OddCellsTest, NoiseIsNoFault) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.02);
  std::string text = "stage,instruction,knob,time,energy\n";
  for (const char* instruction : {"forward", "backward"}) {
    for (int mhz = 900; mhz <= 1740; mhz += 15) {
      const double seconds = (0.3 + 0.7 * 1740.0 / mhz) * (1 + noise(random));
      text += fmt::format("0,{},{},{},{}\n", instruction, mhz, seconds,
                          seconds * (90 + 200 * std::pow(mhz / 1740.0, 3)));
    }
  }
  EXPECT_TRUE(NotesOf(text).empty());
  Table table(text);
  const int line = table.Scale(random, 4, 0.1);
  const std::vector<Note> notes = NotesOf(table.Text());
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes.front().line, line);
}

TEST(OddCellsTest, NamesTheCellAndTheGpu) {
  std::string text = "stage,instruction,knob,time,energy,tp_rank\n";
  for (const char* instruction : {"forward", "backward"}) {
    for (int mhz = 1000; mhz <= 1400; mhz += 100) {
      for (int rank = 0; rank < 2; ++rank) {
        // Rank 1 uses a tenth as much everywhere: its own curve is in order.
        const double joules = (rank == 0 ? 1000 : 100) * (mhz == 1200 && rank == 1 ? 0.1 : 1);
        text += fmt::format("0,{},{},{},{},{}\n", instruction, mhz, 1400.0 / mhz,
                            *instruction == 'f' ? joules : 1000.0, rank);
      }
    }
  }
  const auto read = ParseProfile(text, "p.csv");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->notes.size(), 1U);
  EXPECT_EQ(
      NoteText(read->notes.front()),
      "p.csv:7:35: the energy of stage 0 forward at 1200, 10 J, is 0.127 times the least that "
      "its neighbours on the curve allow; measure it again, or remove the row");
  const auto strict = ParseProfile(text, "p.csv", {.strict = true});
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().message, NoteText(read->notes.front()));
}

TEST(OddCellsTest, ListsTwentyAndCountsTheRest) {
  std::string text = "stage,instruction,knob,time,energy\n";
  for (int stage = 0; stage < 15; ++stage) {
    for (const char* instruction : {"forward", "backward"}) {
      for (int mhz = 1000; mhz <= 1400; mhz += 100) {
        text += fmt::format("{},{},{},1,{}\n", stage, instruction, mhz, mhz == 1200 ? 0 : 100);
      }
    }
  }
  const std::vector<Note> notes = NotesOf(text);
  ASSERT_EQ(notes.size(), 21U);
  EXPECT_EQ(notes.front().line, 4);
  EXPECT_EQ(notes.back().line, 0);
  EXPECT_THAT(notes.back().text, Mentions("10"));
  const auto strict = ParseProfile(text, "p.csv", {.strict = true});
  ASSERT_FALSE(strict);
  EXPECT_THAT(strict.error().message, Mentions("20"));
}

TEST(OddCellsTest, OneWrongNeighbourHasNoSay) {
  constexpr Steepness kFlat = {0, 0};
  std::vector<CurvePoint> curve;
  for (int i = 1; i <= 7; ++i) curve.push_back({static_cast<double>(i), 1});
  EXPECT_TRUE(FindOddPoints(curve, kFlat).empty());
  for (std::size_t i = 0; i < curve.size(); ++i) {
    std::vector<CurvePoint> faulty = curve;
    faulty[i].value = 5;
    const std::vector<OddPoint> found = FindOddPoints(faulty, kFlat);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().index, i);
    EXPECT_NEAR(found.front().factor, 5, 1e-9);
  }
  // Of two or one nobody knows which is wrong.
  EXPECT_TRUE(FindOddPoints(std::vector<CurvePoint>{{1, 1}, {2, 100}}, kFlat).empty());
}

}  // namespace
}  // namespace perseus
