// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_EVENT_KIND_H_
#define PERSEUS_SERVER_DOMAIN_EVENT_KIND_H_

#include <cstdint>

namespace perseus::server {

// The kinds of events about jobs, for dashboards and the log. EventTypes() describes each.
enum class EventKind : std::uint8_t {
  kJob,
  kState,
  kPlan,
  kStraggler,
  kDetection,
  kProfiling,
  kDrift,
  kTrouble,
  kStore,
  kReset,
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_EVENT_KIND_H_
