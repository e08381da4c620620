// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_CHECK_SITE_H_
#define PERSEUS_FLEET_CHECK_SITE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "perseus/fleet.h"

namespace perseus::fleet {

// For messages: job "a", or job 3 where it has no name. Jobs and nodes count from 0.
std::string JobLabel(const PowerSite& site, std::size_t job);
std::string NodeLabel(const PowerSite& site, std::size_t node);

// What is wrong with a site; nothing if it can be divided.
std::optional<Error> FaultOf(const PowerSite& site);

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_CHECK_SITE_H_
