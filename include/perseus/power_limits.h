// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_POWER_LIMITS_H_
#define PERSEUS_POWER_LIMITS_H_

// Link perseus::core (pkg-config: perseus-core).

#include <cstdint>
#include <optional>
#include <vector>

#include "perseus/emulator.h"
#include "perseus/export.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/power_shape.h"
#include "perseus/progress.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// Whether a shape keeps limits. kBroken if one limit is broken, even if another cannot be judged.
enum class LimitVerdict : std::uint8_t {
  kKept,
  kBroken,
  kNotResolved,  // The job is too short, or too long, to say.
};

// What the power of the whole job must keep to. No value: no limit.
struct PowerLimits {
  // Of PowerShape::ramp_1s, both ways.
  std::optional<double> ramp_watts_per_second = std::nullopt;
  std::optional<double> band_rms_watts = std::nullopt;  // Of PowerShape::band_rms_watts.

  bool any() const { return ramp_watts_per_second || band_rms_watts; }
  LimitVerdict Verdict(const PowerShape& shape) const;
  // Whether the verdict is kKept.
  bool KeptBy(const PowerShape& shape) const;
};

// The job as a policy runs it when it plans for a longer iteration.
struct SlowerRun {
  double target_seconds = 0;
  double time_seconds = 0;  // All iterations.
  double energy_joules = 0;
  PowerShape shape = {};
  bool keeps = false;
};

// Emulates the policy at the scenario's target and at 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4 and 1.5
// times of it. Ends after the first that keeps the limits or whose shape cannot be judged. Targets
// at which the policy has no plan are left out. If its plan is the same for all of them, only the
// first is emulated. Swings need not fall with every step, so a time in between may keep limits
// that a longer one breaks. Errors: those of Emulate().
Result<std::vector<SlowerRun>> SlowDownToLimits(const Planner& planner, const Policy& policy,
                                                const EmulationSpec& spec,
                                                const PowerLimits& limits,
                                                const ProgressFunction& progress = {});

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_POWER_LIMITS_H_
