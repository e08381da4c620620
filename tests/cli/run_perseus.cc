// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run_perseus.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace perseus::cli {
namespace {

std::vector<char*> Pointers(std::vector<std::string>* words) {
  std::vector<char*> pointers;
  for (std::string& word : *words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

RunResult Spawn(std::vector<std::string> words, std::vector<std::string> environment,
                const std::string& stdin_path, const RunOptions& options) {
  const TemporaryFolder folder;
  const std::string out_path = folder.Path("out");
  const std::string err_path = folder.Path("err");
  int pipe_ends[2] = {-1, -1};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, stdin_path.c_str(), O_RDONLY, 0);
  if (options.close_stdout) {
    posix_spawn_file_actions_addclose(&actions, 1);
  } else if (options.broken_stdout) {
    EXPECT_EQ(pipe(pipe_ends), 0);
    close(pipe_ends[0]);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  } else {
    const std::string& path = options.stdout_path.empty() ? out_path : options.stdout_path;
    posix_spawn_file_actions_addopen(&actions, 1, path.c_str(), O_WRONLY | O_CREAT, 0644);
  }
  posix_spawn_file_actions_addopen(&actions, 2, err_path.c_str(), O_WRONLY | O_CREAT, 0644);
  RunResult result;
  pid_t child = 0;
  const int failure = posix_spawnp(&child, words[0].c_str(), &actions, nullptr,
                                   Pointers(&words).data(), Pointers(&environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (pipe_ends[1] >= 0) close(pipe_ends[1]);
  EXPECT_EQ(failure, 0) << words[0];
  if (failure != 0) return result;
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.out = ReadText(out_path);
  result.err = ReadText(err_path);
  return result;
}

}  // namespace

RunResult RunPerseus(const std::vector<std::string>& arguments, const RunOptions& options) {
  std::vector<std::string> words = {PERSEUS_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return Spawn(words, options.environment, "/dev/null", options);
}

std::string Refused(const std::vector<std::string>& arguments) {
  const RunResult run = RunPerseus(arguments);
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(run.err.starts_with("perseus: ")) << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  return run.err.size() < 10 ? run.err : run.err.substr(9, run.err.size() - 10);
}

RunResult RunShell(const std::string& command, std::string_view text) {
  const TemporaryFolder folder;
  const std::string input = folder.Write("input", text);
  const char* path = getenv("PATH");
  return Spawn({"sh", "-c", command},
               {fmt::format("PATH={}", path == nullptr ? "/usr/bin:/bin" : path), "LANG=C"}, input,
               {});
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "perseus_cli_XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::Write(const std::string& name, std::string_view bytes) const {
  std::ofstream(Path(name), std::ios::binary) << bytes;
  return Path(name);
}

std::vector<std::string> TemporaryFolder::List() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string SampleProfile(int stages) {
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < stages; ++stage) {
    const double size = stage + 1 == stages ? 1.25 : 1;
    for (const auto& [instruction, weight] : {std::pair("forward", 1.0), {"backward", 2.0}}) {
      // Clock, relative time, relative energy.
      for (const auto& [clock, slower, energy] :
           {std::tuple(1400, 1.0, 1.0), {1200, 1.125, 0.875}, {1000, 1.25, 0.78125}}) {
        csv += fmt::format("{},{},{},{},{}\n", stage, instruction, clock,
                           0.25 * size * weight * slower, 64 * size * weight * energy);
      }
    }
  }
  return csv;
}

}  // namespace perseus::cli
