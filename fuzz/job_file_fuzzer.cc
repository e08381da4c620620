// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "perseus/job_file.h"

// The first byte chooses the format, the rest is the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto format =
      data[0] == 'j' ? perseus::JobFileFormat::kJson : perseus::JobFileFormat::kToml;
  perseus::ParseJobFile(text, "job", format);
  return 0;
}
