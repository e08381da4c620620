// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_CLI_RUN_PERSEUS_H_
#define PERSEUS_TESTS_CLI_RUN_PERSEUS_H_

#include <string>
#include <string_view>
#include <vector>

namespace perseus::cli {

struct RunResult {
  int exit_code = -1;  // -1 when a signal ended it.
  int signal = 0;
  std::string out;
  std::string err;
};

struct RunOptions {
  std::string stdout_path;     // Standard output goes here instead of `out`.
  bool close_stdout = false;   // Started without a standard output.
  bool broken_stdout = false;  // A pipe that nobody reads.
  std::vector<std::string> environment = {"LANG=C", "COLUMNS=120"};
};

// Runs the binary of this build.
RunResult RunPerseus(const std::vector<std::string>& arguments, const RunOptions& options = {});

// Expects that the binary refuses these arguments with one sentence, and returns it.
std::string Refused(const std::vector<std::string>& arguments);

// Runs a shell command; `text` is its standard input.
RunResult RunShell(const std::string& command, std::string_view text);

// A folder that lives as long as this object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  // Returns the file's path.
  std::string Write(const std::string& name, std::string_view bytes) const;
  // Names of everything in it, sorted.
  std::vector<std::string> List() const;

 private:
  std::string path_;
};

std::string ReadText(const std::string& path);

// A profile of `stages` equal stages but the last, which is slower, at three
// clocks. With 20 W of blocking power every clock is worth having.
std::string SampleProfile(int stages);

}  // namespace perseus::cli

#endif  // PERSEUS_TESTS_CLI_RUN_PERSEUS_H_
