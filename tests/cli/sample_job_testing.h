// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_CLI_SAMPLE_JOB_TESTING_H_
#define PERSEUS_TESTS_CLI_SAMPLE_JOB_TESTING_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/run_perseus.h"

namespace perseus::cli {

// Commands on the sample profile of two stages, 1F1B with 4 microbatches, in a folder of their own.
class SampleJobTest : public testing::Test {
 protected:
  std::vector<std::string> Arguments(const std::string& command,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {command,          profile_, "--schedule",       "1f1b",
                                          "--microbatches", "4",      "--blocking-power", "20"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  TemporaryFolder folder_;
  std::string profile_ = folder_.Write("profile.csv", SampleProfile(2));
};

}  // namespace perseus::cli

#endif  // PERSEUS_TESTS_CLI_SAMPLE_JOB_TESTING_H_
