// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_BENCH_MODELLED_PIPELINE_H_
#define PERSEUS_BENCH_MODELLED_PIPELINE_H_

#include <string>

#include "perseus/costed_pipeline.h"
#include "perseus/result.h"

namespace perseus::bench {

// The profile of GPT-3 175B on A100 SXM in so many stages, at most 96, from the analytic model of
// `perseus synth`: benchmarks need no data.
std::string ModelledProfile(int stages);

// The same as a pipeline, 1F1B.
Result<CostedPipeline> ModelledPipeline(int stages, int microbatches);

}  // namespace perseus::bench

#endif  // PERSEUS_BENCH_MODELLED_PIPELINE_H_
