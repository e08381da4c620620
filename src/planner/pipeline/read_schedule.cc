// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>

#include "common/file.h"
#include "perseus/schedule.h"
#include "pipeline/limits.h"

namespace perseus {
inline namespace v0 {

Result<Schedule> ReadSchedule(const std::string& path) {
  const Result<std::string> text = ReadWholeFileOrPipe(path, pipeline::kMaxScheduleBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseSchedule(*text, path);
}

}  // namespace v0
}  // namespace perseus
