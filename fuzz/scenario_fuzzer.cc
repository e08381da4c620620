// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as the texts of a scenario (stragglers): an error or a
// value within its range, never a crash.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "emulate/straggler_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto straggler = perseus::emulate::ParseStraggler(text);
  if (straggler && (straggler->pipeline < 0 || straggler->rank.value_or(0) < 0 ||
                    straggler->iterations.value_or(0) < 0 || straggler->first_iteration < 0)) {
    std::abort();
  }
  return 0;
}
