// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_OPTION_ERRORS_H_
#define PERSEUS_MODEL_OPTION_ERRORS_H_

#include <cstdint>
#include <vector>

#include "perseus/costed_pipeline.h"

namespace perseus::model {

// Share of the errors' variance that all ranks have in common: their curves are smoothed alike, and
// stand in one room.
inline constexpr double kCommonErrorShare = 0.15;
// No time or power is less than this share of what was measured.
inline constexpr double kLeastErrorShare = 0.1;

// How well an option of a table was measured; nullptr: the profile does not say.
const OptionErrors* ErrorsOf(const std::vector<OptionErrors>& all, const CostTable& table,
                             int knob);

// The part of a standard error that no source explains.
double OwnError(double std, const std::vector<double>& sources);

// Standard error of an option's time over that of the table's baseline, relative: what they have in
// common cancels. 0 of the baseline, and where the profile states no errors.
double TimeErrorBesideBaseline(const CostedPipeline& pipeline, const CostTable& table, int knob);

// What the times of options may be in truth, over what was measured, as one draw from their
// standard errors: [table x knobs + knob]. Relative to the baseline of each table, which keeps its
// measured time. Empty where the profile states no errors.
std::vector<double> DrawTrueTimes(const CostedPipeline& pipeline, std::uint64_t seed);

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_OPTION_ERRORS_H_
