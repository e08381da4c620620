// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/printable.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace perseus {
namespace {

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("plain, \u00e9, \u4f60 and \\"), "plain, \u00e9, \u4f60 and \\");
  EXPECT_EQ(Printable("a\nb\x1b[31m\x7f"), "a\\nb\\x1b[31m\\x7f");
  EXPECT_EQ(Printable("\u009b31m\u0085"), "\\x9b31m\\x85");
  EXPECT_EQ(Printable("\u202eevil\u202c \u2066x\u2069 \u200e\u200f\u061c"),
            "\\u202eevil\\u202c \\u2066x\\u2069 \\u200e\\u200f\\u061c");
  EXPECT_EQ(Printable("\u2028\u2029"), "\\u2028\\u2029");
  EXPECT_EQ(Printable("\x9b\xff\xc3"), "\\x9b\\xff\\xc3");
}

TEST(PrintableJson, IsTheSameValue) {
  const nlohmann::ordered_json value = {{"name", "a\u202e\u009b\x7f\u00e9\n\U0001F600"}};
  const std::string text = PrintableJson(value.dump());
  EXPECT_EQ(text, R"({"name":"a\u202e\u009b\u007f)"
                  "\u00e9"
                  R"(\n)"
                  "\U0001F600\"}");
  EXPECT_EQ(nlohmann::ordered_json::parse(text), value);
}

TEST(CutTo, CountsCharactersAndMarksWhatIsLeftOut) {
  EXPECT_EQ(CutTo(4, "caf\u00e9", "\u2026"), "caf\u00e9");
  EXPECT_EQ(CutTo(3, "caf\u00e9", "\u2026"), "ca\u2026");
  EXPECT_EQ(CutTo(3, "\u00e9\u00e9\u00e9\u00e9", "\u2026"), "\u00e9\u00e9\u2026");
}

}  // namespace
}  // namespace perseus
