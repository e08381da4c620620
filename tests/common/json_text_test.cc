// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

TEST(JsonTextTest, OneMemberAndOneRowALine) {
  const Json object = {{"a", 1},
                       {"series", {0.1, 2.5}},
                       {"rows", Json::array({Json{{"x", 1}}, Json{{"x", nullptr}}})},
                       {"none", Json::array()},
                       {"inner", {{"y", "z"}}}};
  EXPECT_EQ(FormatByLine(object),
            "{\n"
            "  \"a\": 1,\n"
            "  \"series\": [0.1,2.5],\n"
            "  \"rows\": [\n"
            "    {\"x\":1},\n"
            "    {\"x\":null}\n"
            "  ],\n"
            "  \"none\": [],\n"
            "  \"inner\": {\"y\":\"z\"}\n"
            "}\n");
  EXPECT_EQ(Json::parse(FormatByLine(object)), object);
}

TEST(JsonTextTest, KeepsAllDigitsAndSurvivesOddBytes) {
  const double third = 1.0 / 3;
  const std::string text = FormatByLine({{"x", third}, {"odd\"", "\xff"}});
  const Json back = Json::parse(text);
  EXPECT_EQ(back["x"].get<double>(), third);
  EXPECT_EQ(back["odd\""], "\xef\xbf\xbd");
}

}  // namespace
}  // namespace perseus::cli
