// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "synth/synth_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "common/nearest_name.h"

namespace perseus::synth {
namespace {

constexpr std::array<GpuModel, 3> kGpus = {{
    {.name = "a100-sxm",
     .title = "NVIDIA A100 SXM 80 GB",
     .peak_flops_per_second = 311.87e12,
     .lowest_modelled_mhz = 855,
     .max_mhz = 1410,
     .step_mhz = 15,
     .blocking_power_watts = 83.64,
     .knee_mhz = 1140,
     .knee_power_watts = 302.6,
     .slope_below_watts_per_mhz = 0.23,
     .slope_above_watts_per_mhz = 0.71,
     .cap_watts = 476,
     .head_overhead_power_share = 0.314,
     .forward = {.efficiency = 0.7506,
                 .clock_share = 0.8693,
                 .head_efficiency = 0.7506,
                 .head_overhead_seconds = 0.002575},
     .backward = {.efficiency = 0.8102,
                  .clock_share = 0.8390,
                  .head_efficiency = 0.8102,
                  .head_overhead_seconds = 0.003162},
     .convolutions = std::nullopt},
    // No knee within the clocks that were measured: one slope, up to the cap.
    {.name = "a100-pcie",
     .title = "NVIDIA A100 PCIe 80 GB",
     .peak_flops_per_second = 311.87e12,
     .lowest_modelled_mhz = 1050,
     .max_mhz = 1410,
     .step_mhz = 15,
     .blocking_power_watts = 83.64,
     .knee_mhz = 1125,
     .knee_power_watts = 271.2,
     .slope_below_watts_per_mhz = 0.417,
     .slope_above_watts_per_mhz = 0.417,
     .cap_watts = 300,
     .head_overhead_power_share = 0,
     .forward = {.efficiency = 0.1866,
                 .clock_share = 0.7486,
                 .head_efficiency = 0.2251,
                 .head_overhead_seconds = 0},
     .backward = {.efficiency = 0.2158,
                  .clock_share = 0.6249,
                  .head_efficiency = 0.2023,
                  .head_overhead_seconds = 0},
     .convolutions = std::nullopt},
    {.name = "a40",
     .title = "NVIDIA A40",
     .peak_flops_per_second = 149.67e12,
     .lowest_modelled_mhz = 855,
     .max_mhz = 1740,
     .step_mhz = 15,
     .blocking_power_watts = 70.38,
     .knee_mhz = 1155,
     .knee_power_watts = 206.4,
     .slope_below_watts_per_mhz = 0.105,
     .slope_above_watts_per_mhz = 0.26,
     .cap_watts = 294,
     .head_overhead_power_share = 0,
     .forward = {.efficiency = 0.6013,
                 .clock_share = 0.3031,
                 .head_efficiency = 0.8748,
                 .head_overhead_seconds = 0},
     .backward = {.efficiency = 0.6815,
                  .clock_share = 0.4984,
                  .head_efficiency = 0.8061,
                  .head_overhead_seconds = 0},
     .convolutions = GpuConvolutions{.forward = {.efficiency = 0.2912,
                                                 .clock_share = 0.3338,
                                                 .head_efficiency = 0.2912,
                                                 .head_overhead_seconds = 0},
                                     .backward = {.efficiency = 0.3044,
                                                  .clock_share = 0.6657,
                                                  .head_efficiency = 0.3044,
                                                  .head_overhead_seconds = 0},
                                     .group_efficiency = {0.6705, 0.8726, 1.0, 0.6323}}},
}};

struct Unsourced {
  std::string_view name;
  std::string_view missing;
};

constexpr std::string_view kNothingKnown =
    "its blocking power, voltage knee, power slopes, power under training load and the share of "
    "time that follows the clock";

constexpr std::array<Unsourced, 7> kUnsourced = {{
    {"h100-sxm", kNothingKnown},
    {"h100-pcie", kNothingKnown},
    {"h200-sxm", kNothingKnown},
    {"b200", kNothingKnown},
    {"v100", kNothingKnown},
    {"rtx-3090", kNothingKnown},
    {"rtx-a6000", kNothingKnown},
}};

}  // namespace

double GpuModel::EffectiveMhz(double mhz) const {
  const double cap_mhz = knee_mhz + (cap_watts - knee_power_watts) / slope_above_watts_per_mhz;
  return std::min(mhz, cap_mhz);
}

double GpuModel::PowerWatts(double mhz) const {
  const double above_knee = EffectiveMhz(mhz) - knee_mhz;
  const double slope = above_knee < 0 ? slope_below_watts_per_mhz : slope_above_watts_per_mhz;
  return knee_power_watts + slope * above_knee;
}

std::span<const GpuModel> GpuModels() { return kGpus; }

Result<GpuModel> FindGpu(std::string_view name) {
  std::vector<std::string> names;
  for (const GpuModel& gpu : kGpus) {
    if (SameName(gpu.name, name)) return gpu;
    names.emplace_back(gpu.name);
  }
  const std::string known = fmt::format("{}", fmt::join(names, ", "));
  for (const Unsourced& gpu : kUnsourced) {
    // "h100" and "h200" as well as their full names.
    if (!SameName(gpu.name, name) && !SameName(gpu.name.substr(0, gpu.name.find("-sxm")), name)) {
      continue;
    }
    return InvalidInput(fmt::format(
        "'gpu' {}: no public source gives {}, so it is not modelled (nothing is guessed); sweep "
        "its clocks and plan from the measured profile (`perseus plan PROFILE.csv`), or model one "
        "of: {}",
        gpu.name, gpu.missing, known));
  }
  if (SameName(name, "a100")) {
    return InvalidInput("'gpu' a100: say which card, a100-sxm or a100-pcie");
  }
  for (const Unsourced& gpu : kUnsourced) names.emplace_back(gpu.name);
  return InvalidInput(fmt::format("'gpu' {}: no such GPU{}; expected one of: {}", Shown(name),
                                  NearestHint(name, names), known));
}

}  // namespace perseus::synth
