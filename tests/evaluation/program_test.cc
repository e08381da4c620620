// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// perseus-sosp24 on the paper's data, where that is present, and what it refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/run_perseus.h"

namespace perseus::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The smallest of its pipelines: the whole evaluation takes minutes.
TEST(ProgramTest, PrintsAndWritesTheSame) {
  namespace fs = std::filesystem;
  const char* shared = std::getenv("PERSEUS_SHARED_DATA");
  const fs::path root =
      fs::path(shared == nullptr ? "../shared/data" : shared) / "sosp24/sosp24_data/emulation";
  const fs::path profile = "stage_profile/gpt3-175b+a100_sxm_bf16.csv";
  const fs::path frontier = "iteration_time_energy/a100_sxm/gpt3-175b_bf16_mb12.csv";
  if (!fs::exists(root / profile) || !fs::exists(root / frontier)) {
    GTEST_SKIP() << "no " << root << "; set PERSEUS_SHARED_DATA";
  }
  const TemporaryFolder folder;
  const fs::path data = folder.Path("the data");
  for (const fs::path& file : {profile, frontier}) {
    fs::create_directories((data / "emulation" / file).parent_path());
    fs::copy_file(root / file, data / "emulation" / file);
  }
  const std::string out = folder.Path("evaluation");
  const RunResult run =
      RunPerseus({data.string() + "/", "--effort", "0.001", "--no-times", "-o", out + "/"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const std::string command = "perseus-sosp24 'the data' --effort 0.001 --no-times -o evaluation";
  EXPECT_THAT(run.out, HasSubstr(command));
  EXPECT_EQ(run.out, ReadText(out + "/evaluation.md"));
  const auto document = nlohmann::json::parse(ReadText(out + "/evaluation.json"));
  EXPECT_EQ(document["command"], command);
  for (const char* name :
       {"schema_version", "emulations", "stragglers", "jobs", "job_stragglers", "missing"}) {
    EXPECT_TRUE(document.contains(name)) << name;
  }
  ASSERT_EQ(document["emulations"].size(), 1u);
  EXPECT_EQ(document["emulations"][0]["microbatches"], 12);
  EXPECT_FALSE(document["missing"].empty());
  EXPECT_TRUE(document["emulations"][0]["plan_cpu_s"].is_null());  // --no-times
  EXPECT_THAT(ReadText(out + "/evaluation.html"), testing::StartsWith("<!"));
  for (const char* file : {"/evaluation.md", "/evaluation.json", "/evaluation.html"}) {
    EXPECT_THAT(ReadText(out + file), Not(HasSubstr(folder.path()))) << file;
  }
  EXPECT_THAT(folder.List(), ElementsAre("evaluation", "the data"));
}

TEST(ProgramTest, RefusesInOneSentenceAndWritesNothing) {
  const TemporaryFolder folder;
  const std::string empty = folder.Path("empty");
  std::filesystem::create_directory(empty);
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "DATA"},
      {{folder.Path("none")}, "none"},
      {{empty, "-o", folder.Path("out")}, "empty"},
      {{empty, "--effort", "0"}, "--effort"},
      {{empty, "-o", ""}, "--output"},
      {{empty, "--no-time"}, "--no-time"}};
  for (const auto& [words, part] : cases) {
    const RunResult run = RunPerseus(words);
    EXPECT_EQ(run.exit_code, 2) << part;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, AllOf(testing::StartsWith("perseus-sosp24: "), HasSubstr(part)));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
  EXPECT_THAT(folder.List(), ElementsAre("empty"));
  EXPECT_EQ(RunPerseus({"-V"}).out, RunPerseus({"--version"}).out);
}

}  // namespace
}  // namespace perseus::cli
