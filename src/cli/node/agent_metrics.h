// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_AGENT_METRICS_H_
#define PERSEUS_CLI_NODE_AGENT_METRICS_H_

#include "agent/protocol.h"
#include "metrics/families.h"

namespace perseus::cli {

// An agent's status for Prometheus. `now_seconds`: time of day.
metrics::Families AgentFamilies(const agent::StatusAnswer& status, double now_seconds);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_AGENT_METRICS_H_
