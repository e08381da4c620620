// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_QUESTIONS_SHAPE_TEXT_H_
#define PERSEUS_CLI_QUESTIONS_SHAPE_TEXT_H_

#include <string>
#include <vector>

#include "cli/framework/terminal.h"
#include "cli/questions/emulation_summary.h"

namespace perseus::cli {

// The power of the job as the grid sees it, for every policy, and what keeps
// the limits that were asked for; "" where the job is too short to say.
std::string FormatShapes(const EmulationSummary& summary, const Style& style);

// What the run is too short to say, and how long it would have to be.
void NoteUnresolved(const EmulationSummary& summary, std::vector<std::string>* notes);

// What keeping the limits takes, in a sentence. Precondition: some were asked for.
std::string LimitSentence(const EmulationSummary& summary);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_QUESTIONS_SHAPE_TEXT_H_
