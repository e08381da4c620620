// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/protobuf.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "emulation_fixture.h"
#include "perseus/emulation_report.h"

namespace perseus::report {
namespace {

std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

// The first two are the examples of protobuf.dev/programming-guides/encoding.
TEST(ProtoMessageTest, WritesTheWireFormat) {
  ProtoMessage whole;
  whole.Whole(1, 150);
  EXPECT_EQ(whole.bytes(), Bytes({0x08, 0x96, 0x01}));
  ProtoMessage nested;
  nested.Message(3, whole);
  EXPECT_EQ(nested.bytes(), Bytes({0x1a, 0x03, 0x08, 0x96, 0x01}));
  ProtoMessage text;
  text.Text(2, "testing");
  EXPECT_EQ(text.bytes(), Bytes({0x12, 0x07}) + "testing");
  ProtoMessage below;
  below.Signed(1, -2);
  EXPECT_EQ(below.bytes(),
            Bytes({0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
  ProtoMessage real;
  real.Double(44, 1);  // A tag of two bytes.
  EXPECT_EQ(real.bytes(), Bytes({0xe1, 0x02, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}));
  ProtoMessage zero;
  zero.Whole(1, 0);
  EXPECT_EQ(zero.bytes(), Bytes({0x08, 0x00}));
}

TEST(ProtoTraceTest, IsTheSameTwice) {
  const EmulatedSample made = MakeEmulatedSample(9, 50);
  const std::string trace = *FormatEmulationTimelineTrace(made.Bare());
  EXPECT_EQ(trace, *FormatEmulationTimelineTrace(made.Bare()));
  EXPECT_NE(trace.find("pipeline 2 (straggles)"), std::string::npos);
}

}  // namespace
}  // namespace perseus::report
