// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_BENCH_MODELLED_PIPELINE_H_
#define PERSEUS_BENCH_MODELLED_PIPELINE_H_

#include "perseus/costed_pipeline.h"
#include "perseus/result.h"

namespace perseus::bench {

// GPT-3 175B on A100 SXM, 1F1B, from the analytic model: benchmarks need no
// data. At most 96 stages.
Result<CostedPipeline> ModelledPipeline(int stages, int microbatches);

}  // namespace perseus::bench

#endif  // PERSEUS_BENCH_MODELLED_PIPELINE_H_
