// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_POWER_SHAPE_H_
#define PERSEUS_POWER_SHAPE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "perseus/export.h"

// The power of a whole job as the grid sees it: how fast it rises and falls,
// and at which frequencies it swings. docs/explanation/emulation.md ("Shape of the power")
// defines every quantity; tests/oracle computes them again with numpy.
PERSEUS_EXPORT_BEGIN
namespace perseus {

// Frequencies, both ends included.
struct PowerBand {
  double low_hz = 0;
  double high_hz = 0;
};
// Where swings of large jobs trouble grids and turbines (Choukse et al. 2025,
// arXiv 2508.14318). The spectrum is stated here.
inline constexpr PowerBand kCriticalBand = {0.1, 20};
// Half the sampling rate of the longest jobs whose shape is followed.
inline constexpr double kMostBandHz = 25;
inline constexpr double kMostRampWattsPerSecond = 1e15;

struct PowerShapeSpec {
  PowerBand band = kCriticalBand;
  // 0: none. Otherwise PowerShape::ballast_joules is what keeping it costs.
  double ramp_limit_watts_per_second = 0;
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
  double interval_seconds = 0;          // Of the means that it is computed from.
  std::int64_t values = 0;              // Of which there are so many; 0: it is not stated.
  std::optional<PowerRamp> ramp_1s;     // Absent where the job is shorter than two windows.
  std::optional<PowerRamp> ramp_100ms;  // Likewise.
  double rms_watts = 0;                 // Around the mean, at all frequencies.
  PowerBand band;                       // As it was asked for.
  // Whether the job is long enough to tell the band's two ends apart. Where it is
  // not, the three below are 0 and say nothing.
  bool band_resolved = true;
  double band_rms_watts = 0;             // Of what swings in the band.
  double band_share = 0;                 // Of the variance; 0 where there is none.
  double strongest_hz = 0;               // Of the band; 0 where nothing is in it.
  std::vector<SpectrumColumn> spectrum;  // kCriticalBand in columns of equal ratio.
  // Least energy to add, in load or by holding power up, so that power changes
  // by the limit at most at any moment; 0 without a limit.
  double ballast_joules = 0;

  bool stated() const { return values > 0; }
};

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_POWER_SHAPE_H_
