// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/job_spec.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "common/temporary_directory.h"
#include "job/job_fields.h"
#include "perseus/job_file.h"
#include "server/service_testing.h"
#include "support/mentions.h"

namespace perseus::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Failure FailureOf(const std::string& settings, const std::string& profile = "") {
  const Outcome<JobSpec> spec = MakeJobSpec(settings, profile);
  return spec ? Failure{.message = "accepted"} : spec.error();
}

TEST(JobSpecTest, TheShapeFollowsFromTheSettings) {
  const auto spec = MakeJobSpec(R"({"schedule":"interleaved-1f1b","microbatches":8,"stages":8,)"
                                R"("virtual_stages":2,"tensor_parallel":4,"dp":3})",
                                "");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->shape.pipeline_parallel, 4);
  EXPECT_EQ(spec->shape.tensor_parallel, 4);
  EXPECT_EQ(spec->shape.data_parallel, 3);
  EXPECT_EQ(spec->shape.world_size(), 48);
}

TEST(JobSpecTest, WithAProfileTheStagesMayBeLeftOut) {
  const auto spec =
      MakeJobSpec(R"({"schedule":"1f1b","microbatches":4,"blocking_power":20})", kSmallProfile);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->shape.pipeline_parallel, 2);
}

TEST(JobSpecTest, AnOrderOfOnesOwnIsTakenAsText) {
  const auto with = [](const std::string& csv, const std::string& more = "") {
    return R"({"blocking_power":20,"schedule_csv":")" + csv + "\"" + more + "}";
  };
  const std::string csv = R"(0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n)";
  for (const char* const profile : {"", kSmallProfile}) {
    const auto spec = MakeJobSpec(with(csv, R"(,"stages":2,"microbatches":2,"dp":3)"), profile);
    ASSERT_TRUE(spec) << spec.error().message;
    EXPECT_EQ(spec->shape.world_size(), 6);
    const Failure failure = FailureOf(with(csv, R"(,"microbatches":3)"), profile);
    EXPECT_THAT(failure.message, Mentions("microbatches", "3", "2", "schedule_csv"));
    EXPECT_THAT(FailureOf(with(csv, R"(,"stages":3)"), profile).message, Mentions("stages", "3"));
    EXPECT_THAT(FailureOf(with(csv, R"(,"schedule":"1f1b","microbatches":2)"), profile).message,
                Mentions("schedule_csv:", "'schedule'"));
    EXPECT_THAT(FailureOf(with(R"(0F0,0B0\n1F0,1X0\n)"), profile).message,
                Mentions("schedule_csv:2:6"));
    EXPECT_THAT(FailureOf(with(R"(0F0,0B0\n1B0,1F0\n)"), profile).message, Mentions("1B0"));
    const Failure large = FailureOf(with(std::string(kMostScheduleBytes + 1, ',')), profile);
    EXPECT_EQ(large.code, FailureCode::kTooLarge);
    EXPECT_EQ(large.field, "job.schedule_csv");
  }
  const auto measurable = MeasurableOf(with(R"(0F0,0I0,0W0\n1F0,1I0,1W0\n)"));
  ASSERT_TRUE(measurable) << measurable.error().message;
  EXPECT_EQ(measurable->num_stages, 2);
  EXPECT_TRUE(measurable->splits_backward);
  EXPECT_FALSE(measurable->Has(ComputationType::kRecompute));
  const auto early =
      MeasurableOf(R"({"schedule":"early-recomputation-1f1b","stages":1,"microbatches":1})");
  ASSERT_TRUE(early) << early.error().message;
  EXPECT_TRUE(early->Has(ComputationType::kRecompute));
  EXPECT_FALSE(early->Has(ComputationType::kBackwardInput));
}

// Every field that there is, so that one that comes later is not forgotten here.
TEST(JobSpecTest, NoRequestNamesAFile) {
  TemporaryDirectory directory;
  directory.Put("marked.csv", "secret\n");
  const std::string file = directory.Path("marked.csv");
  int paths = 0;
  for (const job::Field& field : job::Fields()) {
    nlohmann::json settings = {{"schedule", "1f1b"}, {"microbatches", 4}, {"stages", 2}};
    (field.condition() ? settings["conditions"] : settings)[std::string(field.key)] = file;
    for (const char* const profile : {"", kSmallProfile}) {
      const Failure failure = FailureOf(settings.dump(), profile);
      if (failure.message == "accepted") {
        // A text that nobody reads as a path: what knob or clock it names.
        EXPECT_EQ(field.unit, job::Unit::kLabel) << field.key;
        continue;
      }
      EXPECT_EQ(failure.code, FailureCode::kInvalid) << field.key;
      EXPECT_THAT(failure.message, Not(HasSubstr("secret"))) << field.key;
      const bool is_path = field.unit == job::Unit::kPath;
      EXPECT_EQ(failure.message.find("the server reads none") != std::string::npos, is_path)
          << field.key << ": " << failure.message;
      if (is_path) {
        EXPECT_EQ(failure.field, fmt::format("job.{}", field.key));
      }
      paths += is_path ? 1 : 0;
    }
  }
  EXPECT_GE(paths, 2 * 5);
}

// What a job file reads from its own directory is a path here: the two say the same.
TEST(JobSpecTest, WhatTheReaderTakesForAPathIsRefused) {
  for (const job::Field& field : job::Fields()) {
    if (field.condition()) continue;
    const nlohmann::json settings = {{std::string(field.key), "marked.csv"}};
    const auto read = ParseJobFile(settings.dump(), "/some/where/job.json", JobFileFormat::kJson);
    if (!read) continue;
    const bool is_resolved = std::visit(
        [&](auto member) {
          const auto& value = (*read).*member;
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::optional<std::string>>) {
            return value.value_or("").starts_with("/some/where");
          } else if constexpr (std::is_same_v<std::decay_t<decltype(value)>,
                                              std::optional<WorkSetting>>) {
            return value && value->file.starts_with("/some/where");
          } else {
            return false;
          }
        },
        field.member);
    const bool is_refused =
        FailureOf(settings.dump()).message.find("the server reads none") != std::string::npos;
    EXPECT_EQ(is_resolved, is_refused) << field.key;
  }
}

TEST(JobSpecTest, ConditionsThatCannotBeAreRefused) {
  const auto with = [](const char* conditions) {
    return std::string(R"({"schedule":"1f1b","microbatches":4,"stages":2,"blocking_power":20,)") +
           R"("conditions":)" + conditions + "}";
  };
  for (const char* const profile : {"", kSmallProfile}) {
    EXPECT_TRUE(MakeJobSpec(with(R"({"noise":"1%","switch_latency":"15ms"})"), profile));
    const Failure failure =
        FailureOf(with(R"({"switch_latency":"1ms","switch_latency_spread":"2ms"})"), profile);
    EXPECT_EQ(failure.code, FailureCode::kInvalid);
    EXPECT_THAT(failure.message,
                Mentions("'switch_latency_spread'", "0.002", "'switch_latency'", "0.001"));
    EXPECT_EQ(failure.field, "job.conditions");
  }
}

TEST(JobSpecTest, ConditionsOfTooManyPipelinesAreRefused) {
  const auto settings = [](int pipelines, const char* more) {
    return fmt::format(R"({{"schedule":"1f1b","microbatches":400,"stages":2,"blocking_power":20,)"
                       R"("data_parallel":{}{}}})",
                       pipelines, more);
  };
  constexpr const char* kNoise = R"(,"conditions":{"noise":"1%"})";
  for (const char* const profile : {"", kSmallProfile}) {
    EXPECT_TRUE(MakeJobSpec(settings(250, kNoise), profile));
    EXPECT_TRUE(MakeJobSpec(settings(251, ""), profile));
    const Failure failure = FailureOf(settings(251, kNoise), profile);
    EXPECT_EQ(failure.code, FailureCode::kTooLarge);
    EXPECT_EQ(failure.field, "job.conditions");
    EXPECT_THAT(failure.message, Mentions("1600", "251"));
  }
}

TEST(JobSpecTest, JobsOfMoreComputationsThanTheLimitAreRefused) {
  const auto settings = [](int microbatches) {
    return fmt::format(R"({{"schedule":"1f1b","microbatches":{},"stages":2,"blocking_power":20,)"
                       R"("accept_implausible":true}})",  // Iterations of days.
                       microbatches);
  };
  const int most = static_cast<int>(kMostComputations / 4);
  for (const char* const profile : {"", kSmallProfile}) {
    EXPECT_EQ(FailureOf(settings(most), profile).message, "accepted");
    const Failure failure = FailureOf(settings(most + 1), profile);
    EXPECT_EQ(failure.code, FailureCode::kTooLarge);
    EXPECT_EQ(failure.field, "job.microbatches");
    EXPECT_THAT(failure.message, Mentions("200004"));
  }
  // Where the backward is split there are more of them than two a microbatch.
  const Failure split =
      FailureOf(R"({"schedule":"zb1p","microbatches":50000,"stages":2,"blocking_power":20})");
  EXPECT_EQ(split.code, FailureCode::kTooLarge);
}

TEST(JobSpecTest, WhatIsWrongIsSaid) {
  EXPECT_EQ(FailureOf("[]").field, "job");
  EXPECT_THAT(FailureOf(R"({"schedul":"1f1b"})").message, Mentions("schedule"));
  EXPECT_THAT(FailureOf(R"({"schedule":"1f1b"})").message, Mentions("'microbatches'", "'stages'"));
  EXPECT_THAT(FailureOf(R"({"tp":1,"tensor_parallel":1})").message,
              Mentions("'tp'", "'tensor_parallel'"));
  EXPECT_EQ(FailureOf(R"({"schedule":"1f1b","stages":1000,"microbatches":100000})").code,
            FailureCode::kTooLarge);
  EXPECT_EQ(FailureOf(R"({"schedule":"1f1b","stages":8,"microbatches":8,"dp":1000000})").code,
            FailureCode::kTooLarge);
  const Failure labels = FailureOf(kSmallSettings,
                                   "stage,instruction,knob,time,energy\n"
                                   "0,forward,fast,1,1\n0,backward,fast,1,1\n");
  EXPECT_THAT(labels.message, Mentions("labels"));
  EXPECT_EQ(labels.field, "profile_csv");
  EXPECT_THAT(FailureOf(kSmallSettings, "stage,instruction\n").field, "profile_csv");
}

}  // namespace
}  // namespace perseus::server
