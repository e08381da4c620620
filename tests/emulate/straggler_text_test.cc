// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/straggler_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace perseus {
namespace {

using emulate::ParseStraggler;
using testing::HasSubstr;

TEST(ParseStragglerTest, ReadsEveryField) {
  const auto straggler = ParseStraggler("slow=1.2,pipeline=3,rank=2,from=100,for=50");
  ASSERT_TRUE(straggler) << straggler.error().message;
  EXPECT_EQ(straggler->kind, StragglerKind::kSlow);
  EXPECT_EQ(straggler->value, 1.2);
  EXPECT_EQ(straggler->pipeline, 3);
  EXPECT_EQ(straggler->rank, 2);
  EXPECT_EQ(straggler->first_iteration, 100);
  EXPECT_EQ(straggler->iterations, 50);
}

TEST(ParseStragglerTest, WhereAndWhenMayBeLeftOut) {
  for (const auto& [text, kind, value] :
       {std::tuple("slow=1", StragglerKind::kSlow, 1.0),
        std::tuple("clock=1100", StragglerKind::kClockCap, 1100.0),
        std::tuple("power=250.5", StragglerKind::kPowerCap, 250.5),
        std::tuple("stall=0.5", StragglerKind::kDataStall, 0.5)}) {
    const auto straggler = ParseStraggler(text);
    ASSERT_TRUE(straggler) << straggler.error().message;
    EXPECT_EQ(straggler->kind, kind);
    EXPECT_EQ(straggler->value, value);
    EXPECT_EQ(straggler->pipeline, 0);
    EXPECT_EQ(straggler->rank, std::nullopt);
    EXPECT_EQ(straggler->first_iteration, 0);
    EXPECT_EQ(straggler->iterations, std::nullopt);
    EXPECT_TRUE(std::string(text).starts_with(StragglerKindName(kind)));
  }
}

TEST(ParseStragglerTest, ValuesTakeTheirUnits) {
  for (const auto& [text, value] :
       {std::pair("slow=1.2x", 1.2), std::pair("clock=1100MHz", 1100.0),
        std::pair("clock=1.005 GHz", 1005.0), std::pair("power=250W", 250.0),
        std::pair("power=0.5kW", 500.0), std::pair("stall=500 ms", 500 * 1e-3)}) {
    const auto straggler = ParseStraggler(text);
    ASSERT_TRUE(straggler) << straggler.error().message;
    EXPECT_EQ(straggler->value, value) << text;
  }
}

TEST(ParseStragglerTest, MayHaveSpacesAroundCommas) {
  const auto straggler = ParseStraggler("stall=500ms , pipeline=3, rank=2");
  ASSERT_TRUE(straggler) << straggler.error().message;
  EXPECT_EQ(straggler->value, 500 * 1e-3);
  EXPECT_EQ(straggler->pipeline, 3);
  EXPECT_EQ(straggler->rank, 2);
}

TEST(ParseStragglerTest, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "'' has no '='"},
      {"slow", "'slow' has no '='"},
      {"fast=2", "begins with 'fast'"},
      {"pipeline=1,slow=2", "begins with 'pipeline'"},
      {"slow=", "slow is ''; expected how many times as long, as in slow=1.2"},
      {"slow=20%", "slow is '20%'"},
      {"stall=5min", "stall is '5min'; expected seconds, as in stall=0.5 or stall=500ms"},
      {"clock=1100W", "clock is '1100W'; expected MHz, as in clock=1100 or clock=1100MHz"},
      {"power=1V", "power is '1V'; expected watts of a GPU, as in power=250 or power=250W"},
      {"stall=2000000000ms", "the time of stall= is 2000000; expected seconds"},
      {"slow=0.9", "the factor of slow= is 0.9; expected a number from 1"},
      {"slow=nan", "slow is 'nan'; expected how many"},
      {"slow=inf", "slow is 'inf'; expected how many"},
      {"clock=0", "the limit of clock= is 0"},
      {"power=-3", "the limit of power= is -3"},
      {"stall=-1", "the time of stall= is -1"},
      {"slow=2,", "'' has no '='"},
      {"slow=2,pipeline=-1", "pipeline is '-1'; expected a whole number, at least 0"},
      {"slow=2,rank=99999999999", "rank is '99999999999'"},
      {"slow=2,from=1.5", "from is '1.5'"},
      {"slow=2,for=0", "for is '0'; expected a whole number, at least 1"},
      {"slow=2,until=3", "'until' is not known here"},
      {"slow=2,slow=3", "'slow' is not known here"},
      {"slow=2,rank=1,rank=1", "rank is given twice"}};
  for (const auto& [text, message] : cases) {
    const auto straggler = ParseStraggler(text);
    ASSERT_FALSE(straggler) << text;
    EXPECT_EQ(straggler.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(straggler.error().message, HasSubstr("straggler '" + text + "': "));
    EXPECT_THAT(straggler.error().message, HasSubstr(message));
  }
}

}  // namespace
}  // namespace perseus
