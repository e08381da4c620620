// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/framework/table.h"

#include <gtest/gtest.h>

#include "common/printable.h"

namespace perseus::cli {
namespace {

TEST(TableTest, AlignsColumnsByCodePoints) {
  Table table({"name", "J"}, {Align::kLeft, Align::kRight});
  table.AddRow({"T\u2080", "1,000.5"});
  table.AddRow({"slow"});
  EXPECT_EQ(table.Format("-"),
            "name        J\n"
            "-------------\n"
            "T\u2080    1,000.5\n"
            "slow\n");
}

TEST(TableTest, WrapsAtSpacesAndIndents) {
  EXPECT_EQ(Wrap("one two three", 9, 2), "one two\n  three");
  EXPECT_EQ(Wrap("averyveryverylongword x", 8, 0), "averyveryverylongword\nx");
  EXPECT_EQ(Wrap("", 8, 4), "");
}

TEST(TableTest, NothingIsLeftThatATerminalObeys) {
  EXPECT_EQ(Printable("a\nb\x1b[31m\x7f \u00e9"), "a\\nb\\x1b[31m\\x7f \u00e9");
  Table table({"name"}, {Align::kLeft});
  table.AddRow({"a\nb"});
  EXPECT_EQ(table.Format("-"), "name\n----\na\\nb\n");
}

TEST(TableTest, OneLongCellDoesNotWidenTheTable) {
  Table table({"name"}, {Align::kLeft});
  table.AddRow({std::string(5'000, 'a')});
  const std::string text = table.Format("-");
  EXPECT_EQ(text, "name\n" + std::string(Table::kWidestCell, '-') + "\n" +
                      std::string(Table::kWidestCell - 1, 'a') + "\u2026\n");
}

TEST(TableTest, NumbersReadWell) {
  EXPECT_EQ(WithThousands(1234567.891, 1), "1,234,567.9");
  EXPECT_EQ(WithThousands(-1234.5, 1), "-1,234.5");
  EXPECT_EQ(WithThousands(999, 0), "999");
  EXPECT_EQ(WithThousands(-0.001, 2), "0.00");
  EXPECT_EQ(CountOf(1, "stage"), "1 stage");
  EXPECT_EQ(CountOf(1536, "computation"), "1,536 computations");
  EXPECT_EQ(CountOf(2, "microbatch"), "2 microbatches");
  EXPECT_EQ(FormatSeconds(18.25), "18.2500 s");
  EXPECT_EQ(FormatSeconds(0.0035), "3.50 ms");
  EXPECT_EQ(FormatSeconds(2e-6), "2.00 us");
  EXPECT_EQ(FormatSeconds(0), "0.0000 s");
  EXPECT_EQ(FormatJoules(20332.14), "20,332.1 J");
  EXPECT_EQ(FormatJoules(11418092.8), "11.418 MJ");
  EXPECT_EQ(FormatWatts(5.123), "5.12 W");
  EXPECT_EQ(FormatWatts(16733.1), "16,733.1 W");
  EXPECT_EQ(FormatWatts(0.00167), "1.67 mW");
  EXPECT_EQ(FormatWatts(0), "0.00 W");
  EXPECT_EQ(FormatWatts(1543965), "1,544.0 kW");
  EXPECT_EQ(FormatSignedPercent(1, 2), "+1.00 %");
  EXPECT_EQ(FormatSignedPercent(-0.5, 1), "-0.5 %");
}

}  // namespace
}  // namespace perseus::cli
