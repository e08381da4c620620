// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLAN_NOTES_H_
#define PERSEUS_CLI_PLAN_NOTES_H_

#include <string>
#include <string_view>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "perseus/profile.h"

namespace perseus::cli {

// Sentences about an input that is valid and perhaps not what was meant: a
// stage without the highest clock, interleaving with nothing to interleave,
// numbers in other units. Empty where nothing is odd.
std::vector<std::string> InputNotes(const Profile& profile, const CostedPipeline& pipeline,
                                    const Plan& baseline, int virtual_stages);

inline constexpr std::string_view kOneKnobPerRank = "each rank keeps one knob";
inline constexpr std::string_view kLateClocks =
    "a clock comes into effect when others are asked for already";

// Notes a time given with `flag` that is longer than an iteration; a number
// without a unit is seconds, and milliseconds may have been meant.
void NoteLongWait(std::string_view flag, double seconds, double iteration_seconds,
                  std::string_view consequence, std::vector<std::string>* notes);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLAN_NOTES_H_
