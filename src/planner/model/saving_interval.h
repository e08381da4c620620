// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_SAVING_INTERVAL_H_
#define PERSEUS_MODEL_SAVING_INTERVAL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

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

// Possible true times of options over the measured ones, as one draw from their standard errors:
// [table x knobs + knob]. Relative to the baseline of each table, which keeps its measured time.
// Empty where the profile states no errors.
std::vector<double> DrawTrueTimes(const CostedPipeline& pipeline, std::uint64_t seed);

// The interval of a plan's saving by the errors of a measured profile: times, energies and blocking
// power are drawn some hundred times as they may be in truth, and the plan and maximum clocks are
// replayed with them. Not how a job differs from the conditions of its sweep.
//
// `options`: one for every computation. None: the profile does not say its errors for all of them.
std::optional<SavingInterval> IntervalOfSaving(const CostedPipeline& pipeline,
                                               const std::vector<CostOption>& options,
                                               Waiting waiting);

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_SAVING_INTERVAL_H_
