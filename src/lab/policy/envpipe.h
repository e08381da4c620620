// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_POLICY_ENVPIPE_H_
#define PERSEUS_POLICY_ENVPIPE_H_

#include <vector>

#include "perseus/costed_pipeline.h"

namespace perseus::policy {

// The computations that EnvPipe (Choi et al., USENIX ATC'23) never slows down.
// Where every rank holds one stage and runs forwards and backwards one by one
// (GPipe, 1F1B): the last stage, and on every rank the first forward and the
// last backward. In other schedules: a longest path at maximum clocks.
std::vector<bool> OuterEnvelope(const CostedPipeline& pipeline);

// One longest path of a replay, last computation first. Where two computations
// end at the same time, that of the other rank is followed.
std::vector<int> LongestPath(const PipelineDag& dag, const Timing& timing);

// EnvPipe's plan: the outer envelope at maximum clocks, every other computation
// at its least-energy clock; then, on the longest path, the computations of the
// lowest clock go up by one, until all of the path is at maximum clocks
// ("balanced" in EnvPipe's code). So it takes no longer than at maximum clocks.
std::vector<CostOption> EnvPipeOptions(const CostedPipeline& pipeline);

}  // namespace perseus::policy

#endif  // PERSEUS_POLICY_ENVPIPE_H_
