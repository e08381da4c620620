// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Sentences name the keys of a job file, and the flags of a command.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/planning/job.h"
#include "cli/run_perseus.h"
#include "cli/sample_job_testing.h"
#include "job/job_fields.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// A value that is refused, and what else is given with it.
struct BadCondition {
  std::string key;
  std::string value;
  std::string also = {};  // A key...
  std::string also_value = {};
};

const std::vector<BadCondition>& BadConditions() {
  static const std::vector<BadCondition> all = {
      {"noise", "30%"},
      {"noise", "2-1%"},
      {"rank_noise", "1-26%"},
      {"switch_latency", "30ms-10ms"},
      {"profile_errors", "soon"},
      {"stage_noise", "30%"},
      {"gpu_noise", "soon"},
      {"rank_noise", "26%"},
      {"noise_correlation", "100%"},
      {"noise_correlation", "0.9"},
      {"noise_correlation", "0.9", "noise", "0"},
      {"rare_noise", "26%"},
      {"rare_noise", "5%"},
      {"rare_noise", "5%", "rare_noise_share", "0"},
      {"rare_noise_share", "30%"},
      {"rare_noise_share", "1%"},
      {"switch_latency", "15min"},
      {"switch_latency_at", "1400"},
      {"switch_latency_at", "1400=9ms"},
      {"switch_latency_at", "1400=9ms,1400=8ms", "switch_latency", "10ms"},
      {"switch_latency_at", "0=9ms", "switch_latency", "10ms"},
      {"switch_latency_spread", "soon"},
      {"switch_latency_spread", "2ms"},
      {"switch_latency_spread", "20ms", "switch_latency", "2ms"},
      {"switch_stall", "-1ms"},
      {"call_ahead", "soon"},
      {"max_early_loss", "200%"},
      {"max_early_loss", "3%"},
      {"max_early_loss", "3%", "call_ahead", "end"},
      {"min_call_interval", "-1ms"},
      {"change_price", "-1"},
      {"max_slowdown", "1000%"},
      {"confidence", "10%"},
      {"max_changes", "-1"},
  };
  return all;
}

class ConditionNamesTest : public SampleJobTest {
 protected:
  // Of a job file with these lines below [conditions].
  std::string JobFile(const std::string& conditions) const {
    return folder_.Write("job.toml",
                         "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\n"
                         "blocking_power = 20\n[conditions]\n" +
                             conditions);
  }
  // The words of a command line that give a field.
  static std::vector<std::string> Given(const std::string& key, const std::string& value) {
    const std::string flag = FlagOfField(key);
    if (!flag.starts_with("--set ")) return {flag, value};
    return {"--set", key + "=" + value};
  }
  static std::string Line(const std::string& key, const std::string& value) {
    const bool is_number = key == "change_price" || key == "max_changes";
    return is_number ? key + " = " + value + "\n" : key + " = '" + value + "'\n";
  }
};

TEST_F(ConditionNamesTest, EveryConditionIsTried) {
  for (const job::Field& field : job::Fields()) {
    if (!field.condition()) continue;
    EXPECT_TRUE(std::any_of(BadConditions().begin(), BadConditions().end(),
                            [&](const BadCondition& bad) { return bad.key == field.key; }))
        << field.key;
  }
}

TEST_F(ConditionNamesTest, AJobFileHearsOfKeys) {
  for (const BadCondition& bad : BadConditions()) {
    std::string lines = Line(bad.key, bad.value);
    if (!bad.also.empty()) lines += Line(bad.also, bad.also_value);
    const std::string path = JobFile(lines);
    for (const std::string command : {"plan", "emulate"}) {
      const RunResult run = RunPerseus({command, path});
      EXPECT_EQ(run.exit_code, 2) << command << " " << lines;
      EXPECT_THAT(run.err, Mentions("job.toml:6:")) << lines;
      EXPECT_THAT(run.err, ContainsRegex("(conditions." + bad.key + ":|'" + bad.key + "')"));
      EXPECT_THAT(run.err, Not(HasSubstr("--"))) << lines;
    }
  }
}

TEST_F(ConditionNamesTest, FlagsHearOfFlags) {
  for (const BadCondition& bad : BadConditions()) {
    const bool by_key = FlagOfField(bad.key).starts_with("--set ");
    const std::string flag = by_key ? bad.key : FlagOfField(bad.key);
    std::vector<std::string> more = Given(bad.key, bad.value);
    if (!bad.also.empty()) {
      for (const std::string& word : Given(bad.also, bad.also_value)) more.push_back(word);
    }
    for (const std::string command : {"plan", "emulate"}) {
      const RunResult run = RunPerseus(Arguments(command, more));
      EXPECT_EQ(run.exit_code, 2) << command << " " << flag;
      EXPECT_THAT(run.err, Mentions(flag));
      if (by_key) continue;
      EXPECT_THAT(run.err, Not(ContainsRegex("[a-z]_[a-z]"))) << flag;
    }
  }
}

// Valid input that is perhaps not meant.
TEST_F(ConditionNamesTest, NotesNameTheKeyToo) {
  for (const std::string key : {"switch_latency", "switch_stall", "min_call_interval"}) {
    const std::string path = JobFile(key + " = 15\n");
    const RunResult from_file =
        RunPerseus({"emulate", path, "--iterations", "2", "--accept-implausible"});
    EXPECT_EQ(from_file.exit_code, 0) << from_file.err;
    EXPECT_THAT(from_file.out, Mentions("job.toml:6:"));
    EXPECT_THAT(from_file.out, Mentions("15"));
    std::vector<std::string> more = Given(key, "15");
    more.insert(more.end(), {"--iterations", "2", "--accept-implausible"});
    const RunResult from_flag = RunPerseus(Arguments("emulate", more));
    EXPECT_EQ(from_flag.exit_code, 0) << from_flag.err;
    EXPECT_THAT(from_flag.out, Mentions("15"));
  }
  // Within an iteration (4.5 s), but nothing that a GPU does.
  EXPECT_THAT(RunPerseus(Arguments("emulate", {"--switch-latency", "3"})).err,
              Mentions("3", "5", "200"));
}

}  // namespace
}  // namespace perseus::cli
