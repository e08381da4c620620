// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A drill: writers are killed at times drawn by chance. After the next run the
// folder holds one writer's whole set, and nothing else.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "common/file.h"
#include "common/temporary_directory.h"

namespace perseus {
namespace {

const std::vector<std::string> kNames = {"a", "b", "c", "d"};

std::vector<OutputFile> SetOf(int generation) {
  std::vector<OutputFile> files;
  for (const std::string& name : kNames) {
    files.push_back({name, name + std::to_string(generation) + std::string(5'000, 'x')});
  }
  return files;
}

// Writes sets until it is killed.
[[noreturn]] void WriteForever(const std::string& directory) {
  for (int generation = 1;; ++generation) {
    static_cast<void>(WriteFilesAtomically(directory, SetOf(generation)));
  }
}

void KillAWriter(const std::string& directory, int signal, unsigned microseconds) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) WriteForever(directory);
  ::usleep(microseconds);
  ::kill(child, signal);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
}

void ExpectOneSet(const TemporaryDirectory& directory, const std::string& folder) {
  if (!std::filesystem::exists(directory.Path(folder))) return;  // Killed before the first.
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory.Path(folder))) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_EQ(names.size(), kNames.size());
  const std::string first = directory.Get(folder + "/a");
  for (const std::string& name : kNames) {
    const std::string bytes = directory.Get(folder + "/" + name);
    EXPECT_EQ(bytes.substr(0, 1), name);
    EXPECT_TRUE(bytes.substr(1) == first.substr(1)) << name;
  }
}

void Drill(int signal, bool sweep_first) {
  constexpr int kKills = 100;
  constexpr unsigned kLongest = 40'000;  // Microseconds: about two sets.
  std::mt19937 random(7);
  const TemporaryDirectory directory;
  for (int kill = 0; kill < kKills; ++kill) {
    KillAWriter(directory.Path("plan"), signal, random() % kLongest);
    if (sweep_first) {
      EXPECT_TRUE(CheckWritable(directory.Path("plan"), kNames).has_value());
    }
    ExpectOneSet(directory, "plan");
    if (random() % 3 == 0) std::filesystem::remove_all(directory.Path("plan"));
  }
  EXPECT_TRUE(WriteFilesAtomically(directory.Path("plan"), SetOf(0)).has_value());
  ExpectOneSet(directory, "plan");
  EXPECT_EQ(directory.Get("plan/a").substr(0, 2), "a0");
}

TEST(WriteFilesAtomically, LeavesOneWholeSetWhenKilled) { Drill(SIGKILL, /*sweep_first=*/true); }

TEST(WriteFilesAtomically, LeavesNothingElseWhenAskedToEnd) {
  Drill(SIGTERM, /*sweep_first=*/false);
}

}  // namespace
}  // namespace perseus
