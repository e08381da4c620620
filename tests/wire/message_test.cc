// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace perseus::wire {
namespace {

enum class Color : std::uint8_t { kRed, kGreen };
constexpr std::array<std::string_view, 2> kColorNames = {"red", "green"};

struct Part {
  int number = 0;
  std::optional<Color> color;
};
constexpr Field kPartFields[] = {Value<&Part::number>("number").In({.least = 0}),
                                 Choice<&Part::color>("color", kColorNames).Optional().Lenient()};
constexpr Message<Part> kPart = {"Part", kPartFields};

struct Head {
  std::string name;
  std::int64_t count = 0;
};
constexpr Field kHeadFields[] = {Value<&Head::name>("name").Most(8),
                                 Value<&Head::count>("count").Sometimes().UnlessEmpty()};
constexpr Message<Head> kHead = {"Head", kHeadFields};

struct Whole {
  Head head;
  double number = 0;
  std::optional<double> maybe;
  bool flag = false;
  Color color = Color::kRed;
  std::vector<double> numbers;
  std::vector<Part> parts;
  std::optional<Part> part;
  std::map<std::string, int> counts;
  RawJson raw;
};
constexpr Field kWholeFields[] = {
    Inline<&Whole::head>(kHead),
    Value("count", [](const Whole& whole) { return whole.parts.size(); }).Replacing(),
    Value<&Whole::number>("number"),
    Value<&Whole::maybe>("maybe").Nullable(),
    Value<&Whole::flag>("flag").Optional(),
    Choice<&Whole::color>("color", kColorNames).Optional(),
    Value<&Whole::numbers>("numbers").List(3, "numbers").Sometimes().UnlessEmpty(),
    Object<&Whole::parts>("parts", kPart).Optional(),
    Object<&Whole::part>("part", kPart).Sometimes(),
    Value<&Whole::counts>("counts").Sometimes(),
    Value<&Whole::raw>("raw").Nullable().UnlessEmpty()};
constexpr Message<Whole> kWhole = {"Whole", kWholeFields};

TEST(MessageTest, WritesFieldsInTheOrderOfTheTable) {
  Whole whole;
  whole.head = {"a", 3};
  whole.number = 5;
  EXPECT_EQ(Write(kWhole, whole),
            R"({"name":"a","count":0,"number":5.0,"maybe":null,"flag":false,"color":"red",)"
            R"("parts":[],"counts":{},"raw":null})");
  whole.maybe = 0.1;
  whole.color = Color::kGreen;
  whole.numbers = {1, 2.5e-7};
  whole.parts = {{1, {}}, {2, Color::kGreen}};
  whole.part = Part{3, Color::kRed};
  whole.counts = {{"x", 1}, {"y", 2}};
  whole.raw.text = R"({"z":[]})";
  EXPECT_EQ(Write(kWhole, whole),
            R"({"name":"a","count":2,"number":5.0,"maybe":0.1,"flag":false,"color":"green",)"
            R"("numbers":[1.0,2.5e-07],"parts":[{"number":1,"color":null},)"
            R"({"number":2,"color":"green"}],"part":{"number":3,"color":"red"},)"
            R"("counts":{"x":1,"y":2},"raw":{"z":[]}})");
}

// What the library that reads JSON would write of the same values.
TEST(MessageTest, WritesTheBytesOfTheLibrary) {
  using Json = nlohmann::ordered_json;
  constexpr auto kReplace = Json::error_handler_t::replace;
  const std::string texts[] = {"",
                               "plain",
                               "a \"b\" \\ \n \t \x01 \x7f",
                               "\xc3\xa4 \xf0\x9f\x98\x80",
                               "\xff broken \xc3",
                               std::string("\0", 1)};
  for (const std::string& text : texts) {
    std::string out;
    AppendText(text, &out);
    EXPECT_EQ(out, Json(text).dump(-1, ' ', false, kReplace));
  }
  for (const double number :
       {0.0, -0.0, 1.0, 1e15, 1e16, 123456789.125, 0.1, 1e-5, 5e-324, 1e300,
        std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    std::string out;
    AppendNumber(number, &out);
    EXPECT_EQ(out, Json(number).dump());
  }
}

TEST(MessageTest, ReadsWhatItWrites) {
  Whole whole;
  whole.head = {"name", 9};
  whole.number = 0.3;
  whole.maybe = -1;
  whole.flag = true;
  whole.color = Color::kGreen;
  whole.numbers = {1, 2};
  whole.parts = {{1, {}}, {2, Color::kGreen}};
  whole.part = Part{3, Color::kRed};
  static constexpr Field kOpen[] = {Object<&Whole::parts>("parts", kPart)};
  static constexpr Message<Whole> kPartsAlone = {"Parts", kOpen};
  const Result<Whole> parts = Parse(kPartsAlone, Write(kWhole, whole), "answer");
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(Write(kPartsAlone, *parts), Write(kPartsAlone, whole));
}

TEST(MessageTest, MissingAndNullAreNoValue) {
  static constexpr Field kFew[] = {Value<&Whole::maybe>("maybe").Nullable(),
                                   Choice<&Whole::color>("color", kColorNames).Optional()};
  static constexpr Message<Whole> kFewFields = {"Few", kFew};
  const auto few = Parse(kFewFields, R"({"maybe":null,"more":1})", "answer");
  ASSERT_TRUE(few);
  EXPECT_FALSE(few->maybe);
  EXPECT_EQ(few->color, Color::kRed);
}

TEST(MessageTest, ErrorsNameThePlace) {
  static constexpr Field kSome[] = {Value<&Whole::number>("number").In(kPositive),
                                    Choice<&Whole::color>("color", kColorNames).Optional(),
                                    Value<&Whole::numbers>("numbers").List(3, "numbers").Optional(),
                                    Object<&Whole::parts>("parts", kPart).Optional()};
  static constexpr Message<Whole> kSomeFields = Message<Whole>("Some", kSome).Closed();
  const auto fault = [&](const std::string& json) {
    const auto whole = Parse(kSomeFields, json, "request");
    return whole ? "" : whole.error().message;
  };
  EXPECT_EQ(fault("{}"), "request:1:1: 'number' is missing");
  EXPECT_THAT(fault("[]"), testing::HasSubstr("expected an object"));
  EXPECT_THAT(fault(R"({"number":0})"), testing::HasSubstr("number: expected a number above 0"));
  EXPECT_THAT(fault(R"({"number":1,"colour":1})"), testing::HasSubstr("unknown key 'colour'"));
  EXPECT_THAT(fault(R"({"number":1,"color":"blue"})"),
              testing::HasSubstr("color: expected red or green"));
  EXPECT_THAT(fault(R"({"number":1,"numbers":[1,2,3,4]})"),
              testing::HasSubstr("numbers: expected at most 3 numbers"));
  EXPECT_THAT(fault(R"({"number":1,"parts":[{"number":1},{"number":-1}]})"),
              testing::HasSubstr("parts[1].number: expected a whole number from 0"));
  EXPECT_EQ(fault(R"({"number":1,"parts":[{"number":1,"color":"blue"}]})"), "");  // Lenient.
}

}  // namespace
}  // namespace perseus::wire
