// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/job_client_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace perseus::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile =
    "x\x1b]0;title\x07\xc2\x9b"
    "2J";

// A job as a hostile server tells it.
nlohmann::ordered_json HostileJob() {
  return {{"id", kHostile},
          {"name", kHostile},
          {"state", kHostile},
          {"reason", kHostile},
          {"at", kHostile},
          {"plan",
           {{"version", kHostile},
            {"reason", kHostile},
            {"sentence", kHostile},
            {"pipelines", {{kHostile, {{"iteration_time_s", 1.0}}}}}}},
          {"stragglers",
           nlohmann::ordered_json::array({{{"straggler_id", kHostile}, {"node", kHostile}}})}};
}

void ExpectHarmless(const std::string& text) {
  EXPECT_THAT(text, HasSubstr("title"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\x07")));
  EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
}

TEST(JobClientTextTest, NothingThatAServerNamesReachesTheTerminal) {
  const Style plain;
  ExpectHarmless(JobText(HostileJob(), plain));
  ExpectHarmless(JobTable(nlohmann::ordered_json::array({HostileJob()}), plain));
  ExpectHarmless(JsonText(HostileJob().dump()));
  ExpectHarmless(EventText(kHostile, HostileJob().dump()));
  ExpectHarmless(EventText("state", kHostile));
}

TEST(JobClientTextTest, JsonStaysTheSameJson) {
  EXPECT_EQ(JsonText(R"({"b":1.5,"a":[1,null]})"), R"({"b":1.5,"a":[1,null]})");
  EXPECT_EQ(nlohmann::json::parse(JsonText(HostileJob().dump())),
            nlohmann::json::parse(HostileJob().dump()));
}

}  // namespace
}  // namespace perseus::cli
