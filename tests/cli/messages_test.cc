// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The sentences of the command line, word by word, in one file: messages.golden.
// Each case is a command after "$ " and the sentence that it gives, with exit code 2 and nothing on
// standard output. "@ NAME TEXT" writes a file before, with \\n for the ends of its lines; "= NAME
// WORDS" has NAME stand for these words. After a change of words, scripts/update-messages writes
// the file again.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/run_perseus.h"

namespace perseus::cli {
namespace {

constexpr const char* kGolden = "tests/cli/messages.golden";
constexpr const char* kFolder = "FOLDER";  // Stands for a folder with profile.csv.

using Names = std::vector<std::pair<std::string, std::string>>;

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Two single quotes are an empty word.
std::vector<std::string> WordsOf(const std::string& command) {
  std::istringstream stream(command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word == "''" ? "" : word);
  return words;
}

TEST(MessagesTest, SayWhatTheGoldenFileSays) {
  const TemporaryFolder folder;
  folder.Write("profile.csv", SampleProfile(2));
  Names names;
  std::string expected;
  std::string found;
  std::ifstream golden(kGolden);
  for (std::string line; std::getline(golden, line);) {
    expected += line + "\n";
    if (line.empty() || std::string_view("#@=").find(line[0]) != std::string_view::npos) {
      found += line + "\n";
    }
    if (line.starts_with("@ ") || line.starts_with("= ")) {
      const std::size_t end = line.find(' ', 2);
      const std::string name = line.substr(2, end - 2);
      const std::string text = end == std::string::npos ? "" : line.substr(end + 1);
      if (line[0] == '=') names.emplace_back(name, text);
      if (line[0] == '@') folder.Write(name, Replaced(text, "\\n", "\n"));
    }
    if (!line.starts_with("$ ")) continue;
    std::string command = line.substr(2);
    for (const auto& [name, text] : names) command = Replaced(command, name, text);
    const RunResult run = RunPerseus(WordsOf(Replaced(command, kFolder, folder.path())));
    EXPECT_EQ(run.exit_code, 2) << line;
    EXPECT_EQ(run.out, "") << line;
    found += line + "\n" + Replaced(run.err, folder.path(), kFolder);
  }
  EXPECT_NE(expected, "");
  if (std::getenv("PERSEUS_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(kGolden) << found;
  } else {
    EXPECT_EQ(found, expected) << "after a change of words: scripts/update-messages";
  }
}

}  // namespace
}  // namespace perseus::cli
