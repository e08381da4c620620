// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/html_text.h"

#include <gtest/gtest.h>

#include <string_view>

namespace perseus {
namespace {

TEST(HtmlTextTest, EscapesHtml) {
  EXPECT_EQ(EscapeHtml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(EscapeHtml("3 \u00b5s"), "3 \u00b5s");
}

TEST(HtmlTextTest, ReplacesWhatIsNotText) {
  EXPECT_EQ(EscapeHtml("a\x80z"), "a\ufffdz");
  EXPECT_EQ(EscapeHtml(std::string_view("a\0\n\x7fz", 5)), "a   z");
}

}  // namespace
}  // namespace perseus
