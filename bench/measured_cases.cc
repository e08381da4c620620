// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measured_cases.h"

#include <cstdlib>
#include <utility>

#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/pipeline.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"

namespace perseus::bench {

Result<Planner> MeasuredPlanner(const std::string& model, int microbatches) {
  if (model.ends_with(".toml")) {
    JobFile shape;
    shape.microbatches = microbatches;
    const auto job = Job::Load(model, shape);
    if (!job) return tl::unexpected(job.error());
    return job->MakePlanner();
  }
  const bool gpt3 = model == "gpt3";
  if (!gpt3 && model != "bloom") {
    return InvalidInput("the model is '" + model + "'; expected gpt3, bloom or a job file");
  }
  const char* const data = std::getenv("PERSEUS_SHARED_DATA");
  auto profile = ReadProfile(std::string(data == nullptr ? "../shared/data" : data) +
                             "/sosp24/sosp24_data/emulation/stage_profile/" +
                             (gpt3 ? "gpt3-175b+a100_sxm_bf16.csv" : "bloom+a40_bf16.csv"));
  if (!profile) return tl::unexpected(profile.error());
  ScheduleSpec shape;
  shape.name = "1f1b";
  shape.num_stages = 8;
  shape.num_microbatches = microbatches;
  auto schedule = BuildSchedule(shape);
  if (!schedule) return tl::unexpected(schedule.error());
  auto dag = BuildDag(*schedule, {});
  if (!dag) return tl::unexpected(dag.error());
  CostSpec costs;
  costs.blocking_power_watts = {gpt3 ? 83.64 : 70.38};
  costs.tensor_parallel = 8;
  auto pipeline = CostPipeline(*profile, *std::move(dag), costs);
  if (!pipeline) return tl::unexpected(pipeline.error());
  return Planner::Create(*std::move(pipeline), {});
}

}  // namespace perseus::bench
