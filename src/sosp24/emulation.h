// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SOSP24_EMULATION_H_
#define PERSEUS_SOSP24_EMULATION_H_

#include <span>
#include <vector>

#include "perseus/result.h"
#include "sosp24/artifact.h"
#include "sosp24/protocol.h"
#include "sosp24/sosp24.h"

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

#endif  // PERSEUS_SOSP24_EMULATION_H_
