// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/safe_place.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace perseus::agent {

Result<void> MakeFolderFor(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return MakeError(ErrorCode::kIo, error.message());
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    return MakeError(ErrorCode::kIo, SystemMessage(errno));
  }
  if (::geteuid() != 0) return {};
  const char* fault = nullptr;
  if (status.st_uid != 0) {
    fault = "does not belong to root";
  } else if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0) {
    fault = "can be written by users other than root";
  }
  if (fault == nullptr) return {};
  return MakeError(ErrorCode::kIo,
                   fmt::format("the folder {} {}, so that others could replace what root writes "
                               "there",
                               folder.string(), fault));
}

std::string WhyNotOurs(const FileDescriptor& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return SystemMessage(errno);
  if (!S_ISREG(status.st_mode)) return "it is not a regular file";
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return fmt::format("it belongs to another user (uid {})", status.st_uid);
  }
  // A hard link could lead to any file of root.
  if (status.st_nlink > 1) return "it has a second name (hard link)";
  return "";
}

}  // namespace perseus::agent
