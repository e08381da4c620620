// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "formats/zeus_plan.h"
#include "perseus/plan_file.h"
#include "support/mentions.h"

namespace perseus::formats {
namespace {

using testing::HasSubstr;

const std::string kPlan =
    "# Plan 3\n"
    "[\n"
    "    [('forward', 1410), (\"backward\", 1395)],  # rank 0\n"
    "    [ ( 'forward' , 1380 , ) , ('backward',210) , ] , \n"
    "]\n"
    "# Energy: 12 J";

TEST(ParseZeusPlan, ReadsPythonLists) {
  const auto plan = ParseZeusPlan(kPlan, "p.py");
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->size(), 2);
  ASSERT_EQ((*plan)[0].size(), 2);
  ASSERT_EQ((*plan)[1].size(), 2);
  EXPECT_EQ((*plan)[0][0].type, ComputationType::kForward);
  EXPECT_EQ((*plan)[0][0].clock_mhz, 1410);
  EXPECT_EQ((*plan)[0][1].type, ComputationType::kBackward);
  EXPECT_EQ((*plan)[0][1].clock_mhz, 1395);
  EXPECT_EQ((*plan)[0][1].line, 3);
  EXPECT_EQ((*plan)[0][1].column, 25);
  EXPECT_EQ((*plan)[1][0].clock_mhz, 1380);
  EXPECT_EQ((*plan)[1][1].clock_mhz, 210);
}

TEST(ParseZeusPlan, ReadsOneLine) {
  EXPECT_TRUE(ParseZeusPlan("[[('forward',1),('backward',2)],[('forward',3),('backward',4)]]", ""));
  EXPECT_TRUE(ParseZeusPlan("[]", ""));
  EXPECT_TRUE(ParseZeusPlan("\r\n[[],]\r\n", ""));
}

struct Fault {
  std::string text;
  std::string message;
};

TEST(ParseZeusPlan, SaysWhatIsWrongAndWhere) {
  const std::vector<Fault> faults = {
      {"",
       "p.py:1:1: expected '[', the start of the plan: a list with one list a rank, found the "
       "end of the file"},
      {"# nothing\n", "p.py:2:1: expected '['"},
      {"plan = [[]]",
       "p.py:1:1: expected '[', the start of the plan: a list with one list a "
       "rank, found 'plan'"},
      {"[('forward', 1)]", "p.py:1:2: expected '[', the start of the list of a rank, found '('"},
      {"[[('forward', 1410)", "p.py:1:20: expected ',' or ']' in the list of a rank"},
      {"[[('forward', 1410)] [", "p.py:1:22: expected ',' or ']' in the plan"},
      {"[[\n  forward",
       "p.py:2:3: expected ('forward', MHz) or ('backward', MHz), found "
       "'forward'"},
      {"[[('forwards', 1410)]]",
       "p.py:1:4: expected 'forward' or 'backward', found the string 'forwards'"},
      {"[[('forward\", 1410)]]",
       "p.py:1:4: expected 'forward' or 'backward', found the string 'forward'"},
      {"[[(u'forward', 1410)]]", "p.py:1:4: expected 'forward' or 'backward', found 'u'"},
      {"[[('forward' 1410)]]", "p.py:1:14: expected ',' and a clock, found '1410'"},
      {"[[('forward', 1410.0)]]",
       "p.py:1:15: expected a clock, a whole number of MHz, found "
       "'1410.0'"},
      {"[[('forward', -5)]]", "expected a clock, a whole number of MHz, found '-'"},
      {"[[('forward', 0)]]", "found '0'"},
      {"[[('forward', 1_410)]]", "found '1_410'"},
      {"[[('forward', 12345678901234567890)]]", "found '12345678901234567890'"},
      {"[[('forward', __import__('os').system('true'))]]", "found '__import__'"},
      {"[[('forward', 1410, 3)]]", "p.py:1:21: expected ')' after the clock, found '3'"},
      {"[[,]]", "p.py:1:3: expected ('forward', MHz)"},
      {"[[]] + [[]]", "p.py:1:6: expected nothing after the plan, found '+'"},
      {std::string("[\0]", 3), "found '\\x00'"},
  };
  for (const Fault& fault : faults) {
    const auto plan = ParseZeusPlan(fault.text, "p.py");
    ASSERT_FALSE(plan) << fault.text;
    EXPECT_EQ(plan.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(plan.error().message, HasSubstr(fault.message)) << fault.text;
  }
}

TEST(ParseZeusPlan, RefusesHugeFiles) {
  const auto plan = ParseZeusPlan(std::string(kMaxZeusPlanFileBytes + 1, ' '), "p.py");
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, Mentions("p.py:", "134217729"));
}

std::string Written(const ZeusPlan& plan) {
  std::string text = "[";
  for (const auto& rank : plan) {
    text += '[';
    for (const ZeusInstruction& instruction : rank) {
      text +=
          fmt::format("('{}', {}),", ComputationTypeName(instruction.type), instruction.clock_mhz);
    }
    text += "],";
  }
  return text + "]";
}

// Either a plan, which reads back the same when written, or an error that names
// a place in the text.
void CheckParse(const std::string& text) {
  const auto plan = ParseZeusPlan(text, "p.py");
  if (plan) {
    const auto again = ParseZeusPlan(Written(*plan), "again.py");
    RC_ASSERT(again.has_value());
    RC_ASSERT(Written(*again) == Written(*plan));
    return;
  }
  std::smatch match;
  const std::string& message = plan.error().message;
  RC_ASSERT(std::regex_search(message, match, std::regex("^p\\.py:([0-9]+):([0-9]+): expected ")));
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  RC_ASSERT(std::stol(match[1]) >= 1 && std::stol(match[1]) <= lines);
  RC_ASSERT(std::stoul(match[2]) >= 1 && std::stoul(match[2]) <= text.size() + 1);
}

TEST(ParseZeusPlan, NoBytesCrashIt) {
  EXPECT_TRUE(rc::check([]() { CheckParse(*rc::gen::arbitrary<std::string>()); }));
  // Nearly right ones.
  EXPECT_TRUE(rc::check([]() {
    std::string text;
    const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
        "[", "]", "[[", "]]", "(", ")", "('forward', 1410)", "(\"backward\",1)", ",", "'forward'",
        "'", "\"", "1410", "0", "# x\n", "#", "\n", " ", "\\", "\xff"));
    for (const std::string& word : words) text += word;
    CheckParse(text);
  }));
  // One byte of a right one changed.
  EXPECT_TRUE(rc::check([]() {
    std::string text = kPlan;
    text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
    CheckParse(text);
  }));
}

TEST(ParseZeusPlan, HalfAPlanIsNone) {
  for (std::size_t size = 0; size <= kPlan.rfind(']'); ++size) {
    EXPECT_FALSE(ParseZeusPlan(kPlan.substr(0, size), "p.py")) << size;
  }
}

}  // namespace
}  // namespace perseus::formats
