// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_EVENT_KIND_H_
#define PERSEUS_SERVER_DOMAIN_EVENT_KIND_H_

#include <cstdint>

namespace perseus::server {

// What can happen to a job, for dashboards and the log. EventTypes() says what each is.
enum class EventKind : std::uint8_t {
  kJob,
  kState,
  kPlan,
  kStraggler,
  kDetection,
  kProfiling,
  kDrift,
  kTrouble,
  kReset,
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_EVENT_KIND_H_
