// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_PROTOCOL_H_
#define PERSEUS_EVALUATION_PROTOCOL_H_

#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "evaluation/artifact.h"
#include "evaluation/published_frontier.h"
#include "evaluation/sosp24.h"
#include "perseus/costed_pipeline.h"
#include "perseus/profile.h"
#include "perseus/result.h"

// The paper's emulation of large jobs (section 6.3) as its artifact does it:
// what is read, the baseline, and what the published systems save.
namespace perseus::sosp24 {

inline constexpr int kTensorParallel = 8;
inline constexpr int kGlobalBatch = 1536;  // Microbatches of all pipelines.

// The profile of one pipeline's stages in seconds and joules of one GPU.
Result<Profile> ReadStageProfile(const std::filesystem::path& file);
// The published planner's frontier in seconds and joules of one pipeline.
Result<std::vector<Sosp24Point>> ReadFrontier(const std::filesystem::path& file);
// What EnvPipe's authors' code makes of the emulated pipelines, by (model,
// device, microbatches). Empty where the artifact lacks it.
using EnvPipeResults = std::map<std::tuple<std::string, std::string, int>, Sosp24Point>;
Result<EnvPipeResults> ReadEnvPipeResults(const std::filesystem::path& root);

// The baseline: every computation at its highest clock, waiting until
// `seconds`, whether or not such a pipeline ends by then.
double BaselineJoules(const CostedPipeline& pipeline, double seconds);

// A job of which one pipeline straggles: it takes `slowdown` times T and
// `slowdown` times its energy; the others wait for it.
struct Situation {
  double seconds = 0;          // T
  double baseline_joules = 0;  // Of one pipeline that ends at T.
  double slowdown = 1;
  int pipelines = 1;
  double waiting_watts = 0;  // Of one pipeline.

  double until() const { return slowdown * seconds; }
  // What a healthy pipeline of the baseline uses until the straggler is there.
  double BaselineUntil() const { return baseline_joules + waiting_watts * (until() - seconds); }
  double BaselineJob() const {
    return (pipelines - 1) * BaselineUntil() + slowdown * baseline_joules;
  }
  // Percent of the baseline's job that is saved where each healthy pipeline
  // takes `healthy_joules` with its waiting, and the straggling one would take
  // `straggler_joules` if it did not straggle.
  double JobPercent(double healthy_joules, double straggler_joules) const;
};

// What was published of one cell of Table 6: names, sizes, T, the baseline,
// the published planner, EnvPipe. Precondition: microbatches divide kGlobalBatch.
Sosp24Emulation PublishedCell(const EmulationCase& one, const CostedPipeline& pipeline,
                              const PublishedFrontier& frontier, const EnvPipeResults& envpipe);

// The situation of the paper where the others' T is the cell's published one.
Situation PublishedSituation(const Sosp24Emulation& cell, double waiting_watts, double slowdown);

// What the published systems save then.
Sosp24Straggler PublishedRow(const Sosp24Emulation& cell, const PublishedFrontier& frontier,
                             const Situation& situation);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_PROTOCOL_H_
