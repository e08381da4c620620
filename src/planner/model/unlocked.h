// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_UNLOCKED_H_
#define PERSEUS_MODEL_UNLOCKED_H_

#include <optional>
#include <string>

#include "perseus/costed_pipeline.h"
#include "perseus/note.h"
#include "perseus/plan.h"

namespace perseus::model {

// An iteration of one pipeline with no clock set.
struct UnlockedIteration {
  double seconds = 0;
  double joules = 0;  // Waiting included, at what it draws at the highest clock.
};

// None: the profile does not say what all computations cost with no clock set.
std::optional<UnlockedIteration> UnlockedIterationOf(const CostedPipeline& pipeline);

// How a plan compares with it.
UnlockedFigures AgainstUnlocked(const UnlockedIteration& iteration, const PlanFigures& plan);

// If an iteration with no clock set is clearly faster than one at the highest clock, a plan without
// slowdown makes training slower; that is the note. Clearly: by more than 0.5 %, than three
// standard errors of the profile's times, and than 0.1 ms a computation, which a host's times may
// err by. Another note if rows are missing for a comparison. `source`: of the profile.
std::optional<Note> UnlockedNote(const CostedPipeline& pipeline, const std::string& source);

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_UNLOCKED_H_
