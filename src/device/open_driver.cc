// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/device.h"
#include "device/driver_spec.h"
#include "device/nvml_driver.h"
#include "device/simulated_driver.h"

namespace perseus::device {

Result<std::unique_ptr<Driver>> OpenDriver(const std::string& spec) {
  const Result<DriverSpec> parsed = ParseDriverSpec(spec);
  if (!parsed) return tl::unexpected(parsed.error());
  if (parsed->kind == DriverKind::kSimulated) return OpenSimulatedDriver(parsed->path);
  if (parsed->kind == DriverKind::kNvml) return OpenNvmlDriver(parsed->path);
  return MakeError(ErrorCode::kIo, "this build has no driver of that kind");
}

}  // namespace perseus::device
