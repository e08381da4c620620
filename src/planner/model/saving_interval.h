// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_SAVING_INTERVAL_H_
#define PERSEUS_MODEL_SAVING_INTERVAL_H_

#include <optional>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

namespace perseus::model {

// What the errors of a measured profile make of the saving of a plan: times, energies and blocking
// power are drawn some hundred times as they may be in truth, and the plan and maximum clocks are
// replayed with them. Not how a job differs from the conditions of its sweep.
//
// `options`: one for every computation. None: the profile does not say its errors for all of them.
std::optional<SavingInterval> IntervalOfSaving(const CostedPipeline& pipeline,
                                               const std::vector<CostOption>& options,
                                               Waiting waiting);

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_SAVING_INTERVAL_H_
