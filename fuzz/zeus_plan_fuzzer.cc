// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a plan in Zeus' format: an error or a plan, never a crash.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/zeus_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = perseus::formats::ParseZeusPlan(text, "fuzz.py");
  if (!plan && plan.error().code != perseus::ErrorCode::kInvalidInput) std::abort();
  return 0;
}
