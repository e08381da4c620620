// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/node/agent_metrics.h"

#include <string>
#include <utility>

namespace perseus::cli {
namespace {

using metrics::AddValue;
using metrics::Counter;
using metrics::Gauge;
using prometheus::MetricFamily;

// Of the GPUs, by UUID.
metrics::Families GpuFamilies(const agent::StatusAnswer& status, double now_seconds) {
  constexpr double kHertz = 1e6;
  MetricFamily infos =
      Gauge("perseus_agent_gpu_info", "1, with UUID, index and name of a GPU of this node.");
  MetricFamily leased = Gauge("perseus_agent_gpu_leased", "1: a process has the GPU's clock.");
  MetricFamily heard = Gauge("perseus_agent_gpu_owner_heard_timestamp_seconds",
                             "When that process was last heard, seconds since 1970.");
  MetricFamily locked = Gauge("perseus_agent_gpu_locked_hertz", "The clock that is set now.");
  MetricFamily sets = Counter("perseus_agent_gpu_clock_sets_total", "Clocks that were set.");
  MetricFamily restores =
      Counter("perseus_agent_gpu_clock_restores_total", "Clocks that were given back.");
  MetricFamily superseded = Counter("perseus_agent_gpu_superseded_total",
                                    "Clocks that were not set, as a newer request came first.");
  MetricFamily failures =
      Counter("perseus_agent_gpu_driver_failures_total", "Calls that the driver refused.");
  MetricFamily pending = Gauge("perseus_agent_gpu_restore_pending",
                               "1: a clock could not be given back yet; it is tried again.");
  MetricFamily fights =
      Gauge("perseus_agent_gpu_fights",
            "What holds the GPU below its clock now: a power cap, heat, a power profile.");
  for (const agent::GpuStatus& gpu : status.gpus) {
    const metrics::Labels labels = {{"gpu", gpu.uuid}};
    AddValue(&infos, 1,
             {{"gpu", gpu.uuid}, {"index", std::to_string(gpu.index)}, {"name", gpu.name}});
    AddValue(&leased, gpu.owner ? 1 : 0, labels);
    if (gpu.owner) AddValue(&heard, now_seconds - gpu.owner->silent_seconds, labels);
    if (gpu.locked_mhz) AddValue(&locked, kHertz * *gpu.locked_mhz, labels);
    AddValue(&sets, static_cast<double>(gpu.sets), labels);
    AddValue(&restores, static_cast<double>(gpu.restores), labels);
    AddValue(&superseded, static_cast<double>(gpu.superseded), labels);
    AddValue(&failures, static_cast<double>(gpu.failures), labels);
    AddValue(&pending, gpu.restore_pending ? 1 : 0, labels);
    AddValue(&fights, static_cast<double>(gpu.fights.size()), labels);
  }
  return {infos, leased, heard, locked, sets, restores, superseded, failures, pending, fights};
}

}  // namespace

metrics::Families AgentFamilies(const agent::StatusAnswer& status, double now_seconds) {
  metrics::Families families = GpuFamilies(status, now_seconds);
  families.push_back(metrics::BuildInfo("perseus_agent_build_info", {{"driver", status.driver}}));
  families.push_back(Gauge("perseus_agent_start_time_seconds",
                           "When the agent began, seconds since 1970.",
                           now_seconds - status.uptime_seconds));
  families.push_back(
      Gauge("perseus_agent_observes", "1: it sets no clock (--observe).", status.observe ? 1 : 0));
  // Without the one that asked for this.
  families.push_back(Gauge("perseus_agent_connections", "Open connections of trainers and others.",
                           status.connections - 1));
  families.push_back(Counter("perseus_agent_leases_total", "Leases of GPUs that were given.",
                             static_cast<double>(status.leases)));
  MetricFamily refused =
      Counter("perseus_agent_refused_requests_total", "Requests that were refused, by code.");
  for (const agent::Refusal code : agent::kAllRefusals) {
    const auto found = status.refused.find(code);
    AddValue(&refused, found == status.refused.end() ? 0 : static_cast<double>(found->second),
             {{"code", std::string(agent::RefusalName(code))}});
  }
  families.push_back(std::move(refused));
  return families;
}

}  // namespace perseus::cli
