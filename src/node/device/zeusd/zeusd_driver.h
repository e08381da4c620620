// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_ZEUSD_ZEUSD_DRIVER_H_
#define PERSEUS_DEVICE_ZEUSD_ZEUSD_DRIVER_H_

#include <memory>
#include <string>

#include "device/device.h"
#include "perseus/result.h"

namespace perseus::device {

// Sets clocks through Zeus' daemon zeusd (0.5) behind the socket `path`, for sites
// that run it already; reads through NVML, which needs no right. zeusd knows no
// owners and gives nothing back when a job dies: an agent does. `path` empty:
// /run/zeusd/zeusd.sock. A token is taken from ZEUSD_TOKEN, as Zeus does.
// Errors: kIo (no daemon, no NVML, or they see different GPUs), kDenied.
// `deadline_seconds`: of an answer. zeusd waits for the driver's call, which must not hang us.
Result<std::unique_ptr<Driver>> OpenZeusdDriver(const std::string& path,
                                                double deadline_seconds = 10);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_ZEUSD_ZEUSD_DRIVER_H_
