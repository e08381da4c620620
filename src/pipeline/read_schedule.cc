// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "perseus/schedule.h"

namespace perseus {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

// What the user could read and what not; bounded, so that a device that never
// ends does no harm.
Result<std::string> ReadBounded(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return MakeError(ErrorCode::kIo, fmt::format("{}: is a directory: expected a schedule file "
                                                 "(PyTorch's CSV)",
                                                 path));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: cannot be opened: {}", path,
                                 std::generic_category().message(errno == 0 ? EIO : errno)));
  }
  std::string text;
  std::string block(std::size_t{1} << 16, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMaxFileBytes) {
      return InvalidInput(fmt::format(
          "{}: is larger than 64 MiB: a schedule of the largest pipelines is far smaller; is this "
          "the right file?",
          path));
    }
  }
  if (file.bad()) return MakeError(ErrorCode::kIo, fmt::format("{}: cannot be read", path));
  return text;
}

}  // namespace

Result<Schedule> ReadSchedule(const std::string& path) {
  auto text = ReadBounded(path);
  if (!text) return tl::unexpected(text.error());
  return ParseSchedule(*text, path);
}

}  // namespace perseus
