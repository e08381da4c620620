// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_PLAN_NOTES_H_
#define PERSEUS_CLI_PLANNING_PLAN_NOTES_H_

#include <string>
#include <string_view>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/job_file.h"
#include "perseus/plan.h"
#include "perseus/profile.h"

namespace perseus::cli {

// Sentences about an input that is valid and perhaps not what was meant: a
// stage without the highest clock, interleaving with nothing to interleave,
// numbers in other units. Empty where nothing is odd.
std::vector<std::string> InputNotes(const Profile& profile, const CostedPipeline& pipeline,
                                    const Plan& baseline, int virtual_stages);

// What is odd in a profile, to standard error: for answers that have no place for notes.
void WriteProfileNotes(const Profile& profile);

inline constexpr std::string_view kOneKnobPerRank = "each rank keeps one knob";

// Notes a time given as `name` (a flag, or a key) that is longer than an iteration; a number
// without a unit is seconds, and milliseconds may have been meant.
void NoteLongWait(std::string_view name, double seconds, double iteration_seconds,
                  std::string_view consequence, std::vector<std::string>* notes);

// The same for what a change of clock takes, where no GPU takes so long.
void NoteLongSwitching(const JobFile& settings, const ClockSwitching& switching,
                       double iteration_seconds, std::vector<std::string>* notes);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_PLAN_NOTES_H_
