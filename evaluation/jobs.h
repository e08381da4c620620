// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_JOBS_H_
#define PERSEUS_EVALUATION_JOBS_H_

#include <filesystem>
#include <vector>

#include "evaluation/artifact.h"
#include "evaluation/sosp24.h"
#include "perseus/result.h"

namespace perseus::sosp24 {

// Where the measurements of real jobs lie.
struct JobSources {
  std::filesystem::path root;                   // The artifact.
  std::vector<std::filesystem::path> measured;  // Summaries, where raw runs are absent.
  bool measured_is_named = false;               // Else found beside the others.
  std::filesystem::path derived;                // Profiles in our format; empty: none.
};
JobSources FindJobSources(const std::filesystem::path& root, const Sosp24Options& options);

// One real job: its rows of Tables 3 and 4 and its curves of Figure 9, appended
// to `evaluation`.
Result<void> EvaluateJob(const Workload& workload, const JobSources& sources,
                         const Sosp24Options& options, Sosp24Evaluation* evaluation);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_JOBS_H_
