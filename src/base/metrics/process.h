// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_METRICS_PROCESS_H_
#define PERSEUS_METRICS_PROCESS_H_

#include "metrics/families.h"

namespace perseus::metrics {

// What this process uses, by the names that Prometheus' own libraries have for it
// (process_cpu_seconds_total and others), of which prometheus-cpp has none. What /proc does not
// tell is left out.
Families ProcessFamilies();

}  // namespace perseus::metrics

#endif  // PERSEUS_METRICS_PROCESS_H_
