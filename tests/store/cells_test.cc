// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/cells.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace perseus::store {
namespace {

// What is read of the cell that a value has; none: it is refused.
template <typename T>
std::optional<T> ReadBack(const T& value) {
  T read = {};
  return ReadCell(CellOf(value), &read) ? std::optional(read) : std::nullopt;
}

RC_GTEST_PROP(CellsTest, WhatIsWrittenIsReadBack, (const std::vector<int>& integers)) {
  RC_ASSERT(ReadBack(integers) == integers);
  std::vector<double> numbers;
  std::map<int, std::int64_t> exceptions;
  for (const int integer : integers) {
    numbers.push_back(integer / 3.0);
    exceptions[integer] = std::int64_t{integer} * 1'000'000'000;
  }
  RC_ASSERT(ReadBack(numbers) == numbers);
  RC_ASSERT(ReadBack(exceptions) == exceptions);
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
    if ((bits & 512U) != 0) row.time_sources = {0.25, -0.125};
    row.type = static_cast<ComputationType>(bits % kNumComputationTypes);
  }
  RC_ASSERT(ReadBack(rows) == rows);
}

TEST(CellsTest, LabelsAreReadBack) {
  const JobLabels labels = {{"example.com/cost-centre", "a.1"}, {"Team", "vision_2-b"}};
  EXPECT_EQ(ReadBack(labels), labels);
  EXPECT_EQ(CellOf(JobLabels()), "");
  EXPECT_EQ(ReadBack(JobLabels()), JobLabels());
}

template <typename T>
bool IsRefused(std::string_view text) {
  T read = {};
  return !ReadCell(text, &read);
}

TEST(CellsTest, WhatNobodyWroteIsRefused) {
  EXPECT_TRUE(IsRefused<std::vector<int>>("1 x"));
  EXPECT_TRUE(IsRefused<std::vector<double>>("1.5,2"));
  for (const char* const rows : {"0 F 1410 0.1 1", "0 X 1410 0.1 1 1", "0 F 1410 0.1 1 1 q2",
                                 "0 F 1410 0.1 1 1 t", "0 F 1410 0.1 1 1 x2"}) {
    EXPECT_TRUE(IsRefused<std::vector<MeasuredRow>>(rows)) << rows;
  }
  EXPECT_TRUE(IsRefused<std::optional<SweepCost>>("1 2 3"));
  EXPECT_TRUE(IsRefused<std::vector<MeasuredWaiting>>("1410 80"));
  EXPECT_TRUE(IsRefused<std::vector<MeasuredWaiting>>("1410 80 x"));
  using Exceptions = std::map<int, std::int64_t>;
  EXPECT_TRUE(IsRefused<Exceptions>("1"));
  for (const char* const labels : {"team", "team=", "team=a team=b"}) {
    EXPECT_TRUE(IsRefused<JobLabels>(labels)) << labels;
  }
  EXPECT_TRUE(IsRefused<JobState>("soon"));
}

}  // namespace
}  // namespace perseus::store
