// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_METRICS_PROCESS_H_
#define PERSEUS_METRICS_PROCESS_H_

#include "metrics/families.h"

namespace perseus::metrics {

// The figures of this process under the names of Prometheus' own libraries
// (process_cpu_seconds_total and others), of which prometheus-cpp has none. Figures that /proc
// lacks are left out.
Families ProcessFamilies();

}  // namespace perseus::metrics

#endif  // PERSEUS_METRICS_PROCESS_H_
