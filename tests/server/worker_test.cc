// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/worker.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "common/temporary_directory.h"
#include "server/service_testing.h"

namespace perseus::server {
namespace {

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest() : store_(*store::Store::Open("sqlite:" + directory_.Path("store.sqlite"))) {
    for (const char* const job : {"a", "b"}) {
      store::JobRecord record{.id = job, .client_key = job};
      record.state = store::JobState::kRunning;
      EXPECT_TRUE(store_->Write({record}));
    }
  }
  void Want(const std::string& job, bool urgent = false) {
    EXPECT_TRUE(store_->Write({store::WorkWanted{.job = job, .urgent = urgent}}));
  }

  TemporaryDirectory directory_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(WorkerTest, EachIsDoneOnceAndAgainWhereItIsWantedAgain) {
  Want("a");
  Want("b", true);
  std::mutex mutex;
  std::multiset<std::string> done;
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return done.size();
  };
  Worker worker(*store_,
                [&](const std::string& job, const auto&) {
                  const std::lock_guard lock(mutex);
                  done.insert(job);
                  return true;
                },
                {});
  EXPECT_TRUE(Eventually([&] { return count() == 2; }));
  Want("a");
  worker.Wake();
  EXPECT_TRUE(Eventually([&] { return count() == 3; }));
  worker.Stop();
  worker.Wait();
  EXPECT_EQ(done, (std::multiset<std::string>{"a", "a", "b"}));
}

// As where a job of 8 computations had no plan for minutes, behind another job's better one.
TEST_F(WorkerTest, UrgentWorkWaitsForNoOther) {
  Want("a");
  std::atomic<bool> began = false;
  std::atomic<bool> urgent_done = false;
  std::atomic<bool> other_done = false;
  Worker worker(*store_,
                [&](const std::string& job, const auto& keep_going) {
                  if (job == "b") {
                    urgent_done = true;
                    return true;
                  }
                  began = true;
                  EXPECT_TRUE(Eventually([&] { return urgent_done.load(); }));
                  EXPECT_TRUE(keep_going());
                  other_done = true;
                  return true;
                },
                {}, {.urgent_threads = 1, .other_threads = 1});
  ASSERT_TRUE(Eventually([&] { return began.load(); }));
  Want("b", true);
  worker.Wake();
  EXPECT_TRUE(Eventually([&] { return other_done.load(); }));
}

// Nor is any work kept from its end by urgent work without end, or done twice for it.
TEST_F(WorkerTest, OtherWorkComesToItsEndWhileUrgentWorkNeverEnds) {
  Want("a", true);
  Want("b");
  std::atomic<int> others = 0;
  std::atomic<int> urgent = 0;
  std::atomic<bool> stopped = false;
  Worker worker(*store_,
                [&](const std::string& job, const auto& keep_going) {
                  if (job == "a") {
                    ++urgent;
                    Want("a", true);  // There is always more of it.
                    while (others < 1 && keep_going()) std::this_thread::yield();
                    return true;
                  }
                  EXPECT_TRUE(Eventually([&] { return urgent > 0; }));
                  EXPECT_TRUE(keep_going() || stopped);
                  ++others;
                  return true;
                },
                {}, {.urgent_threads = 1, .other_threads = 1});
  EXPECT_TRUE(Eventually([&] { return others == 1 && urgent > 1; }));
  stopped = true;
  worker.Stop();
  worker.Wait();
  EXPECT_EQ(others, 1);
}

// Where a lease runs out unseen, as when the store was away.
TEST_F(WorkerTest, OneJobIsInOneHandAtATime) {
  Want("a");
  std::atomic<int> at_once = 0;
  std::atomic<int> most = 0;
  std::atomic<int> done = 0;
  {
    Worker worker(*store_,
                  [&](const std::string&, const auto&) {
                    most = std::max(most.load(), ++at_once);
                    // The other thread has asked by now, which it is woken for.
                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                    --at_once;
                    if (++done < 10) Want("a");
                    return true;
                  },
                  {}, {.urgent_threads = 1, .other_threads = 2, .lease_seconds = -1});
    EXPECT_TRUE(Eventually([&] { return done >= 10; }));
  }
  EXPECT_EQ(most, 1);
}

TEST_F(WorkerTest, WhatIsNotSettledAtTheEndIsGivenBack) {
  Want("a");
  std::atomic<bool> began = false;
  {
    Worker worker(*store_,
                  [&](const std::string&, const auto& keep_going) {
                    began = true;
                    EXPECT_TRUE(Eventually([&] { return !keep_going(); }));
                    return false;
                  },
                  {});
    ASSERT_TRUE(Eventually([&] { return began.load(); }));
  }
  EXPECT_EQ(store_->ClaimWork(1).value(), "a");
}

TEST_F(WorkerTest, WorkThatThrowsIsToldAndStaysWanted) {
  Want("a");
  Want("b");
  std::atomic<int> problems = 0;
  std::atomic<int> done = 0;
  Worker worker(
      *store_,
      [&](const std::string& job, const auto&) {
        if (job == "a") throw std::runtime_error("no");
        ++done;
        return true;
      },
      [&](const std::string&) { ++problems; });
  EXPECT_TRUE(Eventually([&] { return done == 1; }));
  EXPECT_EQ(problems, 1);
  worker.Stop();
  worker.Wait();
  // Its lease runs on for a while, so that it is not tried without a pause.
  EXPECT_TRUE(Eventually([&] { return store_->ClaimWork(1).value() == "a"; }));
}

}  // namespace
}  // namespace perseus::server
