// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_RELAY_METRICS_H_
#define PERSEUS_CLI_NODE_RELAY_METRICS_H_

#include "metrics/families.h"
#include "relay/relay.h"

namespace perseus::cli {

// What a relay counts, for Prometheus. `now_seconds`: time of day.
metrics::Families RelayFamilies(const relay::Relay::Counts& counts, double now_seconds);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_RELAY_METRICS_H_
