// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/numbers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace perseus {
namespace {

TEST(NumbersTest, AnIntegerIsTheWholeText) {
  EXPECT_EQ(ParseInteger<int>("-12"), -12);
  EXPECT_EQ(ParseInteger<std::uint64_t>("18446744073709551615"), ~std::uint64_t{0});
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "1e3", "99999999999"}) {
    EXPECT_EQ(ParseInteger<int>(text), std::nullopt) << text;
  }
}

TEST(NumbersTest, AFiniteNumberIsTheWholeText) {
  EXPECT_EQ(ParseFinite("+1.5e3"), 1500);
  EXPECT_EQ(ParseFinite("-0.25"), -0.25);
  for (const char* text :
       {"", "+", "+-1", "++1", " 1", "1 ", "1,5", "0x1", "nan", "inf", "1e999"}) {
    EXPECT_EQ(ParseFinite(text), std::nullopt) << text;
  }
}

TEST(NumbersTest, ANumberOfACellMayHaveSpaces) {
  EXPECT_EQ(ParseNumber("\t+2 ").value, 2);
  EXPECT_EQ(ParseNumber("nan").kind, NumberKind::kNotFinite);
  EXPECT_EQ(ParseNumber("1e999").kind, NumberKind::kNotFinite);
  EXPECT_EQ(ParseNumber("1 2").kind, NumberKind::kNone);
  EXPECT_EQ(ParseNumber(" ").kind, NumberKind::kNone);
  EXPECT_EQ(Trimmed(" \ta b\t"), "a b");
}

TEST(NumbersTest, AUnitIsTakenWithTheSpacesBeforeIt) {
  for (const char* const text : {"20ms", "20 ms", "20  ms"}) {
    std::string_view rest = text;
    EXPECT_TRUE(TakeUnit(&rest, "ms")) << text;
    EXPECT_EQ(rest, "20") << text;
  }
  for (const char* const text : {"20ms ", "20m s", "20\tMS", "s", ""}) {
    std::string_view rest = text;
    EXPECT_FALSE(TakeUnit(&rest, "ms")) << text;
    EXPECT_EQ(rest, text) << text;
  }
}

TEST(NumbersTest, ANumberWithAUnitKeepsItsDigits) {
  constexpr UnitScale kUnits[] = {{"MHz", 1}, {"GHz", 1e3}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const auto expect = [&](std::string_view text, double value) {
    EXPECT_EQ(ParseWithUnit(text, kUnits), value) << text;
  };
  expect("20ms", 0.02);
  expect("500us", 0.0005);
  expect("3 s", 3);
  expect("4", 4);
  expect("+1e3ms", 1);
  expect("0.1234567890123456789", 0.1234567890123456789);
  EXPECT_FALSE(std::signbit(ParseWithUnit("-0ms", kUnits).value()));
  for (const char* const text : {"", "ms", "1ss", "5min", "1e306GHz", "nan", "20 m s"}) {
    EXPECT_EQ(ParseWithUnit(text, kUnits), std::nullopt) << text;
  }
  // Products are off by a last digit now and then: 1.005 * 1e3 is 1004.9999999999999.
  for (int mhz = 1; mhz < 3000; ++mhz) {
    expect(fmt::format("{}.{:03}GHz", mhz / 1000, mhz % 1000), mhz);
  }
}

TEST(RoundedNumbersTest, UpIsNotLessButForRounding) {
  EXPECT_EQ(RoundedUp(0.42), "0.42");
  EXPECT_EQ(RoundedUp(0.1 + 0.2), "0.3");
  EXPECT_EQ(RoundedUp(8.71234561), "8.71235");
  EXPECT_EQ(RoundedUp(1234567.5), "1.23457e+06");
  std::mt19937 random(1);
  std::lognormal_distribution<double> values(0, 5);
  for (int round = 0; round < 1000; ++round) {
    const double value = values(random);
    const double up = std::stod(RoundedUp(value));
    EXPECT_TRUE(up >= value || SameButRounding(up, value)) << value;
    EXPECT_LE(up, value * (1 + 1e-5)) << value;
  }
}

TEST(RoundedNumbersTest, BelowIsToldFromTheLimit) {
  EXPECT_EQ(RoundedBelow(7, 7.5), "7");
  EXPECT_EQ(RoundedBelow(0.4199999, 0.42), "0.4199999");
  EXPECT_EQ(RoundedBelow(0.4199, 0.42), "0.4199");
}

TEST(RoundedNumbersTest, LastBitsAreTheSame) {
  EXPECT_TRUE(SameButRounding(0.1 + 0.2, 0.3));
  EXPECT_FALSE(SameButRounding(0.3 + 1e-9, 0.3));
}

TEST(Median, OfAnEvenNumberLiesBetweenTheTwoInTheMiddle) {
  std::vector<double> none;
  std::vector<float> odd = {9, 1, 3};
  std::vector<double> even = {9, 1, 3, 4};
  EXPECT_EQ(MedianOf(none), 0);
  EXPECT_EQ(MedianOf(odd), 3);
  EXPECT_EQ(MedianOf(even), 3.5);
}

TEST(Median, TheUpperOneIsAlwaysAValue) {
  EXPECT_EQ(UpperMedianOf({}), 0);
  EXPECT_EQ(UpperMedianOf({7}), 7);
  EXPECT_EQ(UpperMedianOf({9, 1, 3}), 3);
  EXPECT_EQ(UpperMedianOf({9, 1, 3, 4}), 4);
}

}  // namespace
}  // namespace perseus
