// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// From a site file to jobs with frontiers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "common/file.h"
#include "fleet/site.h"
#include "fleet/sites.h"
#include "perseus/job.h"
#include "perseus/plan_file.h"
#include "support/mentions.h"

namespace perseus::fleet {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string SampleJob(const std::string& lines) {
  return "power = \"100kW\"\n[[job]]\nname = \"a\"\njob = \"gpt3-1.3b-a100-sxm.toml\"\n" + lines +
         "\n";
}

TEST(LoadSiteTest, AJobHasTheCurveOfItsPlanner) {
  const Result<Site> site =
      Load(SampleJob("dp = 3\nfixed_power = \"1kW\"\nleast_power = 500\nweight = 2\n"
                     "tenant = \"t\"\nmax_slowdown = \"25%\""));
  ASSERT_TRUE(site) << site.error().message;
  ASSERT_THAT(site->power.jobs, SizeIs(1));
  const FleetJob& job = site->power.jobs[0];
  const JobModel& model = *site->models[0];
  EXPECT_EQ(job.name, "a");
  EXPECT_EQ(job.tenant, "t");
  EXPECT_EQ(job.pipelines, 3);
  EXPECT_EQ(job.weight, 2);
  EXPECT_EQ(job.fixed_watts, 1000);
  EXPECT_EQ(job.least_watts, 500);
  EXPECT_EQ(job.full_speed_seconds, model.planner->baseline().iteration_time_seconds);
  EXPECT_EQ(job.slowest_seconds, 1.25 * job.full_speed_seconds);
  EXPECT_DOUBLE_EQ(job.waiting_watts, 4 * 83.64);
  EXPECT_EQ(job.frontier.size(), model.planner->frontier().points.size());
  EXPECT_EQ(job.frontier.back().time_seconds, model.planner->frontier().tstar_seconds);
  EXPECT_TRUE(job.plans.empty());
  EXPECT_EQ(model.gpus, 4);
  EXPECT_EQ(site->power.nodes[0].limit_watts, 100e3);
}

TEST(LoadSiteTest, JobsThatAreAlikeShareAModel) {
  const Result<Site> site = Load(
      "power = 1\n"
      "[[job]]\nname = \"a\"\ncount = 3\njob = \"gpt3-1.3b-a100-sxm.toml\"\ndp = 2\n"
      "[[job]]\nname = \"b\"\njob = \"gpt3-1.3b-a100-sxm.toml\"\nweight = 3\n"
      "[[job]]\nname = \"c\"\njob = \"gpt3-1.3b-a100-sxm.toml\"\nmicrobatches = 8\n"
      "[[job]]\nname = \"d\"\njob = \"gpt3-1.3b-a100-sxm.toml\"\nleave_out = true\n");
  ASSERT_TRUE(site) << site.error().message;
  ASSERT_THAT(site->models, SizeIs(5));
  EXPECT_EQ(site->models[0], site->models[2]);
  EXPECT_EQ(site->models[0], site->models[3]);
  EXPECT_NE(site->models[0], site->models[4]);
  EXPECT_EQ(site->power.jobs[1].pipelines, 2);
  EXPECT_EQ(site->power.jobs[3].pipelines, 1);
}

TEST(LoadSiteTest, AFolderOfPerseusPlanIsTheSameJob) {
  const Result<Site> of_file = Load(SampleJob(""));
  ASSERT_TRUE(of_file) << of_file.error().message;
  const JobModel& model = *of_file->models[0];
  const std::string folder = testing::TempDir() + "perseus_load_site_test";
  const Result<Plan> plan = model.planner->PlanFor(model.full_speed.time_seconds);
  ASSERT_TRUE(plan);
  Result<PlanDocument> document = model.job->Document(*model.planner, *plan);
  ASSERT_TRUE(document);
  document->data_parallel = 5;
  const auto write = [&](const std::string& frontier) {
    EXPECT_TRUE(
        WriteFilesAtomically(folder, {{std::string(kPlanFileName), FormatPlanJson(*document)},
                                      {std::string(kFrontierFileName), frontier}}));
  };
  write(FormatFrontierCsv(model.planner->frontier()));
  const std::string text = "power = 1\n[[job]]\nname = \"a\"\nplan = \"" + folder + "\"\n";
  const Result<Site> of_plan = Load(text);
  ASSERT_TRUE(of_plan) << of_plan.error().message;
  const FleetJob& job = of_plan->power.jobs[0];
  const FleetJob& same = of_file->power.jobs[0];
  EXPECT_EQ(job.pipelines, 5);
  EXPECT_EQ(Load(text + "dp = 2\n")->power.jobs[0].pipelines, 2);
  EXPECT_EQ(job.full_speed_seconds, same.full_speed_seconds);
  EXPECT_DOUBLE_EQ(job.waiting_watts, same.waiting_watts);
  ASSERT_EQ(job.frontier.size(), same.frontier.size());
  for (std::size_t k = 0; k < job.frontier.size(); ++k) {
    EXPECT_EQ(job.frontier[k].time_seconds, same.frontier[k].time_seconds);
    EXPECT_EQ(job.frontier[k].energy_joules, same.frontier[k].energy_joules);
  }
  EXPECT_FALSE(of_plan->models[0]->planner);
  // Such a job has no profile to replay stragglers with.
  const Result<Site> late = Load(text + "stragglers = \"slow=1.2\"\n");
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, Mentions("examples/s.toml:2:1:", "'a'", "'stragglers'"));

  const std::string csv = folder + "/frontier.csv";
  for (const auto& [frontier, place] :
       {std::pair("time,energy\n", ":1:1:"),
        {"iteration_time_s,energy_j,slope_w\n", ":2:1:"},
        {"iteration_time_s,energy_j,slope_w\n1,x,0\n", ":2:3:"},
        {"iteration_time_s,energy_j,slope_w\n1,-2,0\n", ":2:3:"},
        {"iteration_time_s,energy_j,slope_w\n1\n", ":2:1:"},
        {"iteration_time_s,energy_j,slope_w\n2,2,0\n1,3,0\n", ":3:1:"}}) {
    write(frontier);
    const Result<Site> bad = Load(text);
    ASSERT_FALSE(bad) << frontier;
    EXPECT_THAT(bad.error().message, HasSubstr(csv + place)) << frontier;
  }
  std::filesystem::remove_all(folder);
  const Result<Site> none = Load(text);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, Mentions("examples/s.toml:2:1:", "'a'", folder + "/plan.json"));
}

TEST(LoadSiteTest, FaultsOfAJobHaveTheirPlace) {
  const auto fault = [](const std::string& lines) {
    const Result<Site> site = Load("power = 1\n[[job]]\nname = \"a\"\n" + lines);
    return site ? "no fault" : site.error().message;
  };
  EXPECT_THAT(fault("profile = \"none.csv\"\nschedule = \"1f1b\"\nmicrobatches = 4\n"
                    "blocking_power = 75\n"),
              Mentions("examples/s.toml:4:11:", "examples/none.csv"));
  EXPECT_THAT(fault("profile = \"gpt3-1.3b-a100-sxm.csv\"\n"),
              Mentions("examples/s.toml:2:1:", "'a'", "schedule"));
  EXPECT_THAT(fault("job = \"gpt3-1.3b-a100-sxm.toml\"\nstages = 8\n"),
              Mentions("examples/s.toml:5:10:", "'stages'"));
  EXPECT_THAT(fault("job = \"gpt3-1.3b-a100-sxm.toml\"\nstragglers = \"slow=1.2,rank=9\"\n"),
              Mentions("examples/s.toml:2:1:", "'a'", "9"));
}

// The emulator's own figures of a pipeline that is slow from the start.
TEST(LoadSiteTest, AStragglerIsALatePipeline) {
  const Result<Site> site = Load(
      SampleJob("dp = 4\nstragglers = [\"slow=1.5,pipeline=2\", \"slow=2,pipeline=3,from=10\"]"));
  ASSERT_TRUE(site) << site.error().message;
  const FleetJob& job = site->power.jobs[0];
  ASSERT_THAT(job.late, SizeIs(1));
  const double fastest = job.frontier.front().time_seconds;
  EXPECT_NEAR(job.late[0].point.time_seconds, 1.5 * fastest, 1e-6);
  // The same power for longer: all of it computes and waits half as long again.
  EXPECT_NEAR(job.late[0].point.energy_joules, 1.5 * job.frontier.front().energy_joules,
              0.01 * job.frontier.front().energy_joules);
}

TEST(LoadSiteTest, ConditionsAreNoted) {
  const Result<Site> site = Load(SampleJob("[job.conditions]\nnoise = \"1%\""));
  ASSERT_TRUE(site) << site.error().message;
  bool noted = false;
  for (const Note& note : site->notes) noted = noted || StandsIn(note.text, "conditions");
  EXPECT_TRUE(noted);
}

}  // namespace
}  // namespace perseus::fleet
