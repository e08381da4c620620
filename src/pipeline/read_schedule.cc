// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <string>

#include "perseus/file.h"
#include "perseus/schedule.h"

namespace perseus {

Result<Schedule> ReadSchedule(const std::string& path) {
  constexpr std::size_t kMaxScheduleBytes = std::size_t{64} << 20;
  const Result<std::string> text = ReadWholeFile(path, kMaxScheduleBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseSchedule(*text, path);
}

}  // namespace perseus
