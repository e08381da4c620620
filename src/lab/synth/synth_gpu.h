// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SYNTH_SYNTH_GPU_H_
#define PERSEUS_SYNTH_SYNTH_GPU_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "perseus/result.h"

namespace perseus::synth {

// What one direction (forward or backward) costs on a GPU.
struct GpuDirection {
  double efficiency;             // Of the peak rate, layers at the highest clock.
  double clock_share;            // Of the time at the highest clock, what scales with 1 / clock.
  double head_efficiency;        // Of the vocabulary projection, at the highest clock.
  double head_overhead_seconds;  // Per microbatch, at the highest clock.
};

// Convolutions are other kernels than the products of a transformer. Their
// efficiency depends on the number of pixels, which is that of the block's group.
struct GpuConvolutions {
  GpuDirection forward;  // Efficiency: of blocks of the third group.
  GpuDirection backward;
  std::array<double, 4> group_efficiency;  // Of the four groups, over the third's.
};

// An analytic GPU: time(f) = t_max (1 - share + share f_max / f), and a mean
// power of two slopes with a knee where the voltage starts to rise, cut off at
// the power cap, where the clock stops rising too. docs/evidence/synth.md gives the
// source and the status of every constant.
struct GpuModel {
  std::string_view name;
  std::string_view title;
  double peak_flops_per_second;      // Dense bf16.
  std::int64_t lowest_modelled_mhz;  // The measured tables end here; the card goes lower.
  std::int64_t max_mhz;
  std::int64_t step_mhz;
  double blocking_power_watts;
  double knee_mhz;
  double knee_power_watts;
  double slope_below_watts_per_mhz;
  double slope_above_watts_per_mhz;
  double cap_watts;
  double head_overhead_power_share;  // Of the power of layers, while in the head's overhead.
  GpuDirection forward;
  GpuDirection backward;
  std::optional<GpuConvolutions> convolutions;  // Where a measured table gives them.

  // The clock at which the card really runs when set to `mhz`.
  double EffectiveMhz(double mhz) const;
  // Mean power of computation when set to `mhz`.
  double PowerWatts(double mhz) const;
};

std::span<const GpuModel> GpuModels();

// Errors: a GPU whose constants have no source (with what is missing), or an
// unknown name.
Result<GpuModel> FindGpu(std::string_view name);

}  // namespace perseus::synth

#endif  // PERSEUS_SYNTH_SYNTH_GPU_H_
