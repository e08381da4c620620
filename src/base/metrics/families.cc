// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "metrics/families.h"

#include <prometheus/text_serializer.h>

#include <utility>

#include "perseus/version.h"

namespace perseus::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily Family(const char* name, const char* help, MetricType type) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  return family;
}

MetricFamily Single(MetricFamily family, double value) {
  AddValue(&family, value);
  return family;
}

}  // namespace

MetricFamily Counter(const char* name, const char* help) {
  return Family(name, help, MetricType::Counter);
}

MetricFamily Gauge(const char* name, const char* help) {
  return Family(name, help, MetricType::Gauge);
}

void AddValue(MetricFamily* family, double value, Labels labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;
  metric.gauge.value = value;
  family->metric.push_back(std::move(metric));
}

MetricFamily Counter(const char* name, const char* help, double value) {
  return Single(Counter(name, help), value);
}

MetricFamily Gauge(const char* name, const char* help, double value) {
  return Single(Gauge(name, help), value);
}

MetricFamily BuildInfo(const char* name, Labels labels) {
  MetricFamily family = Gauge(name, "1, with the version.");
  labels.insert(labels.begin(), {"version", PERSEUS_VERSION_STRING});
  AddValue(&family, 1, std::move(labels));
  return family;
}

std::string Text(Families families) {
  std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace perseus::metrics
