// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// `plan --conditions FILE`: conditions that are not in the job file, as `doctor` writes them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/conditions_testing.h"

namespace perseus::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class BinaryConditionsFileTest : public ConditionsTest {
 protected:
  std::vector<std::string> With(const std::string& file, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = Arguments("plan", {"--conditions", file});
    arguments.insert(arguments.end(), {"--effort", "0.001"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static std::string Fault(const std::vector<std::string>& arguments) {
    const RunResult run = RunPerseus(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_EQ(run.out, "");
    return run.err;
  }
};

TEST_F(BinaryConditionsFileTest, AFileCountsWhereNoOptionSaysOtherwise) {
  const std::string file = folder_.Write("measured.toml",
                                         "[conditions]\nswitch_latency = \"30ms-40ms\"\n"
                                         "switch_stall = \"1ms\"\ncall_ahead = \"predicted\"\n");
  const json plan = json::parse(Out(With(file, {"--noise", "1%", "--json"})));
  EXPECT_EQ(plan["conditions"]["switch_stall_s"], 0.001);
  EXPECT_EQ(plan["conditions"]["noise"], 0.01);
  EXPECT_EQ(plan["conditions"]["call_ahead"], "predicted");
  EXPECT_EQ(plan["conditions"]["ranges"]["switch_latency_s"], json({0.03, 0.04}));
  const json other = json::parse(Out(With(file, {"--switch-latency", "5ms", "--json"})));
  EXPECT_EQ(other["conditions"]["switch_latency_s"], 0.005);
  EXPECT_EQ(other["conditions"]["switch_stall_s"], 0.001);
}

TEST_F(BinaryConditionsFileTest, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(Fault(With(folder_.Path("none.toml"))), HasSubstr("none.toml"));
  EXPECT_THAT(Fault(With(folder_.Write("profile.txt", "x"))), HasSubstr(".toml"));
  EXPECT_THAT(Fault(With(folder_.Write("empty.toml", "[conditions]\n"))),
              HasSubstr("switch_latency"));
  const std::string job =
      folder_.Write("job.toml", "microbatches = 4\n[conditions]\nnoise = \"1%\"\n");
  EXPECT_THAT(Fault(With(job)), HasSubstr("'microbatches' stands outside"));
  EXPECT_THAT(Fault(With(folder_.Write("bad.toml", "[conditions]\nnoise = 7\n"))),
              HasSubstr("bad.toml:2"));
}

}  // namespace
}  // namespace perseus::cli
