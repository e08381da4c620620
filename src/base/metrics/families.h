// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_METRICS_FAMILIES_H_
#define PERSEUS_METRICS_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

// Figures for Prometheus that are read from somewhere else when they are asked for.
namespace perseus::metrics {

using Families = std::vector<prometheus::MetricFamily>;
using Labels = std::vector<prometheus::ClientMetric::Label>;

// A family without values. `help` is a sentence.
prometheus::MetricFamily Counter(const char* name, const char* help);
prometheus::MetricFamily Gauge(const char* name, const char* help);

void AddValue(prometheus::MetricFamily* family, double value, Labels labels = {});

// A family with one value.
prometheus::MetricFamily Counter(const char* name, const char* help, double value);
prometheus::MetricFamily Gauge(const char* name, const char* help, double value);
// 1, with the version of this program, and more labels.
prometheus::MetricFamily BuildInfo(const char* name, Labels labels = {});

// Prometheus' text format, version 0.0.4. Families without values are left out.
std::string Text(Families families);

// The figures of this process under the names of Prometheus' own libraries
// (process_cpu_seconds_total and others), of which prometheus-cpp has none. Figures that /proc
// lacks are left out.
Families ProcessFamilies();

}  // namespace perseus::metrics

#endif  // PERSEUS_METRICS_FAMILIES_H_
