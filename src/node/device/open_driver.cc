// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/device.h"
#include "device/driver_spec.h"
#include "device/nvml/nvml_driver.h"
#include "device/simulated/simulated_driver.h"
#include "device/zeusd/zeusd_driver.h"

namespace perseus::device {

Result<std::unique_ptr<Driver>> OpenDriver(const std::string& spec) {
  const Result<DriverSpec> parsed = ParseDriverSpec(spec);
  if (!parsed) return tl::unexpected(parsed.error());
  switch (parsed->kind) {
    case DriverKind::kNvml:
      return OpenNvmlDriver(parsed->path);
    case DriverKind::kZeusd:
      return OpenZeusdDriver(parsed->path);
    case DriverKind::kSimulated:
      break;
  }
  return OpenSimulatedDriver(parsed->path);
}

}  // namespace perseus::device
