// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/profile_comparison.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/mentions.h"

namespace perseus::cli {
namespace {

Profile Parsed(const std::string& rows) {
  auto profile = ParseProfile("stage,instruction,frequency,time,energy\n" + rows, "csv");
  if (!profile) throw std::runtime_error(profile.error().message);
  return *std::move(profile);
}

constexpr const char* kOld =
    "0,forward,1400,0.1,10\n0,forward,1200,0.12,8\n0,forward,1000,0.15,7\n"
    "0,backward,1400,0.2,20\n0,backward,1200,0.24,16\n";
constexpr const char* kNew =
    "0,forward,1400,0.11,10\n0,forward,1200,0.12,8.8\n0,forward,1000,0.15,7\n"
    "0,backward,1400,0.1,20\n0,backward,1300,0.24,16\n";

TEST(ProfileComparisonTest, ATableOfWhatChanged) {
  const ProfileComparison comparison = CompareProfiles(Parsed(kOld), Parsed(kNew));
  EXPECT_EQ(ComparisonText(comparison, "old.csv", "p-1", Style{}),
            "p-1 against old.csv: what changes\n"
            "stage  computation  clocks      time      most    at   energy      most    at\n"
            "-----------------------------------------------------------------------------\n"
            "    0  forward           3   +0.00 %  +10.00 %  1400  +0.00 %  +10.00 %  1200\n"
            "    0  backward          1  -50.00 %  -50.00 %  1400  +0.00 %   +0.00 %  1400\n"
            "Only in old.csv: 1 row.\n"
            "Only in p-1: 1 row.\n");
}

TEST(ProfileComparisonTest, TheSameAsJson) {
  const auto json = ComparisonJson(CompareProfiles(Parsed(kOld), Parsed(kNew)), "a", "b");
  EXPECT_EQ(json["first"], "a");
  EXPECT_EQ(json["kinds"].size(), 2U);
  EXPECT_EQ(json["kinds"][1]["instruction"], "backward");
  EXPECT_DOUBLE_EQ(json["kinds"][1]["time_ratio"]["most"], 0.5);
  EXPECT_EQ(json["kinds"][0]["energy_ratio"]["at"], "1200");
  EXPECT_EQ(json["only_first"], 1);
  EXPECT_EQ(json["only_second"], 1);
}

TEST(ProfileComparisonTest, NothingInCommonIsSaid) {
  const Profile other = Parsed("0,forward,900,1,1\n0,backward,900,1,1\n");
  EXPECT_THAT(ComparisonText(CompareProfiles(Parsed(kOld), other), "a", "b", Style{}),
              Mentions("common."));
}

TEST(ProfileComparisonTest, NamesCannotWriteToTheTerminal) {
  const std::string text =
      ComparisonText(CompareProfiles(Parsed(kOld), Parsed(kNew)), "\x1b[2J", "b", Style{});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

// The second over the first: with the two exchanged every ratio is the inverse, and what
// only one has is the other's.
RC_GTEST_PROP(ProfileComparisonRules, ExchangedTheRatiosAreInverse, ()) {
  const auto some = [] {
    std::string rows;
    for (const char* const type : {"forward", "backward"}) {
      bool any = false;
      for (const int clock : {1400, 1200, 1000, 800}) {
        if (any && *rc::gen::inRange(0, 3) == 0) continue;
        any = true;
        rows += fmt::format("0,{},{},{},{}\n", type, clock, *rc::gen::inRange(1, 100) / 16.0,
                            *rc::gen::inRange(1, 100) / 16.0);
      }
    }
    return Parsed(rows);
  };
  const Profile one = some();
  const Profile other = some();
  const ProfileComparison there = CompareProfiles(one, other);
  const ProfileComparison back = CompareProfiles(other, one);
  RC_ASSERT(there.only_first == back.only_second);
  RC_ASSERT(there.only_second == back.only_first);
  RC_ASSERT(there.kinds.size() == back.kinds.size());
  for (std::size_t i = 0; i < there.kinds.size(); ++i) {
    const double product = there.kinds[i].time.most * back.kinds[i].time.most;
    RC_ASSERT(there.kinds[i].knobs == back.kinds[i].knobs);
    // Of two that are as far away, one up and one down, either may be named.
    if (there.kinds[i].time.knob == back.kinds[i].time.knob) {
      RC_ASSERT(product > 1 - 1e-9 && product < 1 + 1e-9);
    }
  }
  for (const KindComparison& kind : CompareProfiles(one, one).kinds) {
    RC_ASSERT(kind.time.most == 1);
    RC_ASSERT(kind.energy.median == 1);
  }
}

}  // namespace
}  // namespace perseus::cli
