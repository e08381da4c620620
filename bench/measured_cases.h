// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_BENCH_MEASURED_CASES_H_
#define PERSEUS_BENCH_MEASURED_CASES_H_

#include <string>

#include "perseus/planner.h"
#include "perseus/result.h"

namespace perseus::bench {

// The pipelines that the Perseus paper emulates, from its measured tables: 8 stages,
// 1F1B. `model` is "gpt3" (GPT-3 175B on A100) or "bloom" (Bloom 176B on A40), or names a job
// file (*.toml). The tables are looked for where PERSEUS_SHARED_DATA says, else in ../shared/data.
Result<Planner> MeasuredPlanner(const std::string& model, int microbatches);

}  // namespace perseus::bench

#endif  // PERSEUS_BENCH_MEASURED_CASES_H_
