// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/sosp24.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "evaluation/artifact.h"
#include "evaluation/emulation.h"
#include "evaluation/jobs.h"

namespace perseus::sosp24 {
namespace {

Result<void> CheckOptions(const Sosp24Options& options) {
  if (!(options.effort > 0) || !std::isfinite(options.effort)) {
    return InvalidInput(fmt::format("the effort is {}; expected a number above 0", options.effort));
  }
  std::error_code ignored;
  if (!options.derived_directory.empty() &&
      !std::filesystem::is_directory(options.derived_directory, ignored)) {
    return InvalidInput(fmt::format("{}: is no folder; give the one with the derived job profiles",
                                    options.derived_directory));
  }
  return {};
}

// What all jobs together lack, in one sentence each.
void NameAbsentPlans(const Sosp24Options& options, Sosp24Evaluation* evaluation) {
  if (options.derived_directory.empty()) {
    evaluation->missing.emplace_back(
        "Real jobs: no folder of derived profiles was given, so Tables 3 and 4 and Figure 9 have "
        "no "
        "plans of ours, and no published plan is replayed.");
    return;
  }
  std::vector<std::string> without_profile;
  std::vector<std::string> without_clocks;
  for (const Sosp24Job& job : evaluation->jobs) {
    const std::string name = fmt::format("{} on {}", job.model, job.gpu);
    if (!job.has_derived) without_profile.push_back(name);
    if (job.has_derived && (job.summarised || job.perseus.empty())) without_clocks.push_back(name);
  }
  if (!without_profile.empty()) {
    evaluation->missing.push_back(fmt::format(
        "Real jobs: the folder of derived profiles has none of {}, so there are no plans "
        "of ours for them.",
        fmt::join(without_profile, ", ")));
  }
  if (!without_clocks.empty()) {
    evaluation->missing.push_back(fmt::format(
        "Real jobs: the clocks of the published plans of {} are absent, so these are not "
        "replayed against their measured times.",
        fmt::join(without_clocks, ", ")));
  }
}

}  // namespace

Result<Sosp24Evaluation> EvaluateSosp24(const Sosp24Options& options) {
  if (const auto checked = CheckOptions(options); !checked) return tl::unexpected(checked.error());
  const auto root = sosp24::FindArtifact(options.directory);
  if (!root) return tl::unexpected(root.error());

  Sosp24Evaluation evaluation;
  const auto envpipe = sosp24::ReadEnvPipeResults(*root);
  if (!envpipe) return tl::unexpected(envpipe.error());
  for (const auto& one : sosp24::ListEmulations(*root, &evaluation.missing)) {
    const auto done =
        sosp24::EvaluateEmulation(one, *envpipe, options, sosp24::FigureSlowdowns(), &evaluation);
    if (!done) return tl::unexpected(done.error());
  }

  const auto workloads = sosp24::ListWorkloads(*root);
  if (!workloads) return tl::unexpected(workloads.error());
  if (workloads->empty()) {
    evaluation.missing.emplace_back(
        "Real jobs: workloads/, perseus/ and envpipe/ name none, so Tables 3 and 4 and Figure 9 "
        "are "
        "left out.");
  }
  const sosp24::JobSources sources = sosp24::FindJobSources(*root, options);
  for (const auto& workload : *workloads) {
    const auto done = sosp24::EvaluateJob(workload, sources, options, &evaluation);
    if (!done) return tl::unexpected(done.error());
  }
  NameAbsentPlans(options, &evaluation);
  return evaluation;
}

}  // namespace perseus::sosp24
