// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "modelled_pipeline.h"

#include <utility>

#include "perseus/pipeline.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"
#include "perseus/synth.h"

namespace perseus::bench {

Result<CostedPipeline> ModelledPipeline(int stages, int microbatches) {
  SynthSpec synth;
  synth.model = "gpt3-175b";
  synth.gpu = "a100-sxm";
  synth.stages = stages;
  auto modelled = Synthesize(synth);
  if (!modelled) return tl::unexpected(modelled.error());
  auto profile = ParseProfile(modelled->profile_csv, "profile.csv");
  if (!profile) return tl::unexpected(profile.error());
  ScheduleSpec spec;
  spec.name = "1f1b";
  spec.num_stages = stages;
  spec.num_microbatches = microbatches;
  auto schedule = BuildSchedule(spec);
  if (!schedule) return tl::unexpected(schedule.error());
  auto dag = BuildDag(*schedule, {});
  if (!dag) return tl::unexpected(dag.error());
  CostSpec costs;
  costs.blocking_power_watts = {83.64};
  return CostPipeline(*profile, *std::move(dag), costs);
}

}  // namespace perseus::bench
