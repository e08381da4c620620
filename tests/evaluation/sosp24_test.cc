// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/sosp24.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "evaluation/planning.h"
#include "evaluation/protocol.h"
#include "evaluation/sosp24_artifact.h"
#include "perseus/emulator.h"
#include "perseus/policy.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using sosp24::EvaluateSosp24;
using sosp24::Sosp24Emulation;
using sosp24::Sosp24Evaluation;
using sosp24::Sosp24Job;
using sosp24::Sosp24JobStraggler;
using sosp24::Sosp24Options;
using sosp24::Sosp24Straggler;

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

using Matching = testing::Matcher<const std::string&>;

Sosp24Options OptionsOf(const TinyArtifact& artifact) {
  Sosp24Options options;
  options.directory = artifact.Root();
  options.derived_directory = artifact.Derived();
  options.effort = 0.01;
  return options;
}

Sosp24Evaluation Evaluated(const Sosp24Options& options) {
  auto evaluation = EvaluateSosp24(options);
  EXPECT_TRUE(evaluation.has_value()) << evaluation.error().message;
  return evaluation.value_or(Sosp24Evaluation{});
}

// 12 microbatches on two stages: at maximum clocks 12 x 3 s and a bubble of 3 s
// a stage; computing takes 2 x 12 x 900 J x 8 GPUs, waiting 3 s on 16 GPUs.
TEST(Sosp24Test, RecomputesAnEmulatedCell) {
  const TinyArtifact artifact;
  const Sosp24Evaluation evaluation = Evaluated(OptionsOf(artifact));
  ASSERT_THAT(evaluation.emulations, SizeIs(1));
  const Sosp24Emulation& cell = evaluation.emulations[0];
  EXPECT_EQ(cell.model, "gpt3-175b");
  EXPECT_EQ(cell.device, "a40");
  EXPECT_EQ(cell.pipelines, 128);
  EXPECT_EQ(cell.gpus, 128 * 2 * 8);
  EXPECT_DOUBLE_EQ(cell.published_seconds, 39.5);
  const double baseline = 2 * 12 * 900 * 8 + 70.38 * 16 * (39.5 - 36);
  EXPECT_NEAR(cell.published_baseline_joules, baseline, 1e-6);
  EXPECT_DOUBLE_EQ(cell.published_joules, 2200 * 80);
  EXPECT_NEAR(cell.published_saving_percent, 100 * (1 - 176000 / baseline), 1e-9);

  EXPECT_DOUBLE_EQ(cell.max_clock_seconds, 39);
  EXPECT_DOUBLE_EQ(cell.fastest_seconds, 39);
  EXPECT_LE(cell.at_max_clock.iteration_time_seconds, 39);
  EXPECT_LE(cell.at_max_clock_saving_percent, cell.bound_saving_percent + 1e-9);
  EXPECT_GT(cell.at_max_clock_saving_percent, 0);
  ASSERT_TRUE(cell.at_published.has_value());
  EXPECT_LE(cell.at_published->iteration_time_seconds, 39.5);
  EXPECT_LE(cell.at_published_saving_percent, cell.bound_at_published_saving_percent + 1e-9);
  EXPECT_GE(cell.at_published_saving_percent, cell.at_max_clock_saving_percent);
  EXPECT_LT(cell.frontier_cpu_seconds, 0);
  EXPECT_DOUBLE_EQ(cell.envpipe_published_joules, 175000);
  EXPECT_GT(cell.envpipe_joules, 0);
  EXPECT_LE(cell.envpipe_seconds, 39 * (1 + 1e-12));
}

TEST(Sosp24Test, SweepsTheSlowdowns) {
  const TinyArtifact artifact;
  const Sosp24Evaluation evaluation = Evaluated(OptionsOf(artifact));
  ASSERT_THAT(evaluation.stragglers, SizeIs(50));
  const double waiting = 70.38 * 16;
  const double baseline = evaluation.emulations[0].published_baseline_joules;
  for (const Sosp24Straggler& row : evaluation.stragglers) {
    EXPECT_TRUE(row.rules_are_brute_force_best) << row.slowdown;
    EXPECT_LE(row.published_job_percent, row.effective_job_percent + 1e-9) << row.slowdown;
    EXPECT_LE(row.ours_job_percent, row.bound_job_percent + 1e-9) << row.slowdown;
    EXPECT_EQ(row.bound_max_clock_job_percent.has_value(), row.slowdown == 1.2);
  }
  // 1.2 x 39.5 = 47.4: within lie all points; the one of least energy is at 44,
  // of least effective energy, with 1126 W of waiting, at 46.
  const Sosp24Straggler& row = evaluation.stragglers[19];
  EXPECT_EQ(row.slowdown, 1.2);
  EXPECT_NEAR(row.published_time_over_t, 44 / 39.5, 1e-12);
  EXPECT_NEAR(row.effective_time_over_t, 46 / 39.5, 1e-12);
  const double healthy = baseline + waiting * (47.4 - 39.5);
  EXPECT_NEAR(row.published_pipeline_percent,
              100 * (1 - (2080 * 80 + waiting * (47.4 - 44)) / healthy), 1e-9);
  const double job = 127 * healthy + 1.2 * baseline;
  EXPECT_NEAR(row.effective_job_percent,
              100 * (1 - (127 * (2100 * 80 + waiting * (47.4 - 46)) + 1.2 * 176000) / job), 1e-9);
  EXPECT_NEAR(row.envpipe_job_percent,
              100 * (1 - (127 * (175000 + waiting * 7.4) + 1.2 * 175000) / job), 1e-9);
  EXPECT_NEAR(row.envpipe_artifact_job_percent,
              100 * (1 - (128.2 * 175000 + 129 * waiting * 7.9) / job), 1e-9);
  EXPECT_NEAR(row.envpipe_artifact_pipeline_percent, 100 * (1 - (175000 + waiting * 7.9) / healthy),
              1e-9);
}

// The evaluation adds up a job by the paper's formulas, the emulator by its
// iterations: at a T that plans can realise they say the same.
TEST(Sosp24Test, TheEmulatorSavesAsMuchAtMaximumClocks) {
  const TinyArtifact artifact;
  const Sosp24Options options = OptionsOf(artifact);
  const Sosp24Evaluation evaluation = Evaluated(options);
  const Sosp24Emulation& cell = evaluation.emulations.at(0);
  const auto profile =
      sosp24::ReadStageProfile(artifact.Root() + "/emulation/stage_profile/gpt3-175b+a40_bf16.csv");
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  auto pipeline = sosp24::PipelineFor(*profile, 12, sosp24::kTensorParallel, 70.38);
  ASSERT_TRUE(pipeline.has_value()) << pipeline.error().message;
  const auto planner = Planner::Create(*std::move(pipeline), {});
  ASSERT_TRUE(planner.has_value()) << planner.error().message;

  EmulationSpec spec;
  spec.pipelines = cell.pipelines;
  spec.iterations = 2;
  spec.target_seconds = cell.max_clock_seconds;
  Straggler straggler;
  straggler.value = 1.2;
  spec.stragglers = {straggler};
  double joules[2] = {};
  for (const bool ours : {false, true}) {
    PolicySpec policy_spec;
    policy_spec.name = ours ? "perseus" : "max-clocks";
    policy_spec.effort = sosp24::kHeadlineEffort * options.effort;
    const auto policy = MakePolicy(policy_spec, *planner);
    ASSERT_TRUE(policy.has_value()) << policy.error().message;
    const auto emulation = Emulate(*planner, **policy, spec);
    ASSERT_TRUE(emulation.has_value()) << emulation.error().message;
    EXPECT_NEAR(emulation->time_seconds, 2 * 1.2 * cell.max_clock_seconds, 1e-9);
    joules[ours ? 1 : 0] = emulation->energy.total_joules();
  }
  EXPECT_NEAR(100 * (1 - joules[1] / joules[0]),
              evaluation.stragglers.at(19).ours_max_clock_job_percent.value(), 1e-6);
}

TEST(Sosp24Test, RecomputesARealJob) {
  const TinyArtifact artifact;
  const Sosp24Evaluation evaluation = Evaluated(OptionsOf(artifact));
  ASSERT_THAT(evaluation.jobs, SizeIs(1));
  const Sosp24Job& job = evaluation.jobs[0];
  EXPECT_EQ(job.gpu, "A40");
  EXPECT_EQ(job.model, "tiny");
  EXPECT_EQ(job.layout, "dp1+pp2+tp1");
  EXPECT_DOUBLE_EQ(job.baseline.iteration_time_seconds, 10);
  EXPECT_DOUBLE_EQ(job.baseline.energy_joules, 1000);
  EXPECT_THAT(job.zeus_global, SizeIs(2));
  EXPECT_THAT(job.zeus_per_stage, SizeIs(1));
  ASSERT_THAT(job.perseus, SizeIs(3));  // Plan 10 comes after plan 3.
  EXPECT_DOUBLE_EQ(job.perseus[2].iteration_time_seconds, 10.2);
  EXPECT_FALSE(job.summarised);
  EXPECT_NEAR(job.perseus_saving_percent.value(), 10, 1e-9);
  EXPECT_NEAR(job.perseus_slowdown_percent.value(), 2, 1e-9);
  EXPECT_NEAR(job.envpipe_saving_percent.value(), 8, 1e-9);
  EXPECT_EQ(job.envpipe_slowdown_percent.value(), 0);  // It is faster.

  EXPECT_TRUE(job.has_derived);
  EXPECT_DOUBLE_EQ(job.derived_baseline_seconds, 9);
  EXPECT_FALSE(job.ours_frontier.empty());
  // By hand: F0 1, F1 1.2 | 1: F0 1.2, B0 2, F1 1, B1 2 from 1 to 7.2 | B0 2 from
  // 4.2, B1 2.4 from 7.2 to 9.6.
  ASSERT_THAT(job.replay_error_percent, SizeIs(3));
  EXPECT_NEAR(job.replay_error_percent[0], 100 * (9.6 / 12 - 1), 1e-9);
  EXPECT_NEAR(job.replay_error_percent[2], 100 * (9.6 / 10.2 - 1), 1e-9);
  // 540 J and 580 J of computing; 12.8 of 2 x 9.6 s are not waited.
  const double joules = 540 + 580 + 70.38 * (2 * 9.6 - 12.8);
  ASSERT_THAT(job.replay_energy_error_percent, SizeIs(3));
  EXPECT_NEAR(job.replay_energy_error_percent[0], 100 * (joules / 700 - 1), 1e-9);
  EXPECT_NEAR(job.replay_energy_error_percent[2], 100 * (joules / 900 - 1), 1e-9);
  const double baseline = 2 * (2 * 100 + 2 * 200) + 70.38 * (2 * 9 - 12);
  EXPECT_NEAR(job.replay_saving_percent.value(), 100 * (1 - joules / baseline), 1e-9);
  EXPECT_NEAR(job.replay_slowdown_percent.value(), 100 * (9.6 / 9 - 1), 1e-9);
  EXPECT_LE(job.ours.saving_percent, job.ours_bound_percent + 1e-9);
}

// The layout dp2+pp2+tp2 of the tiny job: eight ranks, whose plans are in a
// folder of their own kind that has no plans of warm-up.
void PutThreeDimensions(const TinyArtifact& artifact) {
  artifact.Put("sosp24_data/workloads/dp2+pp2+tp2/models_A40.csv",
               "model,partition_method,dp,tp,pp,microbatch_size,num_microbatches\n"
               "tiny,\"custom:0,1,2\",2,2,2,4,2\n");
  artifact.Put("sosp24_data/zeus/csv/A40/zeus_global.csv",
               "model_name,partition_method,batch_size,dp,tp,pp,microbatch_size,num_microbatches,"
               "power_limit_0,time,energy\n"
               "tiny,\"custom:0,1,2\",8,1,1,2,4,2,300,1,1\n"
               "tiny,\"custom:0,1,2\",8,2,2,2,4,2,300,10,8000\n");
  const std::string folder =
      "sosp24_data/perseus/A40/dp2+pp2+tp2/"
      "merak+tiny+custom:0,1,2+dp2+pp2+tp2+mbs4+nmb2+PointSolution3D/";
  for (int plan = 0; plan < 2; ++plan) {
    std::string measured;
    std::string clocks;
    for (int rank = 0; rank < 8; ++rank) {
      measured += fmt::format(R"({}{{"rank": {}, "iter_time": [99, 99, {}], )"
                              R"("iter_energy": [1, 1, {}]}})",
                              rank == 0 ? "" : ", ", rank, rank == 5 ? 11.0 - plan : 9.0,
                              plan == 0 ? 800 : 900);
      clocks +=
          fmt::format(R"({}{{"rank": {}, "power_states": [{}]}})", rank == 0 ? "" : ", ", rank,
                      rank < 4 ? "1, 1000, 1, 1, 800, 1, 1000, 1, 800, 1, 1, 1"
                               : "1, 1, 800, 1000, 1, 1, 1000, 1000, 1, 1, 1, 1");
    }
    artifact.Put(fmt::format("{}{}.prof.json", folder, plan), "[" + measured + "]");
    artifact.Put(fmt::format("{}{}.sched.json", folder, plan), "[" + clocks + "]");
  }
  artifact.Put("derived/A40_tiny_dp2_tp2_pp2_mbs4_nmb2.csv",
               "stage,instruction,frequency,time,energy\n"
               "0,forward,1000,1,100\n0,forward,800,1.2,80\n"
               "0,backward,1000,2,200\n0,backward,800,2.4,160\n"
               "1,forward,1000,1,100\n1,forward,800,1.2,80\n"
               "1,backward,1000,2,200\n1,backward,800,2.4,160\n");
}

TEST(Sosp24Test, RecomputesARealJobOfThreeDimensions) {
  const TinyArtifact artifact;
  artifact.Remove("sosp24_data/emulation");
  PutThreeDimensions(artifact);
  const Sosp24Evaluation evaluation = Evaluated(OptionsOf(artifact));
  const auto job = std::find_if(evaluation.jobs.begin(), evaluation.jobs.end(),
                                [](const Sosp24Job& each) { return each.layout == "dp2+pp2+tp2"; });
  ASSERT_NE(job, evaluation.jobs.end());
  EXPECT_DOUBLE_EQ(job->baseline.energy_joules, 8000);
  ASSERT_THAT(job->perseus, SizeIs(2));
  EXPECT_DOUBLE_EQ(job->perseus[0].iteration_time_seconds, 11);  // The slowest rank.
  EXPECT_DOUBLE_EQ(job->perseus[1].energy_joules, 7200);         // All ranks.
  EXPECT_NEAR(job->perseus_saving_percent.value(), 10, 1e-9);

  // Two pipelines of two GPUs a stage.
  const double joules = 4 * (540 + 580 + 70.38 * (2 * 9.6 - 12.8));
  const double baseline = 4 * (1200 + 70.38 * 6);
  EXPECT_NEAR(job->derived_baseline_joules, baseline, 1e-9);
  ASSERT_THAT(job->replay_energy_error_percent, SizeIs(2));
  EXPECT_NEAR(job->replay_energy_error_percent[1], 100 * (joules / 7200 - 1), 1e-9);
  EXPECT_NEAR(job->replay_saving_percent.value(), 100 * (1 - joules / baseline), 1e-9);
  EXPECT_GT(job->ours.saving_percent, 0);
  EXPECT_LE(job->ours.saving_percent, job->ours_bound_percent + 1e-9);
  EXPECT_LT(job->ours_bound_percent, job->ours.saving_percent + 5);
  ASSERT_FALSE(job->ours_frontier.empty());
  EXPECT_NEAR(job->ours_frontier.front().energy_joules, baseline, 0.1 * baseline);

  // Waiting counts for all eight GPUs.
  for (const Sosp24JobStraggler& row : evaluation.job_stragglers) {
    if (row.slowdown != 1.2 || !row.perseus_percent) continue;
    const double watts = 8 * 70.38;
    EXPECT_NEAR(*row.perseus_percent, 100 * (1 - (6400 + watts) / (8000 + 2 * watts)), 1e-9);
  }
  EXPECT_THAT(evaluation.job_stragglers, SizeIs(12));
}

TEST(Sosp24Test, RecomputesARealJobWithAStraggler) {
  const TinyArtifact artifact;
  const Sosp24Evaluation evaluation = Evaluated(OptionsOf(artifact));
  ASSERT_THAT(evaluation.job_stragglers, SizeIs(6));
  const double watts = 2 * 70.38;
  const auto saving = [&](double until, double seconds, double joules) {
    return 100 * (1 - (joules + (until - seconds) * watts) / (1000 + (until - 10) * watts));
  };
  // Iterations of 10.5, 11 and 12 s: the slowest plan in time has 10.2, 11, 12 s.
  EXPECT_NEAR(evaluation.job_stragglers[0].perseus_percent.value(), saving(10.5, 10.2, 900), 1e-9);
  EXPECT_NEAR(evaluation.job_stragglers[1].perseus_percent.value(), saving(11, 11, 750), 1e-9);
  EXPECT_NEAR(evaluation.job_stragglers[2].perseus_percent.value(), saving(12, 12, 700), 1e-9);
  EXPECT_NEAR(evaluation.job_stragglers[2].envpipe_percent.value(), saving(12, 9.9, 920), 1e-9);
  for (const Sosp24JobStraggler& row : evaluation.job_stragglers) {
    EXPECT_GT(row.ours_percent.value(), 0) << row.slowdown;
  }
}

TEST(Sosp24Test, TakesTheParentFolderAndIsDeterministic) {
  const TinyArtifact artifact;
  Sosp24Options options = OptionsOf(artifact);
  const Sosp24Evaluation once = Evaluated(options);
  options.directory = artifact.Parent();
  std::vector<std::string> progress;
  double clock = 0;
  options.progress = [&](const std::string& what) { progress.push_back(what); };
  options.cpu_seconds = [&] { return clock += 1; };
  const Sosp24Evaluation again = Evaluated(options);
  EXPECT_EQ(again.missing, once.missing);
  ASSERT_THAT(again.stragglers, SizeIs(once.stragglers.size()));
  for (std::size_t i = 0; i < once.stragglers.size(); ++i) {
    EXPECT_EQ(again.stragglers[i].ours_job_percent, once.stragglers[i].ours_job_percent);
  }
  ASSERT_THAT(again.emulations, SizeIs(1));
  EXPECT_EQ(again.emulations[0].frontier_cpu_seconds, 1);
  EXPECT_EQ(again.emulations[0].plan_cpu_seconds, 1);
  EXPECT_THAT(progress, Contains("Table 6: gpt3-175b, A40, 12 microbatches"));
}

TEST(Sosp24Test, NamesWhatIsMissingAndSkipsIt) {
  const TinyArtifact artifact;
  const Sosp24Options options = OptionsOf(artifact);
  EXPECT_THAT(Evaluated(options).missing,
              testing::IsSupersetOf<Matching>({Mentions("gpt3-175b", "a40:", "24", "48", "96"),
                                               Mentions("a100_sxm", "12", "24", "48", "96"),
                                               Mentions("A40", "dp1+pp2+tp1)", "EnvPipe")}));

  artifact.Remove("sosp24_data/envpipe");
  artifact.Remove("sosp24_data/emulation/envpipe_result.csv");
  artifact.Remove("sosp24_data/zeus");
  artifact.Remove(TinyArtifact::RunFile("perseus", "3.sched.json"));
  const Sosp24Evaluation less = Evaluated(options);
  EXPECT_THAT(less.missing,
              testing::IsSupersetOf<Matching>(
                  {Mentions("emulation/envpipe_result.csv,"),
                   Mentions("A40", "dp1+pp2+tp1)", "EnvPipe"), Mentions("zeus_global.csv"),
                   Mentions("zeus_local.csv", "ZeusPerStage"), Mentions("N.sched.json", "3")}));
  ASSERT_THAT(less.jobs, SizeIs(1));
  EXPECT_FALSE(less.jobs[0].perseus_saving_percent.has_value());
  EXPECT_THAT(less.jobs[0].replay_error_percent, SizeIs(2));
  EXPECT_THAT(less.jobs[0].perseus, SizeIs(3));
  EXPECT_EQ(less.emulations.at(0).envpipe_published_joules, 0);
  EXPECT_FALSE(less.job_stragglers.at(0).perseus_percent.has_value());
  EXPECT_TRUE(less.job_stragglers.at(0).ours_percent.has_value());

  artifact.Remove("sosp24_data/emulation/stage_profile");
  const Sosp24Evaluation jobs_only = Evaluated(options);
  EXPECT_THAT(jobs_only.emulations, SizeIs(0));
  EXPECT_THAT(jobs_only.missing, Contains(Mentions("gpt3-175b+a40_bf16.csv")));
}

TEST(Sosp24Test, NamesSlowdownsAtWhichNoMeasuredPlanIsInTime) {
  const TinyArtifact artifact;
  artifact.Remove(TinyArtifact::RunFile("perseus", "10.prof.json"));  // 11 s is left.
  const Sosp24Evaluation evaluation = Evaluated(OptionsOf(artifact));
  EXPECT_FALSE(evaluation.job_stragglers.at(0).perseus_percent.has_value());
  EXPECT_TRUE(evaluation.job_stragglers.at(1).perseus_percent.has_value());
  EXPECT_THAT(evaluation.missing, Contains(Mentions("10.prof.json")));
  EXPECT_THAT(evaluation.missing, Contains(Mentions("1.05")));
}

TEST(Sosp24Test, TakesSummariesWhereRawRunsAreAbsent) {
  const TinyArtifact artifact;
  artifact.Remove("sosp24_data/perseus");
  artifact.Put("measured/A40_tiny_dp1_tp1_pp2_mbs4_nmb2.csv",
               "plan_index,iteration_time_s,iteration_energy_J\n"
               "0,9,5\n1,9,5\n3,10.1,800\n2,12,600\n");
  const Sosp24Evaluation evaluation = Evaluated(OptionsOf(artifact));
  ASSERT_THAT(evaluation.jobs, SizeIs(1));
  EXPECT_TRUE(evaluation.jobs[0].summarised);
  ASSERT_THAT(evaluation.jobs[0].perseus, SizeIs(2));
  EXPECT_DOUBLE_EQ(evaluation.jobs[0].perseus[0].energy_joules, 600);
  EXPECT_NEAR(evaluation.jobs[0].perseus_saving_percent.value(), 20, 1e-9);
  EXPECT_THAT(evaluation.missing, Contains(Mentions("absent,")));
}

TEST(Sosp24Test, WorksWithoutDerivedProfiles) {
  const TinyArtifact artifact;
  Sosp24Options options = OptionsOf(artifact);
  options.derived_directory.clear();
  const Sosp24Evaluation evaluation = Evaluated(options);
  EXPECT_FALSE(evaluation.jobs.at(0).has_derived);
  EXPECT_FALSE(evaluation.job_stragglers.at(0).ours_percent.has_value());
  EXPECT_THAT(evaluation.missing, Contains(Mentions("derived", "Tables")));
}

TEST(Sosp24Test, LeavesOutClocksThatDoNotFit) {
  const TinyArtifact artifact;
  artifact.Put(TinyArtifact::RunFile("perseus", "2.sched.json"),
               R"([{"rank": 0, "power_states": [1000]}, {"rank": 1, "power_states": [1000]}])");
  const Sosp24Evaluation evaluation = Evaluated(OptionsOf(artifact));
  EXPECT_THAT(evaluation.missing, Contains(Mentions("2", "1F1B")));
  EXPECT_THAT(evaluation.jobs.at(0).replay_error_percent, SizeIs(2));
}

struct Breakage {
  std::string file;
  std::string bytes;
  std::string message;
};

TEST(Sosp24Test, SaysWhatIsWrongWithAFile) {
  const std::string frontier =
      "sosp24_data/emulation/iteration_time_energy/a40/gpt3-175b_bf16_mb12.csv";
  const std::string run = TinyArtifact::RunFile("perseus", "3.prof.json");
  for (const Breakage& breakage : std::vector<Breakage>{
           {frontier, "", "mb12.csv: is empty"},
           {frontier, "time,energy\n", "mb12.csv: has no rows"},
           {frontier, "time,joules\n1,2\n", "mb12.csv:1:1: the header has no column 'energy'"},
           {frontier, "time,energy\n1,2\n1\n", "mb12.csv:3:1: the row has 1 cells, expected 2"},
           {frontier, "time,energy\nnan,2\n", "mb12.csv:2:1: time 'nan' is not a finite number"},
           {frontier, "time,energy\n0,2\n", "mb12.csv:2:1: time '0' is zero"},
           {frontier, "time,energy\n1,1e300\n", "mb12.csv:2:3: energy '1e300' is impossibly"},
           {frontier, "time,energy\n1,\"2\n", "mb12.csv:2:3: "},
           {"sosp24_data/emulation/stage_profile/gpt3-175b+a40_bf16.csv", "stage\n",
            "gpt3-175b+a40_bf16.csv:1:"},
           {"sosp24_data/emulation/envpipe_result.csv",
            "model,device,num_microbatches,iteration_time,energy\nx,a40,0,1,1\n",
            "envpipe_result.csv:2:7: num_microbatches is 0"},
           {"sosp24_data/workloads/dp1+pp2+tp1/models_A40.csv",
            "model,partition_method,dp,tp,pp,microbatch_size,num_microbatches\nm,p,1,1,-2,1,1\n",
            "models_A40.csv:2:9: pp '-2' is negative"},
           {"sosp24_data/zeus/csv/A40/zeus_global.csv", "model_name\ntiny\n",
            "zeus_global.csv:1:1: the header has no column"},
           {run, "", "3.prof.json"},
           {run, "[]", "expected at least one rank"},
           {run, "{}", "expected an array"},
           {run, R"([{"iter_time": [1, 1], "iter_energy": [1, 1]}])", "more than 2 iterations"},
           {run, R"([{"iter_time": [1, 1, 1], "iter_energy": [1, 1]}])", "expected 3 iterations"},
           {run, R"([{"iter_time": [1, 1, -1], "iter_energy": [1, 1, 1]}])", "iter_time[2]"},
           {run, R"([{"iter_time": [1, 1, 1e999], "iter_energy": [1, 1, 1]}])", "3.prof.json:1"},
           {run, "[[[[", "3.prof.json:1"},
           {TinyArtifact::RunFile("perseus", "3.sched.json"), R"([{"rank": 5}])",
            "3.sched.json:1:11: [0].rank"},
           {TinyArtifact::RunFile("perseus", "3.sched.json"),
            R"([{"rank": 0, "power_states": [1]}, {"rank": 0, "power_states": [1]}])",
            "found rank 0 again"},
           {"derived/A40_tiny_dp1_tp1_pp2_mbs4_nmb2.csv",
            "stage,instruction,frequency,time,energy\n0,forward,1000,1,100\n0,backward,1000,1,"
            "100\n",
            "the profile has 1 stages, its name says 2"},
       }) {
    const TinyArtifact artifact;
    if (breakage.file.find("emulation") == std::string::npos) {
      artifact.Remove("sosp24_data/emulation");  // Need not be planned each time.
    }
    artifact.Put(breakage.file, breakage.bytes);
    const auto evaluation = EvaluateSosp24(OptionsOf(artifact));
    ASSERT_FALSE(evaluation.has_value()) << breakage.message;
    EXPECT_THAT(evaluation.error().message, HasSubstr(breakage.message));
    EXPECT_THAT(evaluation.error().message, Not(HasSubstr("\n")));
  }
}

TEST(Sosp24Test, RefusesWhatIsNoArtifact) {
  const TemporaryDirectory empty;
  Sosp24Options options;
  options.directory = empty.Path();
  EXPECT_THAT(EvaluateSosp24(options).error().message, Mentions("holds"));
  options.directory = empty.Path("nowhere");
  EXPECT_THAT(EvaluateSosp24(options).error().message, Mentions("folder;"));
  const TinyArtifact artifact;
  options = OptionsOf(artifact);
  options.derived_directory = empty.Path("nowhere");
  EXPECT_THAT(EvaluateSosp24(options).error().message, Mentions("derived"));
  options = OptionsOf(artifact);
  options.effort = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(EvaluateSosp24(options).error().message, Mentions("effort", "nan"));
}

// Names that the artifact has none of are passed over.
TEST(Sosp24Test, PassesOverForeignNames) {
  const TinyArtifact artifact;
  const std::string folder = "sosp24_data/emulation/iteration_time_energy/";
  artifact.Put(folder + "a40/notes.txt", "x");
  artifact.Put(folder + "a40/gpt3-175b_bf16_mb7.csv", "time,energy\n1,1\n");
  artifact.Put(folder + "h100/gpt3-175b_bf16_mb12.csv", "time,energy\n1,1\n");
  artifact.Put("sosp24_data/emulation/stage_profile/gpt3-175b+h100_bf16.csv", "x");
  artifact.Put("sosp24_data/perseus/A40/dp1+pp2+tp1/notes/0.prof.json", "x");
  artifact.Put(TinyArtifact::RunFile("perseus", "x.prof.json"), "x");
  artifact.Put("sosp24_data/workloads/dp1+pp2+tp1/models_H100.csv",
               "model,partition_method,dp,tp,pp,microbatch_size,num_microbatches\nm,p,1,1,2,1,1\n");
  const Sosp24Evaluation evaluation = Evaluated(OptionsOf(artifact));
  EXPECT_THAT(evaluation.emulations, SizeIs(1));
  EXPECT_THAT(evaluation.jobs, SizeIs(1));
  EXPECT_THAT(evaluation.missing,
              testing::IsSupersetOf<Matching>({Mentions("7", "1536"), Mentions("h100", "12"),
                                               Mentions("H100", "dp1+pp2+tp1)")}));
}

}  // namespace
}  // namespace perseus
