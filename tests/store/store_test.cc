// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "store/facts_testing.h"
#include "store/testing_stores.h"
#include "support/mentions.h"

namespace perseus::store {
namespace {

using StoreTest = AnyStoreTest;
INSTANTIATE_TEST_SUITE_P(On, StoreTest,
                         ::testing::Values(Kind::kSqlite, Kind::kPostgresql, Kind::kPgBouncer),
                         KindName);

TEST_P(StoreTest, EveryFactIsThereAfterItWasClosed) {
  std::string before;
  {
    const auto store = Open();
    for (const Fact& fact : SampleFacts("a")) ASSERT_TRUE(store->Write({fact}));
    ASSERT_TRUE(store->Write(SampleFacts("b")));
    before = Described(*store);
  }
  EXPECT_EQ(Described(*Open()), before);
  EXPECT_EQ(before.substr(0, before.find("\nb ") + 1),
            R"(a key of a GPT-3 'small' "x" alice 1 4x2x1 )"
            R"({"schedule":"1f1b"} stage,instruction
 [70.5] economic characterizing why not 1700000000
labels project=x team=language
rank 0 0 0 0 GPU-0 NVIDIA A100 node1 [210 1410]
rank 5 1 1 0 GPU-5 NVIDIA A100 node1 [210 1410]
measured 5 1 I 1410 0.1 0.3333333333333333 12;1 F 1305 0.2 7 40 t0.0004 e0.14285714285714285 x1 c55.5 w2048 u1.1e-05 v-0.004 r0.002 s0.3 70.5 true 2 1.2 [1410 70.5 1.2;705 0.3333333333333333 0] 0.02 [120 64.1 23000 3.1 -400] [clock 1305 did not take: 1290 seen
MIG is on]
curve 1 {}
plan 1 0.30000000000000004 0 4095 64
plan 2 2 1
version 3 straggler 5.5 2 [1 1]
straggler 7 1 -1  1.2 0 9 -1
last straggler 8
iterations 3 10 50 4 6 252 9 1000000 120000000000
detection {}
library {"model":"GPT-3"} measured 2 0 stage
 [71.5]
)");
}

TEST_P(StoreTest, TheNextProfileWaitsUntilItIsAdoptedOrDropped) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write(
      {StateChange{.job = "a", .state = JobState::kRunning, .next = StateChange::Next::kAdopt}}));
  JobRecord job = JobOrThrow(*store, "a").job;
  EXPECT_EQ(job.profile_csv, "stage\n");
  EXPECT_EQ(job.blocking_power_watts, std::vector<double>{71.5});
  EXPECT_EQ(job.next_profile_csv, "");
  EXPECT_EQ(job.settled_round, 2);
  ASSERT_TRUE(store->Write({StateChange{
      .job = "a", .state = JobState::kProfiling, .sweep_round = 3, .next_profile_csv = "other"}}));
  ASSERT_TRUE(store->Write(
      {StateChange{.job = "a", .state = JobState::kRunning, .next = StateChange::Next::kDrop}}));
  job = JobOrThrow(*store, "a").job;
  EXPECT_EQ(job.profile_csv, "stage\n");
  EXPECT_EQ(job.next_profile_csv, "");
  EXPECT_EQ(job.settled_round, 3);
}

TEST_P(StoreTest, ProfilesOutliveTheirJobs) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write({JobGone{"a"}}));
  ASSERT_EQ(store->ListProfiles()->size(), 1);
  const auto found = store->FindProfile("p-a");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->job, "a");
  EXPECT_EQ((*found)->profile_csv, "stage,x\n");
  EXPECT_EQ((*found)->blocking_power_watts, (std::vector<double>{70.5, 1.0 / 3}));
  EXPECT_EQ((*found)->metadata_json, "{\"a\":1}");
  EXPECT_EQ((*found)->conditions_json, "{\"c\":3}");
  EXPECT_EQ(store->ListProfiles()->front().conditions_json, "{\"c\":3}");
  // The newest of its layout.
  ASSERT_TRUE(store->Write({SampleJob("b"), ProfileRecord{.job = "b",
                                                          .id = "p-b",
                                                          .model = "GPT-3",
                                                          .layout = "{}",
                                                          .created_at_seconds = 1.8e9}}));
  EXPECT_EQ((*store->FindProfileOfLayout("{}"))->id, "p-b");
  EXPECT_EQ(*store->FindProfileOfLayout("else"), std::nullopt);
  // What is there stays as it is.
  ASSERT_TRUE(store->Write({ProfileRecord{.job = "b", .id = "p-b", .layout = "else"}}));
  EXPECT_EQ((*store->FindProfile("p-b"))->layout, "{}");
  ASSERT_TRUE(store->DeleteProfile("p-b"));
  ASSERT_TRUE(store->DeleteProfile("p-b"));
  EXPECT_EQ((*store->FindProfileOfLayout("{}"))->id, "p-a");
  EXPECT_FALSE(store->FindProfile("p-b")->has_value());
}

TEST_P(StoreTest, ConditionsAreThoseOfTheJobThatToldThemLast) {
  {
    const auto store = Open();
    ASSERT_TRUE(store->Write({SampleJob("a"), ProfileRecord{.job = "a", .id = "p-a"}}));
    EXPECT_EQ((*store->FindProfile("p-a"))->conditions_json, "");
    ASSERT_TRUE(store->Write({ProfileConditions{"a", "p-a", "{\"first\":1}"}}));
    // Another job, which uses the same profile.
    ASSERT_TRUE(store->Write({SampleJob("b"), ProfileConditions{"b", "p-a", "{\"second\":2}"}}));
    // Of a profile that is gone.
    ASSERT_TRUE(store->Write({ProfileConditions{"b", "p-none", "{}"}}));
  }
  const auto store = Open();
  EXPECT_EQ((*store->FindProfile("p-a"))->conditions_json, "{\"second\":2}");
  EXPECT_EQ(store->ListProfiles()->size(), 1);
}

TEST_P(StoreTest, AStragglerThatIsKnownGetsItsFactor) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write({StragglerRecord{.job = "a", .id = 7, .pipeline = 0, .factor = 1.5}}));
  const StoredJob job = JobOrThrow(*store, "a");
  ASSERT_EQ(job.stragglers.size(), 1);
  EXPECT_EQ(job.stragglers[0].factor, 1.5);
  EXPECT_EQ(job.stragglers[0].pipeline, 1);
}

TEST_P(StoreTest, ARankThatComesBackReplacesItsGpu) {
  const auto store = Open();
  ASSERT_TRUE(store->Write({SampleJob("a"), SampleRank("a", 3)}));
  RankRecord again = SampleRank("a", 3);
  again.gpu_uuid = "GPU-new";
  again.clocks_mhz = {};
  ASSERT_TRUE(store->Write({again}));
  const StoredJob job = JobOrThrow(*store, "a");
  ASSERT_EQ(job.ranks.size(), 1);
  EXPECT_EQ(job.ranks[0].gpu_uuid, "GPU-new");
  EXPECT_TRUE(job.ranks[0].clocks_mhz.empty());
}

TEST_P(StoreTest, NewCurvesReplaceOldPlans) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write({CurveRecord{.job = "a", .revision = 2, .plans = {{.id = 9}}}}));
  const StoredJob job = JobOrThrow(*store, "a");
  ASSERT_EQ(job.curve->plans.size(), 1);
  EXPECT_EQ(job.curve->plans[0].id, 9);
  EXPECT_EQ(job.curve->revision, 2);
}

TEST_P(StoreTest, AJobThatGoesTakesAllItsFactsAlong) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write({JobGone{"a"}}));
  EXPECT_EQ(Described(*store), "");
  // Nothing is left that a new job of this name would inherit.
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  EXPECT_THAT(Described(*store), Mentions("straggler", "0"));
  EXPECT_EQ(JobOrThrow(*store, "a").ranks.size(), 0);
}

TEST_P(StoreTest, AWriteIsAllOrNothing) {
  const auto store = Open();
  const Result<JobMarks> written = store->Write({SampleJob("a"), SampleRank("nobody", 0)});
  ASSERT_FALSE(written);
  EXPECT_EQ(Described(*store), "");
  EXPECT_EQ(store->counters().failures, 1);
  EXPECT_EQ(store->counters().last_error, written.error().message);
  // The fault is that of the fact.
  EXPECT_FALSE(store->counters().is_failing);
}

TEST_P(StoreTest, OneThatIsRefusedTakesNoOtherWithIt) {
  std::vector<std::future<bool>> answers;
  {
    const auto store = Open();
    ASSERT_TRUE(store->Write({SampleJob("a")}));
    for (int rank = 0; rank < 100; ++rank) {
      auto answer = std::make_shared<std::promise<bool>>();
      answers.push_back(answer->get_future());
      const std::string job = rank == 50 ? "nobody" : "a";
      RankRecord record = SampleRank(job, rank);
      record.dp_rank = rank;
      store->Add({record}, [answer](const Result<JobMarks>& written) {
        answer->set_value(written.has_value());
      });
    }
  }  // Closing acknowledges what was added.
  for (int rank = 0; rank < 100; ++rank) EXPECT_EQ(answers[rank].get(), rank != 50) << rank;
  EXPECT_EQ(JobOrThrow(*Open(), "a").ranks.size(), 99);
}

TEST_P(StoreTest, AStormSharesItsCommits) {
  constexpr int kRanks = 2000;
  const auto store = Open();
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  std::atomic<int> answered = 0;
  std::promise<void> all;
  for (int rank = 0; rank < kRanks; ++rank) {
    RankRecord record = SampleRank("a", rank);
    record.dp_rank = rank;
    store->Add({record}, [&](const Result<JobMarks>& written) {
      EXPECT_TRUE(written);
      if (++answered == kRanks) all.set_value();
    });
  }
  ASSERT_EQ(all.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_LT(store->counters().commits, kRanks / 10);
  EXPECT_EQ(JobOrThrow(*store, "a").ranks.size(), kRanks);
}

TEST_P(StoreTest, ACallbackMayWriteAgain) {
  const auto store = Open();
  std::promise<bool> second;
  store->Add({SampleJob("a")}, [&](const Result<JobMarks>&) {
    second.set_value(store->Write({SampleRank("a", 0)}).has_value());
  });
  std::future<bool> answer = second.get_future();
  ASSERT_EQ(answer.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_TRUE(answer.get());
}

TEST_P(StoreTest, ACallbackThatThrowsIsToldAndTheNextIsCalled) {
  std::promise<std::string> told;
  const auto store =
      Store::Open(spec_, [&](const std::string& sentence) { told.set_value(sentence); });
  ASSERT_TRUE(store);
  std::promise<bool> next;
  (*store)->Add({SampleJob("a")}, [](const auto&) { throw std::runtime_error("no room"); });
  (*store)->Add({SampleJob("b")},
                [&](const auto& written) { next.set_value(written.has_value()); });
  EXPECT_TRUE(next.get_future().get());
  EXPECT_THAT(told.get_future().get(), Mentions("room"));
}

TEST_P(StoreTest, ThreadsShareIt) {
  const auto store = Open();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const std::string job = fmt::format("job{}", thread);
      EXPECT_TRUE(store->Write({SampleJob(job)}));
      for (int rank = 0; rank < 10; ++rank) EXPECT_TRUE(store->Write({SampleRank(job, rank)}));
      EXPECT_EQ(JobOrThrow(*store, job).ranks.size(), 10);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->ListHeads()->size(), 4);
}

}  // namespace
}  // namespace perseus::store
