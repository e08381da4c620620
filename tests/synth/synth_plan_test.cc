// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What `perseus synth` writes is what `perseus plan` reads: every built-in
// model on every GPU, from the text of profile and job file to a plan.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "perseus/costed_pipeline.h"
#include "perseus/job_file.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"
#include "perseus/synth.h"

namespace perseus {
namespace {

SynthSpec LayoutOf(const std::string& model, const std::string& gpu, bool virtual_stages) {
  SynthSpec spec;
  spec.model = model;
  spec.gpu = gpu;
  spec.virtual_stages = virtual_stages ? 2 : 1;
  spec.stages = 2 * spec.virtual_stages;
  spec.tensor_parallel = model.rfind("wide-resnet", 0) == 0 ? 1 : 4;
  spec.microbatch_size = 2;
  spec.microbatches = 4;
  spec.clock_step_mhz = 120;  // Few clocks: the planner is tested elsewhere.
  return spec;
}

Result<Planner> PlannerOf(const SynthResult& synth) {
  const Result<Profile> profile = ParseProfile(synth.profile_csv, "profile.csv");
  if (!profile) return tl::unexpected(profile.error());
  const Result<JobFile> job = ParseJobFile(synth.job_toml, "job.toml", JobFileFormat::kToml);
  if (!job) return tl::unexpected(job.error());
  ScheduleSpec schedule_spec;
  schedule_spec.name = job->schedule.value();
  schedule_spec.num_stages = job->stages.value();
  schedule_spec.virtual_stages = job->virtual_stages.value();
  schedule_spec.num_microbatches = job->microbatches.value();
  const Result<Schedule> schedule = BuildSchedule(schedule_spec);
  if (!schedule) return tl::unexpected(schedule.error());
  Result<PipelineDag> dag = BuildDag(*schedule, {});
  if (!dag) return tl::unexpected(dag.error());
  CostSpec costs;
  costs.blocking_power_watts = job->blocking_power_watts;
  costs.tensor_parallel = job->tensor_parallel.value();
  Result<CostedPipeline> pipeline = CostPipeline(*profile, *std::move(dag), costs);
  if (!pipeline) return tl::unexpected(pipeline.error());
  return Planner::Create(*std::move(pipeline), {});
}

TEST(SynthPlanTest, EveryModelOnEveryGpuCanBePlanned) {
  int refused = 0;
  for (const std::string& model : SynthModelNames()) {
    for (const std::string& gpu : SynthGpuNames()) {
      for (const bool virtual_stages : {false, true}) {
        const Result<SynthResult> synth = Synthesize(LayoutOf(model, gpu, virtual_stages));
        if (!synth) {
          EXPECT_NE(synth.error().message.find("convolutions"), std::string::npos)
              << synth.error().message;
          ++refused;
          continue;
        }
        SCOPED_TRACE(synth->command);
        const Result<Planner> planner = PlannerOf(*synth);
        ASSERT_TRUE(planner) << planner.error().message;
        const Result<Plan> plan =
            planner->PlanFor(planner->baseline().iteration_time_seconds, {.effort = 0.1});
        ASSERT_TRUE(plan) << plan.error().message;
        EXPECT_GT(plan->saving_percent, 0);
        EXPECT_LT(plan->saving_percent, 60);
      }
    }
  }
  EXPECT_EQ(refused, 2 * 2 * 2);  // Two convolutional networks, on the two A100, both layouts.
}

}  // namespace
}  // namespace perseus
