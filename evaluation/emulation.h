// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_EMULATION_H_
#define PERSEUS_EVALUATION_EMULATION_H_

#include <span>
#include <vector>

#include "evaluation/artifact.h"
#include "evaluation/protocol.h"
#include "evaluation/sosp24.h"
#include "perseus/result.h"

namespace perseus::sosp24 {

// The slowdowns of Figure 8 in percent: 1 to 50.
std::vector<int> FigureSlowdowns();

// One cell of Table 6, and its rows of Figures 7 and 8, appended to
// `evaluation`. `planned_slowdowns` get a plan of ours for themselves; for others
// the best that is in time counts.
Result<void> EvaluateEmulation(const EmulationCase& one, const EnvPipeResults& envpipe,
                               const Sosp24Options& options, std::span<const int> planned_slowdowns,
                               Sosp24Evaluation* evaluation);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_EMULATION_H_
