// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_REPLAY_EXACT_REPLAY_H_
#define PERSEUS_ROBUST_REPLAY_EXACT_REPLAY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

namespace perseus::robust {

// What replayed iterations came to, one by one.
struct ReplayedRun {
  std::vector<double> seconds;  // Of the job.
  std::vector<double> joules;   // Mean of its pipelines, waiting included.
  double clock_calls = 0;       // Mean, of one iteration of one pipeline.
};

// Iterations of a job whose pipelines all run the same options, one after the
// other, exactly as docs/explanation/emulation.md says: what perseus::Emulate() would find for a
// job without stragglers, to rounding.
// `true_times`: of model::DrawTrueTimes(); empty: as measured.
ReplayedRun ReplayJob(const CostedPipeline& pipeline, const std::vector<CostOption>& options,
                      Waiting waiting, const Conditions& conditions, int pipelines,
                      std::int64_t iterations, std::uint64_t seed,
                      const std::vector<double>& true_times = {});

struct SettledRun {
  ReplayedRun run;       // Where it settled, `clock_calls` are those of the last iteration.
  bool settled = false;  // All iterations that follow are like the last.
};

// The same where nothing varies, so that one pipeline is enough. It ends once an iteration leaves
// everything (times, clocks, calls under way, what clients expect) as the one before
// did, to rounding; at most `most` iterations.
SettledRun ReplayUntilSettled(const CostedPipeline& pipeline,
                              const std::vector<CostOption>& options, Waiting waiting,
                              const Conditions& conditions, std::int64_t most);

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_REPLAY_EXACT_REPLAY_H_
