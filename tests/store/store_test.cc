// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "store/store.h"

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

#include "common/temporary_directory.h"
#include "store/facts_testing.h"

namespace perseus::store {
namespace {

using ::testing::HasSubstr;

class StoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> Open() const { return OpenOrThrow(file_); }

  TemporaryDirectory directory_;
  std::string file_ = directory_.Path("perseus store.sqlite");
};

TEST_F(StoreTest, EveryFactIsThereAfterItWasClosed) {
  std::string before;
  {
    const auto store = Open();
    for (const Fact& fact : SampleFacts("a")) ASSERT_TRUE(store->Write({fact}));
    ASSERT_TRUE(store->Write(SampleFacts("b")));
    before = Described(*store);
  }
  EXPECT_EQ(Described(*Open()), before);
  EXPECT_EQ(before.substr(0, before.find("\nb ") + 1), R"(a key of a GPT-3 'small' "x" 1 4x2x1 )"
                                                       R"({"schedule":"1f1b"} stage,instruction
 [70.5] economic characterizing why not 1700000000
rank 0 0 0 0 GPU-0 NVIDIA A100 node1 [210 1410]
rank 5 1 1 0 GPU-5 NVIDIA A100 node1 [210 1410]
measured 5 1 I 1410 0.1 0.3333333333333333 12 70.5 true
curve 1 {}
plan 1 0.30000000000000004 0 4095 64
plan 2 2 1
version 3 straggler 5.5 2 [1 1]
straggler 7 1 -1  1.2 0 9 -1
last straggler 8
iterations 3 10 50 4 6 252 9 1000000 120000000000
detection {}
)");
}

TEST_F(StoreTest, ARankThatComesBackReplacesItsGpu) {
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

TEST_F(StoreTest, NewCurvesReplaceOldPlans) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write({CurveRecord{.job = "a", .revision = 2, .plans = {{.id = 9}}}}));
  const StoredJob job = JobOrThrow(*store, "a");
  ASSERT_EQ(job.curve->plans.size(), 1);
  EXPECT_EQ(job.curve->plans[0].id, 9);
  EXPECT_EQ(job.curve->revision, 2);
}

TEST_F(StoreTest, AJobThatGoesTakesAllItsFactsAlong) {
  const auto store = Open();
  ASSERT_TRUE(store->Write(SampleFacts("a")));
  ASSERT_TRUE(store->Write({JobGone{"a"}}));
  EXPECT_EQ(Described(*store), "");
  // Nothing is left that a new job of this name would inherit.
  ASSERT_TRUE(store->Write({SampleJob("a")}));
  EXPECT_THAT(Described(*store), HasSubstr("last straggler 0\n"));
  EXPECT_EQ(JobOrThrow(*store, "a").ranks.size(), 0);
}

TEST_F(StoreTest, AWriteIsAllOrNothing) {
  const auto store = Open();
  const Result<JobMarks> written = store->Write({SampleJob("a"), SampleRank("nobody", 0)});
  ASSERT_FALSE(written);
  EXPECT_EQ(Described(*store), "");
  EXPECT_EQ(store->counters().failures, 1);
  EXPECT_EQ(store->counters().last_error, written.error().message);
  // The fault is that of the fact.
  EXPECT_FALSE(store->counters().is_failing);
}

TEST_F(StoreTest, OneThatIsRefusedTakesNoOtherWithIt) {
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

TEST_F(StoreTest, AStormSharesItsCommits) {
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

TEST_F(StoreTest, ACallbackMayWriteAgain) {
  const auto store = Open();
  std::promise<bool> second;
  store->Add({SampleJob("a")}, [&](const Result<JobMarks>&) {
    second.set_value(store->Write({SampleRank("a", 0)}).has_value());
  });
  std::future<bool> answer = second.get_future();
  ASSERT_EQ(answer.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_TRUE(answer.get());
}

TEST_F(StoreTest, ACallbackThatThrowsIsToldAndTheNextIsCalled) {
  std::promise<std::string> told;
  const auto store = Store::Open("sqlite:" + directory_.Path("throwing.sqlite"),
                                 [&](const std::string& sentence) { told.set_value(sentence); });
  ASSERT_TRUE(store);
  std::promise<bool> next;
  (*store)->Add({SampleJob("a")}, [](const auto&) { throw std::runtime_error("no room"); });
  (*store)->Add({SampleJob("b")},
                [&](const auto& written) { next.set_value(written.has_value()); });
  EXPECT_TRUE(next.get_future().get());
  EXPECT_THAT(told.get_future().get(), HasSubstr("no room"));
}

TEST_F(StoreTest, ThreadsShareIt) {
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
  EXPECT_EQ(store->LoadJobs()->size(), 4);
}

}  // namespace
}  // namespace perseus::store
