// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_RUNS_H_
#define PERSEUS_EVALUATION_RUNS_H_

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "evaluation/sosp24.h"
#include "perseus/pipeline.h"
#include "perseus/result.h"

// Plans of real jobs that were run and measured: N.prof.json says what
// happened, N.sched.json which clocks were set.
namespace perseus::sosp24 {

// The numbers N of the N.KIND.json in a folder, ascending.
std::vector<int> ListPlans(const std::filesystem::path& folder, std::string_view kind);

// Iteration time = the greatest of all ranks, energy = their sum; the mean over
// the iterations but the first two.
Result<Sosp24Point> ReadMeasurement(const std::filesystem::path& folder, int plan);

// measured/NAME.csv, a summary of such measurements, by number of plan.
Result<std::vector<Sosp24Point>> ReadSummary(const std::filesystem::path& file, int skip_below);

// The clocks that a plan set, in MHz, [rank][instruction] in execution order.
// Instructions are more than computations: see ClocksOfComputations().
using RankClocks = std::vector<std::vector<double>>;
Result<RankClocks> ReadClocks(const std::filesystem::path& folder, int plan);

// Of a rank's clocks those of its computations, in the order of the DAG's rank;
// nullopt where the number of instructions is another one than its 1F1B has.
// Precondition: `dag` is a 1f1b pipeline, `stage` one of its ranks.
std::optional<std::vector<double>> ClocksOfComputations(const PipelineDag& dag, int stage,
                                                        std::span<const double> clocks);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_RUNS_H_
