// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_POWER_SHAPE_H_
#define PERSEUS_POWER_SHAPE_H_

// Link perseus::core (pkg-config: perseus-core).

#include <cstdint>
#include <optional>
#include <vector>

#include "perseus/export.h"

// The power of a whole job as the grid sees it: how fast it rises and falls, and at which
// frequencies it swings. docs/explanation/emulation.md ("Shape of the power") defines every
// quantity.
PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// Frequencies, both ends included.
struct PowerBand {
  double low_hz = 0;
  double high_hz = 0;
};
// Where swings of large jobs trouble grids and turbines (Choukse et al. 2025, arXiv 2508.14318).
// PowerShape::spectrum covers this band.
inline constexpr PowerBand kCriticalBand = {0.1, 20};

struct PowerShapeSpec {
  PowerBand band = kCriticalBand;  // At most 25 Hz.
  // Where it is given, PowerShape::ballast_joules says what keeping it costs.
  std::optional<double> ramp_limit_watts_per_second = {};
};

// The fastest changes of mean power from one window to the next, >= 0.
struct PowerRamp {
  double rise_watts_per_second = 0;
  double fall_watts_per_second = 0;

  double most() const {
    return rise_watts_per_second > fall_watts_per_second ? rise_watts_per_second
                                                         : fall_watts_per_second;
  }
};

// What swings at frequencies [low, high).
struct SpectrumColumn {
  double low_hz = 0;
  double high_hz = 0;
  double rms_watts = 0;
};

struct PowerShape {
  double interval_seconds = 0;            // Of the mean powers that it is computed from.
  std::int64_t values = 0;                // How many of them there are. 0: the shape is not stated.
  std::optional<PowerRamp> ramp_1s = {};  // No value if the job is shorter than two windows.
  std::optional<PowerRamp> ramp_100ms = {};  // Likewise.
  double rms_watts = 0;                      // Around the mean, at all frequencies.
  PowerBand band = {};                       // As it was asked for.
  // Whether the job is long enough to tell the band's two ends apart. If not, the next three are 0
  // and say nothing.
  bool band_resolved = true;
  double band_rms_watts = 0;                  // Of what swings in the band.
  double band_share = 0;                      // Of the variance; 0 where there is none.
  double strongest_hz = 0;                    // Of the band; 0 where nothing is in it.
  std::vector<SpectrumColumn> spectrum = {};  // kCriticalBand in columns of equal ratio.
  // The least energy that must be added, as load, so that power never changes faster than the
  // limit. 0 without a limit.
  double ballast_joules = 0;

  bool stated() const { return values > 0; }
};

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_POWER_SHAPE_H_
