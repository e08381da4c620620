// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a schedule file: an error or a schedule that survives its own
// export and can be connected, never a crash.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "perseus/pipeline.h"
#include "perseus/schedule.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)perseus::CanonicalScheduleName(text);
  const auto schedule = perseus::ParseSchedule(text, "fuzz.csv");
  if (!schedule) {
    if (schedule.error().code != perseus::ErrorCode::kInvalidInput) std::abort();
    return 0;
  }
  const auto again = perseus::ParseSchedule(perseus::FormatSchedule(*schedule), "fuzz.csv");
  if (!again || again->ranks != schedule->ranks) std::abort();
  if (!perseus::BuildDag(*schedule, {})) std::abort();
  if (perseus::DrawSchedule(*schedule).empty()) std::abort();
  return 0;
}
