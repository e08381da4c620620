// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_CLI_CONDITIONS_TESTING_H_
#define PERSEUS_TESTS_CLI_CONDITIONS_TESTING_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "cli/sample_job_testing.h"

namespace perseus::cli {

// Plans of the sample profile under conditions.
class ConditionsTest : public SampleJobTest {
 protected:
  static std::string Out(const std::vector<std::string>& arguments) {
    const RunResult run = RunPerseus(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  }
  // Without line breaks.
  static std::string Words(const std::string& text) {
    std::string words;
    for (const char c : text) {
      if (c != ' ' && c != '\n') {
        words += c;
      } else if (!words.empty() && words.back() != ' ') {
        words += ' ';
      }
    }
    return words;
  }
  // What the plan of these flags is written to.
  std::string Write(const std::vector<std::string>& flags, const std::string& name) const {
    std::vector<std::string> arguments = Arguments("plan", flags);
    arguments.insert(arguments.end(), {"--effort", "0.05", "-o", folder_.Path(name)});
    Out(arguments);
    return folder_.Path(name) + "/plan.json";
  }

  std::vector<std::string> flags_ = {"--switch-latency", "20ms",      "--noise",        "1%",
                                     "--call-ahead",     "predicted", "--max-slowdown", "0.5%",
                                     "--max-changes",    "6"};
};

}  // namespace perseus::cli

#endif  // PERSEUS_TESTS_CLI_CONDITIONS_TESTING_H_
