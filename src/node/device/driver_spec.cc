// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/driver_spec.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/nearest_name.h"

namespace perseus::device {

Result<DriverSpec> ParseDriverSpec(const std::string& text) {
  const std::size_t colon = text.find(':');
  const bool has_path = colon != std::string::npos;
  const std::string kind = text.substr(0, colon);
  DriverSpec spec;
  if (has_path) spec.path = text.substr(colon + 1);
  if (kind == "nvml") {
    spec.kind = DriverKind::kNvml;
  } else if (kind == "zeusd") {
    spec.kind = DriverKind::kZeusd;
  } else if (kind == "simulated") {
    spec.kind = DriverKind::kSimulated;
  } else {
    return InvalidInput(fmt::format(
        "there is no GPU driver {}{}; give nvml, nvml:LIBRARY, zeusd:SOCKET or simulated:FILE",
        Shown(text), NearestHint(kind, {"nvml", "zeusd", "simulated"})));
  }
  if (has_path && spec.path.empty()) {
    return InvalidInput(
        fmt::format("the GPU driver {} names no file after the colon", Shown(text)));
  }
  if (spec.kind == DriverKind::kSimulated && !has_path) {
    return InvalidInput(
        "the GPU driver 'simulated' needs the file of its GPUs, as in simulated:/tmp/gpus");
  }
  return spec;
}

}  // namespace perseus::device
