// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_PLAN_NOTES_H_
#define PERSEUS_CLI_PLANNING_PLAN_NOTES_H_

#include <string>
#include <vector>

#include "cli/framework/outputs.h"
#include "cli/framework/terminal.h"
#include "perseus/costed_pipeline.h"
#include "perseus/note.h"

namespace perseus::cli {

// What was found odd in the input, for the place before the figures; "" where nothing was.
std::string FormatNotes(const std::vector<Note>& notes, const Style& style);

// The same to standard error: for answers that have no place for notes.
void WriteNotes(const std::vector<Note>& notes);

// Where a file's figures cannot be believed: its notes, what to do, and exit code 2.
Printout InsteadOfFigures(std::string notes, const Style& style);

// How figures of this pipeline are to be read: several stages a rank, fused computations.
std::vector<std::string> PipelineRemarks(const CostedPipeline& pipeline, int virtual_stages);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_PLAN_NOTES_H_
