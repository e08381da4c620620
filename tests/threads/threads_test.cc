// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What the public headers promise to programs with threads: values may be
// shared, functions keep no state, distinct planners are independent.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/file.h"
#include "common/temporary_directory.h"
#include "perseus/costed_pipeline.h"
#include "perseus/frontier.h"
#include "perseus/job_file.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"

namespace perseus {
namespace {

constexpr int kThreads = 4;

std::string ProfileText() {
  std::string text = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < 3; ++stage) {
    for (const char* row :
         {"forward,1410,0.050,20.0", "forward,1200,0.056,17.5", "forward,900,0.071,15.5",
          "backward,1410,0.101,41.0", "backward,1200,0.114,36.0", "backward,900,0.142,32.0"}) {
      text += std::to_string(stage) + ',' + row + '\n';
    }
  }
  return text;
}

// From shared input to every file that a plan is written to.
std::string PlanBytes(const Profile& profile, const PipelineDag& dag, double factor) {
  CostSpec costs;
  costs.blocking_power_watts = {80};
  Result<CostedPipeline> pipeline = CostPipeline(profile, dag, costs);
  if (!pipeline) return pipeline.error().message;
  Result<Planner> planner = Planner::Create(*std::move(pipeline), {});
  if (!planner) return planner.error().message;
  const double seconds = factor * planner->baseline().iteration_time_seconds;
  const Result<Plan> plan = planner->PlanFor(seconds, {.effort = 0.02});
  if (!plan) return plan.error().message;
  const PlanDocument document = *MakePlanDocument(*planner, *plan, {});
  const std::string json = FormatPlanJson(document);
  const Result<PlanDocument> again = ParsePlanJson(json, "plan.json");
  if (!again) return again.error().message;
  return FormatFrontierCsv(planner->frontier()) + json + FormatPlanJson(*again);
}

// Runs `work` in several threads at once and once alone: the same results.
template <typename Work>
void ExpectSameInThreads(const Work& work) {
  std::vector<std::string> results(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&work, &result = results[i], i] { result = work(i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(results[i], work(i)) << "thread " << i;
}

TEST(Threads, PlanFromOneProfileAndOneDag) {
  const Result<Profile> profile = ParseProfile(ProfileText(), "profile.csv");
  ASSERT_TRUE(profile) << profile.error().message;
  const Result<Schedule> schedule =
      BuildSchedule({.name = "1f1b", .num_stages = 3, .num_microbatches = 4});
  ASSERT_TRUE(schedule) << schedule.error().message;
  const Result<PipelineDag> dag = BuildDag(*schedule, {});
  ASSERT_TRUE(dag) << dag.error().message;
  ASSERT_NE(PlanBytes(*profile, *dag, 1.05).find("\"ranks\""), std::string::npos);
  ExpectSameInThreads([&](int i) { return PlanBytes(*profile, *dag, 1 + 0.02 * i); });
}

TEST(Threads, ReadTheirOwnInput) {
  ExpectSameInThreads([](int i) {
    const Result<Profile> profile = ParseProfile(ProfileText(), "profile.csv");
    const Result<JobFile> job =
        ParseJobFile("profile = \"profile.csv\"\nschedule = \"1f1b\"\nmicrobatches = 8\n",
                     "job.toml", JobFileFormat::kToml);
    const Result<Schedule> schedule =
        BuildSchedule({.name = ScheduleNames()[i], .num_stages = 4, .num_microbatches = 8});
    return (profile ? profile->sha256 : profile.error().message) +
           (job ? "job read" : job.error().message) +
           (schedule ? FormatSchedule(*schedule) : schedule.error().message);
  });
}

TEST(Threads, SolveOneProblem) {
  TimeCostProblem problem;
  problem.curves = {{{2, 90}, {4, 40}, {5, 30}}, {{3, 50}, {6, 20}}};
  problem.curve_of = {0, 1, 1};
  problem.precedences = {{0, 1, 0.0}, {0, 2, 0.0}};
  ExpectSameInThreads([&](int) {
    const Result<TimeCostFrontier> frontier = SolveFrontier(problem, {});
    if (!frontier) return frontier.error().message;
    std::string text;
    for (const FrontierBreakpoint& point : frontier->breakpoints) {
      text += std::to_string(point.time) + ' ' + std::to_string(point.cost) + '\n';
    }
    return text;
  });
}

// A folder in memory, where fsync() costs nothing; else the usual one.
std::filesystem::path QuickFolder() {
  const std::filesystem::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
}

// Each sweeps what killed writers left, and must not take the others' files for
// that. It did about once in 8,000 calls, where what a name leads to was not
// looked at again (IsStillThere in SweepStaged).
TEST(Threads, WriteTheSameFileAtOnce) {
  constexpr int kWriters = 8;
  const TemporaryDirectory directory(QuickFolder());
  const bool is_quick = directory.Path().starts_with("/dev/shm");
  const int calls = is_quick ? 8000 : 500;
  std::vector<std::string> failures(kWriters);
  std::vector<std::thread> threads;
  threads.reserve(kWriters);
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&directory, &failure = failures[writer], calls] {
      for (int call = 0; call < calls && failure.empty(); ++call) {
        const Result<void> file = WriteFileAtomically(directory.Path("file"), "bytes");
        if (!file) failure = file.error().message;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<std::string>(kWriters));
  EXPECT_EQ(directory.Names(), (std::vector<std::string>{"file"}));
}

TEST(Threads, WriteTheSameFilesAtOnce) {
  constexpr int kWriters = 8;
  constexpr int kCalls = 200;
  const TemporaryDirectory directory;
  std::vector<std::string> failures(kWriters);
  std::vector<std::thread> threads;
  threads.reserve(kWriters);
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&directory, &failure = failures[writer], writer] {
      const std::string bytes(100, static_cast<char>('a' + writer));
      for (int call = 0; call < kCalls && failure.empty(); ++call) {
        const Result<void> file = WriteFileAtomically(directory.Path("file"), bytes);
        const Result<void> files =
            WriteFilesAtomically(directory.Path("set"), {{"x", bytes}, {"y", bytes}});
        if (!file) failure = file.error().message;
        if (!files) failure = files.error().message;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<std::string>(kWriters));
  EXPECT_EQ(directory.Names(), (std::vector<std::string>{"file", "set"}));
  EXPECT_EQ(directory.Get("set/x"), directory.Get("set/y"));
}

}  // namespace
}  // namespace perseus
