// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/job_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/temporary_directory.h"
#include "job/job_fields.h"
#include "job/setting_text.h"
#include "perseus/job.h"
#include "support/mentions.h"

namespace perseus {
namespace {

constexpr std::string_view kFullToml = R"(# Everything at once.
profile = "data/profile.csv"
schedule = "Interleaved1F1B"
stages = 16
microbatches = 96
virtual_stages = 2
microbatch_group_size = 8
blocking_power = [83.64, 85]
tp = 4
dp = 32
split_ratio = 0.45
comm_delay = 0.001
data_loading = 0.002
iteration_overhead = 0.05
at = "1.02x"
granularity = "stage-type"
time_margin = "2sigma"
coarse_watts = 2.5
exponential_fit = true
effort = 2
output = "out"
)";

constexpr std::string_view kFullJson = R"({
  "profile": "data/profile.csv", "schedule": "Interleaved1F1B", "stages": 16,
  "microbatches": 96, "virtual_stages": 2, "microbatch_group_size": 8,
  "blocking_power": [83.64, 85], "tp": 4, "dp": 32, "split_ratio": 0.45, "comm_delay": 0.001,
  "data_loading": 0.002, "iteration_overhead": 0.05, "at": "1.02x", "granularity": "stage-type",
  "time_margin": "2sigma", "coarse_watts": 2.5,
  "exponential_fit": true, "effort": 2, "output": "out"
})";

Result<JobFile> Toml(std::string_view text, const std::string& name = "job.toml") {
  return ParseJobFile(text, name, JobFileFormat::kToml);
}

std::string TomlError(std::string_view text) {
  const Result<JobFile> job = Toml(text);
  return job ? "accepted" : job.error().message;
}

std::string JsonError(std::string_view text) {
  const Result<JobFile> job = ParseJobFile(text, "job.json", JobFileFormat::kJson);
  return job ? "accepted" : job.error().message;
}

void ExpectFull(const Result<JobFile>& job) {
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->profile, "jobs/data/profile.csv");
  EXPECT_EQ(job->schedule, "interleaved-1f1b");
  EXPECT_EQ(job->schedule_file, std::nullopt);
  EXPECT_EQ(job->stages, 16);
  EXPECT_EQ(job->microbatches, 96);
  EXPECT_EQ(job->virtual_stages, 2);
  EXPECT_EQ(job->microbatch_group_size, 8);
  EXPECT_EQ(job->blocking_power_watts, (std::vector<double>{83.64, 85}));
  EXPECT_EQ(job->tensor_parallel, 4);
  EXPECT_EQ(job->data_parallel, 32);
  EXPECT_EQ(job->split_ratio, 0.45);
  EXPECT_EQ(job->comm_delay_seconds, std::vector<double>{0.001});
  EXPECT_EQ(job->data_loading_seconds, 0.002);
  EXPECT_EQ(job->iteration_overhead_seconds, 0.05);
  ASSERT_TRUE(job->at.has_value());
  EXPECT_EQ(job->at->kind, PlanTarget::Kind::kBaselineFactor);
  EXPECT_EQ(job->at->value, 1.02);
  EXPECT_EQ(job->granularity, Granularity::kStageType);
  EXPECT_EQ(job->time_margin, (TimeMargin{2, 0}));
  EXPECT_EQ(job->coarse_watts, 2.5);
  EXPECT_EQ(job->exponential_fit, true);
  EXPECT_EQ(job->effort, 2);
  EXPECT_EQ(job->output, "jobs/out");
}

TEST(JobFile, HoldsEveryFlagInToml) { ExpectFull(Toml(kFullToml, "jobs/job.toml")); }

TEST(JobFile, HoldsEveryFlagInJson) {
  ExpectFull(ParseJobFile(kFullJson, "jobs/job.json", JobFileFormat::kJson));
}

TEST(JobFile, MayBeEmpty) {
  const Result<JobFile> job = Toml("");
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->profile, std::nullopt);
  EXPECT_TRUE(job->blocking_power_watts.empty());
  EXPECT_EQ(job->at, std::nullopt);
}

TEST(JobFile, ResolvesPathsFromItsDirectory) {
  EXPECT_EQ(Toml("profile = 'p.csv'", "job.toml")->profile, "p.csv");
  EXPECT_EQ(Toml("profile = 'p.csv'", "/a/b/job.toml")->profile, "/a/b/p.csv");
  EXPECT_EQ(Toml("profile = '/c/p.csv'", "/a/b/job.toml")->profile, "/c/p.csv");
  EXPECT_EQ(Toml("schedule_file = 's.csv'", "a/job.toml")->schedule_file, "a/s.csv");
}

TEST(JobFile, ANumberWithoutUnitIsNoTarget) {
  const Result<JobFile> job = Toml("at = '5.25s'");
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->at->kind, PlanTarget::Kind::kSeconds);
  EXPECT_EQ(job->at->value, 5.25);
  for (const char* const bare : {"at = 5.25", "at = '5.25'"}) {
    EXPECT_THAT(TomlError(bare), ::testing::AllOf(Mentions("5.25x"), Mentions("5.25s")));
  }
}

TEST(JobFile, APlanIsNoJobFile) {
  EXPECT_THAT(JsonError(R"({"schema_version": 4, "stages": 2, "ranks": []})"), Mentions("plan;"));
}

TEST(JobFile, NamesTheNearestKey) {
  EXPECT_EQ(TomlError("stages = 8\nblocking-power = 80\n"),
            "job.toml:2:1: unknown key 'blocking-power'; did you mean 'blocking_power'?");
  EXPECT_EQ(TomlError("micro_batch = 8"),
            "job.toml:1:1: unknown key 'micro_batch'; did you mean 'microbatches'?");
  EXPECT_EQ(JsonError("{\"tp\": 1,\n  \"Schedule\": \"1f1b\"}"),
            "job.json:2:3: unknown key 'Schedule'; did you mean 'schedule'?");
  EXPECT_EQ(TomlError("colour = 'red'").substr(0, 63),
            "job.toml:1:1: unknown key 'colour'; the known keys are profile,");
  // The first of the file, not of the alphabet.
  EXPECT_EQ(TomlError("zzzzzzzz = 1\naaaaaaaa = 2\n").substr(0, 36),
            "job.toml:1:1: unknown key 'zzzzzzzz'");
  EXPECT_EQ(TomlError("[cluster]\ntp = 4\n").substr(0, 35), "job.toml:1:2: unknown key 'cluster'");
}

TEST(JobFile, NamesTheKeyThatIsWrong) {
  EXPECT_EQ(TomlError("stages = 0"),
            "job.toml:1:10: stages: expected a whole number from 1 to 65536, found 0");
  EXPECT_EQ(TomlError("microbatches = \"many\""),
            "job.toml:1:16: microbatches: expected a whole number from 1 to 1000000, found 'many'");
  EXPECT_EQ(TomlError("blocking_power = [80,\n  -1]"),
            "job.toml:2:3: blocking_power[1]: expected a number from 0 to 1000000, found -1");
  EXPECT_EQ(TomlError("blocking_power = []"),
            "job.toml:1:18: blocking_power: the array is empty; remove the key, or give numbers");
  EXPECT_EQ(TomlError("comm_delay = true"),
            "job.toml:1:14: comm_delay: expected a number from 0 to 1000000, or an array of such "
            "numbers, found true");
  EXPECT_EQ(TomlError("data_loading = nan"),
            "job.toml:1:16: data_loading: expected a number from 0 to 1000000, found nan");
  EXPECT_EQ(TomlError("data_loading = inf"),
            "job.toml:1:16: data_loading: expected a number from 0 to 1000000, found inf");
  EXPECT_EQ(TomlError("effort = 2026-01-01"),
            "job.toml:1:10: effort: expected a number from 0.001 to 1000, found a date or time");
  EXPECT_EQ(TomlError("split_ratio = 1.5"),
            "job.toml:1:15: split_ratio: expected a number above 0 and below 1, found 1.5");
  EXPECT_EQ(TomlError("split_ratio = 1"),
            "job.toml:1:15: split_ratio: expected a number above 0 and below 1, found 1");
  EXPECT_EQ(TomlError("coarse_watts = 0"), "accepted");
  EXPECT_EQ(TomlError("coarse_watts = -1"),
            "job.toml:1:16: coarse_watts: expected a number from 0 to 1000000, found -1");
  EXPECT_EQ(TomlError("exponential_fit = 1"),
            "job.toml:1:19: exponential_fit: expected true or false, found 1");
  EXPECT_EQ(TomlError("profile = ''"), "job.toml:1:11: profile: expected a path, found ''");
  EXPECT_EQ(TomlError("granularity = 'phrase'"),
            "job.toml:1:15: granularity: expected computation, phase, stage-type or stage, found "
            "'phrase'");
  EXPECT_EQ(TomlError("at = true"),
            "job.toml:1:6: at: expected a string such as \"1.02x\" or \"5.3s\", found true");
  EXPECT_EQ(TomlError("time_margin = '2'"),
            "job.toml:1:15: time_margin: expected a time margin such as \"2sigma\", \"1%\" or "
            "\"2sigma,1%\", found '2'");
  EXPECT_EQ(TomlError("at = 'soon'").substr(0, 18), "job.toml:1:6: at: ");
  EXPECT_EQ(JsonError("[1]"), "job.json:1:1: expected an object, found an array");
}

TEST(JobFile, ANumberInQuotesIsNamed) {
  EXPECT_EQ(
      TomlError("tp = \"8\""),
      "job.toml:1:6: tp: expected a whole number from 1 to 1000000, found it in quotes; write "
      "8 without them");
  EXPECT_EQ(TomlError("blocking_power = ['75', 80]"),
            "job.toml:1:19: blocking_power[0]: expected a number from 0 to 1000000, found it in "
            "quotes; write 75 without them");
}

TEST(JobFile, DurationsTakeTheUnitsOfFlags) {
  const Result<JobFile> job =
      Toml("data_loading = '500us'\niteration_overhead = '2s'\ncomm_delay = ['1ms', 0.002]\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->data_loading_seconds, 500 * 1e-6);
  EXPECT_EQ(job->iteration_overhead_seconds, 2);
  EXPECT_EQ(job->comm_delay_seconds, (std::vector<double>{1e-3, 0.002}));
  EXPECT_EQ(Toml("comm_delay = '1ms'")->comm_delay_seconds, (std::vector<double>{1e-3}));
  EXPECT_EQ(TomlError("comm_delay = ['1ms', '1h']"),
            "job.toml:1:22: comm_delay[1]: expected seconds (0.02), or a number with a unit (20ms, "
            "500us), not negative and at most 1000000, got '1h'");
  EXPECT_EQ(TomlError("iteration_overhead = ''").substr(0, 44),
            "job.toml:1:22: iteration_overhead: expected ");
}

TEST(JobFile, WattsAndJoulesTakeTheUnitsOfFlags) {
  const Result<JobFile> job = Toml(
      "blocking_power = ['75W', '0.08 kW', 81]\ncoarse_watts = '2W'\n"
      "[conditions]\nchange_price = '2kJ'\n");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->blocking_power_watts, (std::vector<double>{75, 80, 81}));
  EXPECT_EQ(job->coarse_watts, 2);
  EXPECT_EQ(job->change_price_joules, 2000);
  EXPECT_EQ(Toml("blocking_power = '75W'")->blocking_power_watts, (std::vector<double>{75}));
  EXPECT_EQ(TomlError("coarse_watts = '2ms'"),
            "job.toml:1:16: coarse_watts: expected a number of watts from 0 to 1000000 (75 or "
            "75W), got '2ms'");
  // What has no unit takes none.
  EXPECT_NE(TomlError("effort = '2W'"), "accepted");
}

TEST(JobFile, TakesOneScheduleOnly) {
  EXPECT_EQ(TomlError("schedule = '2f2b'").substr(0, 42),
            "job.toml:1:12: schedule: expected one of g");
  EXPECT_EQ(TomlError("schedule = '1f1b'\nschedule_file = 's.csv'"),
            "job.toml:2:17: schedule_file: 'schedule' is given too; keep one of them");
}

constexpr std::string_view kConditions = R"(
[conditions]
noise = "1%"
stage_noise = 0.02
gpu_noise = "0.5 %"
rank_noise = 0.003
noise_correlation = 0.75
rare_noise = "5%"
rare_noise_share = 0.015
switch_latency = "15ms"
switch_latency_at = "1410=8ms, 600=0.03"
switch_latency_spread = 0.002
switch_stall = "1ms"
call_ahead = "predicted"
max_early_loss = 0.04
min_call_interval = "10ms"
change_price = 2.5
max_slowdown = "0.2%"
confidence = 0.9
max_changes = 300
)";

TEST(JobFile, ConditionsAreATable) {
  const Result<JobFile> job = Toml("dp = 2" + std::string(kConditions));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_TRUE(HasConditions(*job));
  Conditions expected;
  expected.noise = {.per_computation = 0.01,
                    .per_stage = 0.02,
                    .per_gpu = 0.005,
                    .per_rank = 0.003,
                    .correlation = 0.75,
                    .rare_length = 0.05,
                    .rare_share = 0.015};
  expected.switching = {.latency_seconds = 15 * 1e-3,
                        .latency_at = {{1410, 0.008}, {600, 0.03}},
                        .latency_spread_seconds = 0.002,
                        .stall_seconds = 1e-3,
                        .call_ahead = CallAhead::kPredicted,
                        .max_early_loss = 0.04,
                        .min_interval_seconds = 10 * 1e-3};
  expected.change_joules = 2.5;
  expected.max_slowdown = 0.002;
  expected.confidence = 0.9;
  expected.max_changes = 300;
  EXPECT_EQ(ConditionsOf(*job), expected);
  EXPECT_FALSE(HasConditions(*Toml("dp = 2")));
  const Result<JobFile> json =
      ParseJobFile(R"({"conditions": {"switch_latency": 0.015, "call_ahead": "end"}})", "job.json",
                   JobFileFormat::kJson);
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->call_ahead, CallAhead::kEnd);
  EXPECT_EQ(json->switch_latency_seconds, 0.015);
}

TEST(JobFile, ConditionsMayBeRanges) {
  const auto noise = [](const std::string& text) {
    const Result<JobFile> job = Toml("[conditions]\nnoise = '" + text + "'");
    EXPECT_TRUE(job) << job.error().message;
    return job->noise.value_or(-1);
  };
  const ValueRange range(0.5 / 100, 1.5 / 100);
  for (const std::string text : {"0.5-1.5%", "0.5%-1.5%", "0.5 - 1.5 %", "0.005-0.015"}) {
    EXPECT_EQ(noise(text), range) << text;
  }
  EXPECT_EQ(noise("5e-3-1.5e-2"), range);
  EXPECT_EQ(noise("1%"), ValueRange(0.01));
  EXPECT_EQ(noise("1-1%"), ValueRange(0.01));
  const Result<JobFile> job = Toml("[conditions]\nswitch_latency = '10-30ms'\nrank_noise = '0-1%'");
  ASSERT_TRUE(job) << job.error().message;
  const Conditions conditions = ConditionsOf(*job);
  EXPECT_EQ(conditions.switching.latency_seconds, (10 * 1e-3 + 30 * 1e-3) / 2);
  EXPECT_EQ(conditions.ranges.switch_latency_seconds, ValueRange(10 * 1e-3, 30 * 1e-3));
  EXPECT_EQ(conditions.noise.per_rank, 0.005);
  EXPECT_EQ(conditions.ranges.rank_noise, ValueRange(0, 0.01));
  EXPECT_FALSE(conditions.ranges.noise);
  // One value takes a range away.
  Conditions other = conditions;
  JobFile override;
  override.switch_latency_seconds = 0.02;
  ApplyConditions(override, &other);
  EXPECT_FALSE(other.ranges.switch_latency_seconds);
  EXPECT_EQ(TomlError("[conditions]\nnoise = '2-1%'"),
            "job.toml:2:9: conditions.noise: expected a range with the smaller number first, got "
            "'2-1%'");
  for (const std::string_view line :
       {"noise = '1-30%'", "noise = '-1-2%'", "noise = '1--2%'", "noise = '1-'", "noise = '-'",
        "noise = '1-2-3%'", "stage_noise = '1-2%'", "switch_latency = '10ms-soon'", "noise = ''",
        "profile_errors = 1"}) {
    EXPECT_NE(TomlError("[conditions]\n" + std::string(line)), "accepted") << line;
  }
}

TEST(JobFile, ClocksMayHaveALatencyOfTheirOwn) {
  for (const std::string_view text : {"", "1410", "1410=", "=9ms", "1410=9ms,", "fast=9ms",
                                      "1410=soon", "1410:9ms", "1410=9ms;600=1ms"}) {
    EXPECT_FALSE(job::ParseClockLatencies(text)) << text;
  }
  const auto latencies = job::ParseClockLatencies("1410=9ms,607.5=0.25");
  ASSERT_TRUE(latencies);
  const auto again = job::ParseClockLatencies(job::ClockLatenciesText(*latencies));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *latencies);
  EXPECT_EQ(TomlError("[conditions]\nswitch_latency_at = '1410'"),
            "job.toml:2:21: conditions.switch_latency_at: expected a time for each of some clocks, "
            "such as \"1410=9ms,600=30ms\", found '1410'");
  // A latency for all takes those of single clocks away.
  JobFile settings = *Toml("[conditions]\nswitch_latency = '15ms'\nswitch_latency_at = '600=1ms'");
  Conditions conditions = ConditionsOf(settings);
  EXPECT_EQ(conditions.switching.latency_at.size(), 1U);
  JobFile override;
  override.switch_latency_seconds = 0.02;
  ApplyConditions(override, &conditions);
  EXPECT_TRUE(conditions.switching.latency_at.empty());
  job::Merge(override, &settings);
  EXPECT_TRUE(settings.switch_latency_at.empty());
  override.switch_latency_at = {{900, 0.5}};
  job::Merge(override, &settings);
  EXPECT_EQ(settings.switch_latency_at, override.switch_latency_at);
}

TEST(JobFile, ConditionsHaveTheirPlaceAndTheirLimits) {
  EXPECT_EQ(TomlError("noise = 0.01").substr(0, 27), "job.toml:1:1: unknown key '");
  EXPECT_EQ(TomlError("[conditions]\nschedule = '1f1b'"),
            "job.toml:2:1: unknown key 'schedule' in [conditions]: it is none of the conditions; "
            "put it above the line [conditions], which holds for all that follows");
  EXPECT_EQ(TomlError("noise = 0.01"),
            "job.toml:1:1: unknown key 'noise' outside of [conditions]: it is one of the "
            "conditions; put it below a line [conditions]");
  // The first of two faults.
  EXPECT_EQ(TomlError("[conditions]\nnoize = 0.01\ndp = 2").substr(0, 27),
            "job.toml:2:1: unknown key '");
  EXPECT_EQ(TomlError("conditions = 3").substr(0, 14), "job.toml:1:14:");
  EXPECT_EQ(TomlError("[conditions]\ncall_ahead = 'soon'"),
            "job.toml:2:14: conditions.call_ahead: expected none, end or predicted, found 'soon'");
  EXPECT_EQ(
      TomlError("[conditions]\nnoise = 1"),
      "job.toml:2:9: conditions.noise: expected a share (0.01) or a percentage (\"1%\") of at "
      "most 25%, found 1; for 1 % write \"1%\" or 0.01");
  EXPECT_EQ(
      TomlError("[conditions]\nnoise = nan"),
      "job.toml:2:9: conditions.noise: expected a share (0.01) or a percentage (\"1%\") of at "
      "most 25%, found nan");
  EXPECT_THAT(TomlError("[conditions]\nconfidence = 2"),
              testing::EndsWith("found 2; that would be 200%, or 2% with the sign"));
  EXPECT_EQ(TomlError("[conditions]\nnoise = '30%'"),
            "job.toml:2:9: conditions.noise: expected a percentage (1%) or a share (0.01) of at "
            "most 25%, got '30%'");
  for (const std::string_view line :
       {"noise = 0.26", "noise = -0.1", "switch_latency = '1h'", "max_early_loss = 1.1",
        "confidence = 1", "confidence = '49%'", "max_changes = -1", "max_changes = 1.5",
        "change_price = -1", "max_slowdown = 'much'", "min_call_interval = true"}) {
    EXPECT_NE(TomlError("[conditions]\n" + std::string(line)), "accepted") << line;
  }
}

// Two lines are wrong, in any combination: one sentence about the first.
TEST(JobFile, SurvivesASecondFault) {
  constexpr std::array<std::string_view, 23> kKeys = {"profile",
                                                      "schedule",
                                                      "schedule_file",
                                                      "stages",
                                                      "microbatches",
                                                      "virtual_stages",
                                                      "tp",
                                                      "dp",
                                                      "microbatch_group_size",
                                                      "blocking_power",
                                                      "split_ratio",
                                                      "comm_delay",
                                                      "data_loading",
                                                      "at",
                                                      "iteration_overhead",
                                                      "granularity",
                                                      "time_margin",
                                                      "coarse_watts",
                                                      "exponential_fit",
                                                      "effort",
                                                      "output"};
  constexpr std::array<std::string_view, 8> kValues = {"\"\"",     "3",  "-1",   "[]",
                                                       "\"1f1b\"", "{}", "true", "[1, \"a\"]"};
  for (const std::string_view first : kKeys) {
    for (const std::string_view second : kKeys) {
      if (first == second) continue;
      for (const std::string_view a : kValues) {
        for (const std::string_view b : kValues) {
          const std::string text = fmt::format("{} = {}\n{} = {}\n", first, a, second, b);
          const Result<JobFile> job = Toml(text);
          EXPECT_TRUE(job || job.error().code == ErrorCode::kInvalidInput) << text;
        }
      }
    }
  }
  // A fault in any third key, beside both schedules (which exclude each other).
  for (const std::string_view key : kKeys) {
    if (key == "schedule" || key == "schedule_file") continue;
    for (const std::string_view value : kValues) {
      const std::string text =
          fmt::format("schedule = '1f1b'\nschedule_file = 'a'\n{} = {}\n", key, value);
      const Result<JobFile> job = Toml(text);
      ASSERT_FALSE(job) << text;
      EXPECT_EQ(job.error().code, ErrorCode::kInvalidInput) << text;
    }
  }
  EXPECT_EQ(TomlError("schedule = '1f1b'\nschedule_file = ''"),
            "job.toml:2:17: schedule_file: expected a path, found ''");
  EXPECT_EQ(TomlError("schedule = '1f1b'\nschedule_file = 3"),
            "job.toml:2:17: schedule_file: expected a string, found 3");
}

TEST(JobFile, HasTheLimitsOfTheFlags) {
  EXPECT_EQ(TomlError("effort = 1e300"),
            "job.toml:1:10: effort: expected a number from 0.001 to 1000, found 1e+300");
  EXPECT_EQ(TomlError("effort = 0.001"), "accepted");
  EXPECT_EQ(TomlError("stages = 65536\nmicrobatches = 1000000\ntp = 1000000"), "accepted");
  EXPECT_NE(TomlError("stages = 65537"), "accepted");
  EXPECT_NE(TomlError("microbatches = 1000001"), "accepted");
  EXPECT_NE(TomlError("blocking_power = 1000001"), "accepted");
  EXPECT_NE(TomlError("comm_delay = [0, 1000001]"), "accepted");
}

TEST(JobFile, RemembersWhereAValueStands) {
  const Result<JobFile> job = Toml("stages = 8\n  tp =  2\n", "a/job.toml");
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->places, (std::map<std::string, JobPlace, std::less<>>{
                             {"stages", {"a/job.toml", 1, 10}}, {"tp", {"a/job.toml", 2, 9}}}));
}

TEST(JobFile, IsReadFromDiskByItsExtension) {
  const TemporaryDirectory directory;
  directory.Put("job.toml", "tp = 3");
  directory.Put("job.json", "{\"tp\": 5}");
  EXPECT_EQ(ReadJobFile(directory.Path("job.toml"))->tensor_parallel, 3);
  EXPECT_EQ(ReadJobFile(directory.Path("job.json"))->tensor_parallel, 5);
  EXPECT_EQ(ReadJobFile("job.yaml").error().message,
            "job.yaml: expected a job file with the extension .toml or .json");
  EXPECT_EQ(ReadJobFile(directory.Path("none.toml")).error().code, ErrorCode::kIo);
  directory.Put("big.toml", std::string(2 << 20, '#'));
  EXPECT_EQ(ReadJobFile(directory.Path("big.toml")).error().message,
            directory.Path("big.toml") +
                ": is larger than the 1 MiB that such a file may have; is it the right file?");
}

TEST(JobFile, IsKnownByItsName) {
  EXPECT_TRUE(IsJobFileName("a/job.toml"));
  EXPECT_TRUE(IsJobFileName("job.json"));
  EXPECT_FALSE(IsJobFileName("profile.csv"));
  EXPECT_FALSE(IsJobFileName("toml"));
}

TEST(TimeMargin, TakesSigmasAPercentageOrBoth) {
  EXPECT_EQ(job::ParseTimeMargin("2sigma"), (TimeMargin{2, 0}));
  EXPECT_EQ(job::ParseTimeMargin("1%"), (TimeMargin{0, 0.01}));
  EXPECT_EQ(job::ParseTimeMargin(" 0.5 % , 1.5 sigma "), (TimeMargin{1.5, 0.005}));
  for (const std::string_view text : {"", "2", "sigma", "%", "-1%", "2sigma,", "1%,2%", "nan%",
                                      "inf sigma", "1e999%", "0x2%", "1%%", "2Sigma"}) {
    EXPECT_FALSE(job::ParseTimeMargin(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace perseus
