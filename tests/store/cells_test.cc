// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/cells.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace perseus::store {
namespace {

RC_GTEST_PROP(CellsTest, WhatIsWrittenIsReadBack, (const std::vector<int>& integers)) {
  RC_ASSERT(ParseIntegers(FormatIntegers(integers)) == integers);
  std::vector<double> numbers;
  for (const int integer : integers) numbers.push_back(integer / 3.0);
  RC_ASSERT(ParseNumbers(FormatNumbers(numbers)) == numbers);
  std::vector<int> knobs;
  std::map<int, std::int64_t> exceptions;
  for (const int integer : integers) {
    knobs.push_back(static_cast<int>(static_cast<unsigned>(integer) % kMaxKnobs));
    exceptions[integer] = std::int64_t{integer} * 1'000'000'000;
  }
  RC_ASSERT(ParseKnobs(FormatKnobs(knobs)) == knobs);
  RC_ASSERT(ParseExceptions(FormatExceptions(exceptions)) == exceptions);
}

TEST(CellsTest, RowsAreReadBack) {
  const std::vector<MeasuredRow> rows = {
      {.stage = 3, .type = ComputationType::kBackward, .clock_mhz = 1410, .time_seconds = 0.1},
      {.stage = 0, .type = ComputationType::kBackwardWeight, .energy_joules = 1e-9, .samples = 4}};
  const auto read = ParseRows(FormatRows(rows));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2);
  EXPECT_EQ(FormatRows(*read), FormatRows(rows));
  EXPECT_EQ((*read)[1].type, ComputationType::kBackwardWeight);
  EXPECT_EQ((*read)[1].samples, 4);
}

RC_GTEST_PROP(CellsTest, WhatIsSaidOfARowIsReadBack, (const std::vector<int>& seeds)) {
  std::vector<MeasuredRow> rows;
  for (const int seed : seeds) {
    const auto bits = static_cast<unsigned>(seed);
    const double value = seed / 7.0;
    MeasuredRow& row = rows.emplace_back(MeasuredRow{.clock_mhz = 1410, .time_seconds = value});
    if ((bits & 1U) != 0) row.time_std_seconds = value;
    if ((bits & 2U) != 0) row.energy_std_joules = -value;
    row.throttled = (bits & 4U) != 0;
    if ((bits & 8U) != 0) row.temperature_celsius = value;
    if ((bits & 16U) != 0) row.work = value;
    if ((bits & 32U) != 0) row.seconds_per_work = value;
    if ((bits & 64U) != 0) row.joules_per_work = value;
    if ((bits & 128U) != 0) row.time_residual_std_seconds = value;
    if ((bits & 256U) != 0) row.energy_residual_std_joules = value;
  }
  RC_ASSERT(ParseRows(FormatRows(rows)) == rows);
}

TEST(CellsTest, LabelsAreReadBack) {
  const JobLabels labels = {{"example.com/cost-centre", "a.1"}, {"Team", "vision_2-b"}};
  EXPECT_EQ(ParseLabels(FormatLabels(labels)), labels);
  EXPECT_EQ(FormatLabels({}), "");
  EXPECT_EQ(ParseLabels(""), JobLabels());
}

TEST(CellsTest, WhatNobodyWroteIsRefused) {
  EXPECT_FALSE(ParseIntegers("1 x"));
  EXPECT_FALSE(ParseNumbers("1.5,2"));
  EXPECT_FALSE(ParseKnobs("AAA"));
  EXPECT_FALSE(ParseKnobs("A!"));
  EXPECT_FALSE(ParseRows("0 F 1410 0.1 1"));
  EXPECT_FALSE(ParseRows("0 X 1410 0.1 1 1"));
  EXPECT_FALSE(ParseRows("0 F 1410 0.1 1 1 q2"));
  EXPECT_FALSE(ParseRows("0 F 1410 0.1 1 1 t"));
  std::optional<SweepCost> sweep;
  EXPECT_FALSE(ParseSweep("1 2 3", &sweep));
  EXPECT_FALSE(ParseWaiting("1410 80"));
  EXPECT_FALSE(ParseWaiting("1410 80 x"));
  EXPECT_FALSE(ParseExceptions("1"));
  EXPECT_FALSE(ParseLabels("team"));
  EXPECT_FALSE(ParseLabels("team="));
  EXPECT_FALSE(ParseLabels("team=a team=b"));
}

}  // namespace
}  // namespace perseus::store
