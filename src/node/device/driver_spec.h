// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_DRIVER_SPEC_H_
#define PERSEUS_DEVICE_DRIVER_SPEC_H_

#include <cstdint>
#include <string>

#include "perseus/result.h"

namespace perseus::device {

enum class DriverKind : std::uint8_t { kNvml, kZeusd, kSimulated };

// OpenDriver's text in parts.
struct DriverSpec {
  DriverKind kind = DriverKind::kNvml;
  std::string path;  // Empty: the kind's own place.
};

// Errors: kInvalidInput.
Result<DriverSpec> ParseDriverSpec(const std::string& text);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_DRIVER_SPEC_H_
