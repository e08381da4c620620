// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/framework/outputs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "common/file.h"

namespace perseus::cli {
namespace {

bool AreOneFile(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

Result<void> CheckNotAnInput(const std::string& path, const std::vector<InputFile>& inputs) {
  for (const InputFile& input : inputs) {
    if (!AreOneFile(path, input.path)) continue;
    return InvalidInput(
        fmt::format("{}: --output would replace {}; choose another place", path, input.what));
  }
  return {};
}

}  // namespace

Result<void> CheckOutputFile(const std::string& path, const std::vector<InputFile>& inputs) {
  if (auto good = CheckNotAnInput(path, inputs); !good) return good;
  return CheckWritable(path);
}

Result<void> CheckOutputFiles(const std::string& directory, const std::vector<std::string>& names,
                              const std::vector<InputFile>& inputs) {
  for (const std::string& name : names) {
    const std::string path = (std::filesystem::path(directory) / name).string();
    if (auto good = CheckNotAnInput(path, inputs); !good) return good;
  }
  return CheckWritable(directory, names);
}

void NoteStale(const std::string& directory, std::string_view name,
               std::vector<std::string>* notes) {
  const std::string stale = fmt::format("{}/{}", directory, name);
  std::error_code ignored;
  if (!std::filesystem::exists(stale, ignored)) return;
  notes->push_back(
      fmt::format("{} is there from an earlier plan and does not belong to this one.", stale));
}

}  // namespace perseus::cli
