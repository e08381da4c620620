// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "server/service_testing.h"

namespace perseus::server {
namespace {

TEST(WorkerTest, EachIsDoneOnceAndAgainWhereItIsWantedAgain) {
  std::mutex mutex;
  std::multiset<std::string> done;
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return done.size();
  };
  Worker worker(
      [&](const std::string& job, const auto&) {
        const std::lock_guard lock(mutex);
        done.insert(job);
        return true;
      },
      {});
  worker.Want("a", false);
  worker.Want("b", true);
  EXPECT_TRUE(Eventually([&] { return count() == 2; }));
  worker.Want("a", false);
  EXPECT_TRUE(Eventually([&] { return count() == 3; }));
  worker.Stop();
  worker.Wait();
  EXPECT_EQ(done, (std::multiset<std::string>{"a", "a", "b"}));
}

TEST(WorkerTest, WhoWaitedLongestComesFirst) {
  std::mutex mutex;
  std::string order;
  std::atomic<bool> may_go = false;
  Worker worker(
      [&](const std::string& job, const auto&) {
        EXPECT_TRUE(Eventually([&] { return may_go.load(); }));
        const std::lock_guard lock(mutex);
        order += job;
        return true;
      },
      {}, {.urgent_threads = 1, .other_threads = 1});
  for (const char* const job : {"x", "c", "a", "b"}) worker.Want(job, true);
  worker.Want("c", true);  // It keeps its place.
  may_go = true;
  EXPECT_TRUE(Eventually([&] {
    const std::lock_guard lock(mutex);
    return order.size() >= 4;
  }));
  worker.Stop();
  worker.Wait();
  EXPECT_EQ(order, "xcab");
}

// As where a job of 8 computations had no plan for minutes, behind another job's better one.
TEST(WorkerTest, UrgentWorkWaitsForNoOther) {
  std::atomic<bool> began = false;
  std::atomic<bool> urgent_done = false;
  std::atomic<bool> other_done = false;
  Worker worker(
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
  worker.Want("a", false);
  ASSERT_TRUE(Eventually([&] { return began.load(); }));
  worker.Want("b", true);
  EXPECT_TRUE(Eventually([&] { return other_done.load(); }));
}

TEST(WorkerTest, OneJobIsInOneHandAtATime) {
  std::atomic<int> at_once = 0;
  std::atomic<int> most = 0;
  std::atomic<int> done = 0;
  Worker* self = nullptr;
  Worker worker(
      [&](const std::string&, const auto&) {
        most = std::max(most.load(), ++at_once);
        if (done < 9) self->Want("a", done % 2 == 0);  // There is more of it, of another kind.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        --at_once;
        ++done;
        return true;
      },
      {}, {.urgent_threads = 2, .other_threads = 2});
  self = &worker;
  worker.Want("a", true);
  EXPECT_TRUE(Eventually([&] { return done >= 10; }));
  worker.Stop();
  worker.Wait();
  EXPECT_EQ(most, 1);
}

TEST(WorkerTest, WorkThatThrowsIsToldAndTriedAgain) {
  std::atomic<int> problems = 0;
  std::atomic<int> tries = 0;
  std::atomic<int> done = 0;
  Worker worker(
      [&](const std::string& job, const auto&) {
        if (job == "a" && ++tries < 3) throw std::runtime_error("no");
        ++done;
        return true;
      },
      [&](const std::string&) { ++problems; }, {.retry_seconds = 0.01});
  worker.Want("a", false);
  worker.Want("b", false);
  EXPECT_TRUE(Eventually([&] { return done == 2; }));
  EXPECT_EQ(problems, 2);
  EXPECT_EQ(tries, 3);
}

TEST(WorkerTest, WorkEndsWhenTheServerDoes) {
  std::atomic<bool> began = false;
  std::atomic<bool> ended = false;
  {
    Worker worker(
        [&](const std::string&, const auto& keep_going) {
          began = true;
          ended = Eventually([&] { return !keep_going(); });
          return false;
        },
        {});
    worker.Want("a", true);
    ASSERT_TRUE(Eventually([&] { return began.load(); }));
  }
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace perseus::server
