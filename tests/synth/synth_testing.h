// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_PROFILE_SYNTH_TESTING_H_
#define PERSEUS_TESTS_PROFILE_SYNTH_TESTING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "perseus/synth.h"

namespace perseus {

inline SynthSpec Gpt175BSpec() {
  SynthSpec spec;
  spec.model = "gpt3-175b";
  spec.gpu = "a100-sxm";
  spec.stages = 8;
  spec.tensor_parallel = 8;
  spec.partition = "uniform";
  return spec;
}

inline SynthSpec Bloom176BSpec() {
  SynthSpec spec = Gpt175BSpec();
  spec.model = "bloom-176b";
  spec.gpu = "a40";
  spec.partition = "9,9,9,9,9,9,9,7";
  return spec;
}

inline std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Row {
  double seconds = 0;
  double joules = 0;
};

// (stage, instruction) -> MHz -> row, of stage,instruction,frequency,time,energy.
using Table = std::map<std::pair<int, std::string>, std::map<int, Row>>;

inline Table ReadTable(const std::string& text) {
  Table table;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#' || line[0] == 's') continue;
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream cells(line);
    int stage = 0;
    int mhz = 0;
    std::string instruction;
    Row row;
    cells >> stage >> instruction >> mhz >> row.seconds >> row.joules;
    EXPECT_TRUE(cells) << line;
    table[{stage, instruction}][mhz] = row;
  }
  return table;
}

inline Table Model(const SynthSpec& spec) {
  const Result<SynthResult> result = Synthesize(spec);
  EXPECT_TRUE(result) << result.error().message;
  return result ? ReadTable(result->profile_csv) : Table{};
}

inline std::string ErrorOf(const SynthSpec& spec) {
  const Result<SynthResult> result = Synthesize(spec);
  EXPECT_FALSE(result);
  if (result) return "";
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidInput);
  return result.error().message;
}

}  // namespace perseus

#endif  // PERSEUS_TESTS_PROFILE_SYNTH_TESTING_H_
