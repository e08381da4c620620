// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/framework/value_parsers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace perseus::cli {
namespace {

TEST(ValueParsersTest, CountsAreWholeAndInRange) {
  EXPECT_EQ(ParseCount("8", 1, 10).value(), 8);
  for (const char* text : {"", "0", "11", "1.5", "8x", " 8", "-1", "99999999999999999999"}) {
    const Result<int> count = ParseCount(text, 1, 10);
    ASSERT_FALSE(count) << text;
    EXPECT_EQ(count.error().message,
              std::string("expected a whole number from 1 to 10, got '") + text + "'");
  }
}

TEST(ValueParsersTest, QuantitiesAreFiniteAndInRange) {
  EXPECT_EQ(ParseQuantity("0", {0, 2}).value(), 0);
  EXPECT_EQ(ParseQuantity("1.5e0", {0, 2}).value(), 1.5);
  for (const char* text : {"", "nan", "inf", "1e400", "2.1", "-0.1", "1,5", "0x1", "1W", " 1"}) {
    EXPECT_FALSE(ParseQuantity(text, {0, 2})) << text;
  }
  EXPECT_EQ(ParseQuantity("3", {0, 2}).error().message, "expected a number from 0 to 2, got '3'");
  const NumberRange inner = {.least = 0, .most = 1, .above_least = true, .below_most = true};
  EXPECT_FALSE(ParseQuantity("0", inner));
  EXPECT_EQ(ParseQuantity("1", inner).error().message,
            "expected a number between 0 and 1 (neither included), got '1'");
  const NumberRange above = {.least = 0, .most = 1, .above_least = true};
  EXPECT_TRUE(ParseQuantity("1", above));
  EXPECT_EQ(ParseQuantity("0", above).error().message,
            "expected a number above 0 and at most 1, got '0'");
}

TEST(ValueParsersTest, QuantitiesTakeTheirUnits) {
  EXPECT_EQ(ParseQuantity("83.64W", {0, 1e6}, job::kInWatts).value(), 83.64);
  EXPECT_EQ(ParseQuantity("0.3 kW", {0, 1e6}, job::kInWatts).value(), 300);
  EXPECT_EQ(ParseQuantity("2kJ", {0, 1e6}, job::kInJoules).value(), 2000);
  EXPECT_EQ(ParseQuantity("5mJ", {0, 1e6}, job::kInJoules).value(), 5 * 1e-3);
  EXPECT_EQ(ParseQuantity("500ms", {0.1, 60}, job::kInSeconds).value(), 500 * 1e-3);
  EXPECT_EQ(ParseQuantity("1.2x", {1, 1000}, job::kInTimes).value(), 1.2);
  EXPECT_EQ(ParseQuantity("3W", {0, 2}, job::kInWatts).error().message,
            "expected a number of watts from 0 to 2 (75 or 75W), got '3W'");
  for (const char* text : {"W", "75V", "75mW", "75 W ", "-1W", "2MW", "75WW"}) {
    EXPECT_FALSE(ParseQuantity(text, {0, 1e6}, job::kInWatts)) << text;
  }
}

TEST(ValueParsersTest, DurationsTakeUnits) {
  EXPECT_EQ(ParseDuration("0.5").value(), 0.5);
  EXPECT_EQ(ParseDuration("2s").value(), 2);
  EXPECT_EQ(ParseDuration("20ms").value(), 20 * 1e-3);
  EXPECT_EQ(ParseDuration("500us").value(), 500 * 1e-6);
  EXPECT_EQ(ParseDuration("500 us").value(), 500 * 1e-6);
  EXPECT_EQ(ParseDuration("20 ms").value(), 20 * 1e-3);
  EXPECT_EQ(ParseDuration("2 s").value(), 2);
  for (const char* text : {"", "s", "-1", "1h", "1 ", "1\ts", "1 0s", "1e9", "nan"}) {
    EXPECT_FALSE(ParseDuration(text)) << text;
  }
}

TEST(ValueParsersTest, LongDurationsTakeLongUnits) {
  EXPECT_EQ(ParseLongDuration("90").value(), 90);
  EXPECT_EQ(ParseLongDuration("90s").value(), 90);
  EXPECT_EQ(ParseLongDuration("20ms").value(), 20 * 1e-3);
  EXPECT_EQ(ParseLongDuration("15min").value(), 900);
  EXPECT_EQ(ParseLongDuration("1h").value(), 3600);
  EXPECT_EQ(ParseLongDuration("0.5 d").value(), 43200);
  for (const char* text : {"", "h", "-1h", "1w", "1e10", "nan", "1 2s", "40000d"}) {
    EXPECT_FALSE(ParseLongDuration(text)) << text;
  }
}

TEST(ValueParsersTest, SharesArePercentagesOrFractions) {
  EXPECT_EQ(ParseShare("1%", 0.25).value(), 0.01);
  EXPECT_EQ(ParseShare("0.01", 0.25).value(), 0.01);
  EXPECT_EQ(ParseShare("25%", 0.25).value(), 0.25);
  EXPECT_EQ(ParseShare("1 %", 0.25).value(), 0.01);
  EXPECT_EQ(ParseShare("0", 0.25).value(), 0);
  EXPECT_EQ(ParseShare("1", 0.25).error().message,
            "expected a percentage (1%) or a share (0.01) of at most 25%, got '1'; did you mean "
            "1%?");
  for (const char* text : {"", "%", " %", "26%", "30", "-1%", "1 %%", "1 ", "nan"}) {
    const Result<double> share = ParseShare(text, 0.25);
    ASSERT_FALSE(share) << text;
    EXPECT_EQ(share.error().message.find("did you mean"), std::string::npos) << text;
  }
}

TEST(ValueParsersTest, PricesHaveALabelOrNone) {
  EXPECT_EQ(ParsePrice("0.12").value().amount, 0.12);
  EXPECT_EQ(ParsePrice("0.12").value().currency, "");
  EXPECT_EQ(ParsePrice("0.12 EUR").value().amount, 0.12);
  EXPECT_EQ(ParsePrice("0.12  EUR").value().currency, "EUR");
  for (const char* text : {"", "EUR", "EUR 0.12", "-1", "0.1EUR", "0.1 a long currency"}) {
    EXPECT_FALSE(ParsePrice(text)) << text;
  }
}

TEST(ValueParsersTest, CarbonIsInGramsUnlessItSaysKilograms) {
  EXPECT_EQ(ParseCarbon("380").value(), 380);
  EXPECT_EQ(ParseCarbon("380 g").value(), 380);
  EXPECT_EQ(ParseCarbon("0.38kg").value(), 380);
  EXPECT_EQ(ParseCarbon("380g/kWh").value(), 380);
  EXPECT_EQ(ParseCarbon("0.4g").value(), 0.4);
  EXPECT_EQ(ParseCarbon("0").value(), 0);
  EXPECT_EQ(ParseCarbon("2").value(), 2);
  EXPECT_EQ(ParseCarbon("0.0411kg").value(), 41.1);
  EXPECT_FALSE(ParseCarbon("1.1"));  // Coal, in kilograms.
  EXPECT_EQ(ParseCarbon("0.4").error().message,
            "expected grams of CO2 a kWh (380), or a number with a unit (380g, 0.38kg), from 0 to "
            "1000000 g, got '0.4'; did you mean 0.4kg?");
  for (const char* text : {"", "kg", "-1", "-0.4", "380t", "2e6", "1001kg", "380g/MWh", "nan"}) {
    const Result<double> carbon = ParseCarbon(text);
    ASSERT_FALSE(carbon) << text;
    EXPECT_EQ(carbon.error().message.find("did you mean"), std::string::npos) << text;
  }
}

TEST(ValueParsersTest, WholeNumbersOf64Bits) {
  EXPECT_EQ(ParseLongCount("5000000000", 1, 10'000'000'000).value(), 5'000'000'000);
  EXPECT_FALSE(ParseLongCount("0", 1, 10));
  EXPECT_FALSE(ParseLongCount("1e3", 1, 10'000));
  EXPECT_EQ(ParseSeed("18446744073709551615").value(), ~std::uint64_t{0});
  for (const char* text : {"", "-1", "18446744073709551616", "0x1"}) EXPECT_FALSE(ParseSeed(text));
}

TEST(ValueParsersTest, TargetsAreReadAsTheTableShowsThem) {
  using Kind = PlanTarget::Kind;
  for (const char* text : {"min-energy", "Min-Energy", "min energy", "t_min_energy"}) {
    EXPECT_EQ(ParseTarget(text).value().kind, Kind::kMinEnergy) << text;
  }
  for (const char* text : {"fastest", "FASTEST", "T_min"}) {
    EXPECT_EQ(ParseTarget(text).value().kind, Kind::kFastest) << text;
  }
  for (const char* text : {"tstar", "Tstar", "T*", "t*"}) {
    EXPECT_EQ(ParseTarget(text).value().kind, Kind::kTStar) << text;
  }
  EXPECT_EQ(ParseTarget("1.02X").value().kind, Kind::kBaselineFactor);
  EXPECT_EQ(ParseTarget("1.02X").value().value, 1.02);
  EXPECT_EQ(ParseTarget("5.3s").value().kind, Kind::kSeconds);
  for (const char* text : {"", "T", "Soon", "-1X"}) {
    ASSERT_FALSE(ParseTarget(text)) << text;
    EXPECT_TRUE(ParseTarget(text).error().message.starts_with(std::string("'") + text + "'"));
  }
}

TEST(ValueParsersTest, ListsAreSeparatedByCommas) {
  EXPECT_EQ(ParseWatts("75").value(), (std::vector<double>{75}));
  EXPECT_EQ(ParseWatts("75,80.5").value(), (std::vector<double>{75, 80.5}));
  for (const char* text : {"", "75,", ",75", "75;80", "75 80", "75, ,80"}) {
    EXPECT_FALSE(ParseWatts(text)) << text;
  }
  EXPECT_EQ(ParseDurations("1ms,2").value(), (std::vector<double>{1 * 1e-3, 2}));
}

TEST(ValueParsersTest, ListsMayHaveSpacesAroundTheirCommas) {
  EXPECT_EQ(ParseWatts("75 W, 80W ,81").value(), (std::vector<double>{75, 80, 81}));
  EXPECT_EQ(ParseDurations("1 ms, 2 ms").value(), (std::vector<double>{1 * 1e-3, 2 * 1e-3}));
}

}  // namespace
}  // namespace perseus::cli
