// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "support/mentions.h"

namespace perseus::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Protocol, ReadsTheRequestsOfItsDocumentation) {
  const auto hello = ParseRequest(R"({"id":1,"op":"hello","version":1,"client":"trainer"})");
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->operation, Operation::kHello);
  EXPECT_EQ(hello->client, "trainer");
  const auto set = ParseRequest("{\"id\":3,\"op\":\"set\",\"gpu\":\"GPU-1\",\"mhz\":1200}\r\n");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->id, 3);
  EXPECT_EQ(set->operation, Operation::kSet);
  EXPECT_EQ(set->gpu, "GPU-1");
  EXPECT_EQ(set->mhz, 1200);
  EXPECT_TRUE(ParseRequest(R"({"id":6,"op":"renew"})"));
  EXPECT_EQ(ParseRequest(R"({"id":6,"op":"release_all"})")->gpu, "");
  EXPECT_EQ(ParseRequest(R"({"id":6,"op":"release_all","gpu":"GPU-1"})")->gpu, "GPU-1");
}

TEST(Protocol, SaysWhatIsWrongWithARequest) {
  struct Case {
    const char* line;
    const char* says;
    bool has_id;
  };
  const Case cases[] = {
      {"", "empty", false},
      {"garbage", "not valid JSON", false},
      {"[1,2]", "expected an object", false},
      {R"({"op":"status"})", "'id' is missing", false},
      {R"({"id":0,"op":"status"})", "id: expected a number from 1", false},
      {R"({"id":1.5,"op":"status"})", "id: expected a whole number", false},
      {R"({"id":1e300,"op":"status"})", "id: expected a number from 1", false},
      {R"({"id":7,"op":"explode"})", "op: expected one of hello, lease", true},
      {R"({"id":7,"op":"lease"})", "'gpu' is missing", true},
      {R"({"id":7,"op":"lease","gpu":""})", "gpu: expected the name of a GPU", true},
      {R"({"id":7,"op":"set","gpu":"G","mhz":0})", "mhz: expected a whole number from 1", true},
      {R"({"id":7,"op":"set","gpu":"G","mhz":"fast"})", "mhz: expected a whole number", true},
      {R"({"id":7,"op":"status","gpu":"G"})", "unknown key 'gpu'", true},
      {R"({"id":7,"op":"status","op":"set"})", "given twice", false},
  };
  for (const Case& each : cases) {
    const auto request = ParseRequest(each.line);
    ASSERT_FALSE(request) << each.line;
    EXPECT_THAT(request.error().message, HasSubstr(each.says)) << each.line;
    EXPECT_EQ(request.error().id.has_value(), each.has_id) << each.line;
  }
}

TEST(Protocol, BoundsNamesAndLines) {
  const std::string name(kMaxNameBytes + 1, 'x');
  EXPECT_FALSE(ParseRequest(R"({"id":1,"op":"lease","gpu":")" + name + "\"}"));
  const std::string line(kMaxRequestBytes + 1, ' ');
  const auto request = ParseRequest(line);
  ASSERT_FALSE(request);
  EXPECT_THAT(request.error().message, Mentions("65536"));
  EXPECT_FALSE(ParseRequest(std::string(kMaxRequestBytes, '[')));
}

RC_GTEST_PROP(Protocol, WhatIsWrittenIsRead, ()) {
  Request request;
  request.id = *rc::gen::inRange<std::int64_t>(1, kMaxRequestId);
  request.operation = static_cast<Operation>(*rc::gen::inRange(0, 10));
  const auto again = ParseRequest([&] {
    request.gpu = "GPU-" + std::to_string(*rc::gen::inRange(0, 9));
    request.mhz = *rc::gen::inRange(1, kMaxClockMhz);
    return FormatRequest(request);
  }());
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->id == request.id);
  RC_ASSERT(again->operation == request.operation);
  RC_ASSERT(FormatRequest(*again) == FormatRequest(request));
}

RC_GTEST_PROP(Protocol, TakesAnyBytes, (const std::string& bytes)) {
  const auto request = ParseRequest(bytes);
  RC_ASSERT(request || !request.error().message.empty());
  const auto answer = ParseAnswer(bytes);
  RC_ASSERT(answer || !answer.error().message.empty());
}

// An answer read back and written again is the same text, for every kind.
TEST(Protocol, AnswersAreReadAsTheyWereWritten) {
  HelloAnswer hello;
  hello.program_version = "0.1.0";
  hello.max_silence_seconds = 5;
  hello.gpus = {{"GPU-1", "A100", 0, {210, 1410}, std::nullopt}, {"GPU-2", "A100", 1, {1410}, 77}};
  ConditionsAnswer conditions;
  conditions.conditions.power_limit_watts = 300;
  conditions.conditions.throttle_reasons = 0x24;
  conditions.conditions.power_profiles = {"MAX_Q"};
  conditions.conflicts = {"slow"};
  StatusAnswer status;
  status.pid = 12;
  status.driver = "nvml";
  GpuStatus gpu;
  gpu.uuid = "GPU-1";
  gpu.owner = OwnerStatus{4, 1000, "alice (uid 1000)", "trainer", 1.5, 0.25};
  gpu.locked_mhz = 900;
  gpu.sets = 3;
  status.leases = 5;
  status.refused = {.held = 2, .device = 1};
  status.gpus = {gpu, {}};
  const Answer answers[] = {
      {1, Operation::kHello, hello},
      {2, Operation::kLease, Done{}},
      {3, Operation::kSet, SetAnswer{1200, 14000, false}},
      {3, Operation::kSet, SetAnswer{0, 0, true}},
      {4, Operation::kEnergy, EnergyAnswer{12.5, 9'100'000'000'000'000}},
      {4, Operation::kClock, ClockAnswer{1410}},
      {5, Operation::kConditions, conditions},
      {6, Operation::kStatus, status},
      {7, Operation::kReleaseAll, ReleaseAllAnswer{8, {"GPU-3: no"}}},
      {8, Operation::kSet, Refused{Refusal::kNotLeased, "no lease"}},
      {std::nullopt, std::nullopt, Refused{Refusal::kBadRequest, "what?"}},
  };
  for (const Answer& answer : answers) {
    const std::string line = FormatAnswer(answer);
    const auto again = ParseAnswer(line);
    ASSERT_TRUE(again) << line << again.error().message;
    EXPECT_EQ(again->body.index(), answer.body.index()) << line;
    EXPECT_EQ(FormatAnswer(*again), line);
  }
}

TEST(Protocol, AnswersAreOneLineOfTheDocumentedKeys) {
  EXPECT_EQ(FormatAnswer({3, Operation::kSet, SetAnswer{1200, 14000, false}}),
            "{\"id\":3,\"op\":\"set\",\"ok\":true,\"mhz\":1200,\"took_us\":14000}\n");
  EXPECT_EQ(FormatAnswer({3, Operation::kSet, SetAnswer{.superseded = true}}),
            "{\"id\":3,\"op\":\"set\",\"ok\":true,\"superseded\":true}\n");
  EXPECT_EQ(FormatAnswer({std::nullopt, std::nullopt, Refused{Refusal::kHeld, "line\nend"}}),
            "{\"id\":null,\"ok\":false,\"code\":\"held\",\"message\":\"line\\nend\"}\n");
}

TEST(Protocol, AgentsMaySayMoreThanClientsKnow) {
  const auto answer =
      ParseAnswer(R"({"id":2,"op":"energy","ok":true,"joules":1.5,"at_ns":7,"new":[1]})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<EnergyAnswer>(answer->body).at_ns, 7);
  EXPECT_FALSE(ParseAnswer(R"({"id":2,"op":"energy","ok":true,"joules":"many","at_ns":7})"));
  EXPECT_FALSE(ParseAnswer(R"({"id":2,"ok":true})"));
}

}  // namespace
}  // namespace perseus::agent
