// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

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

TEST_F(WorkerTest, WhatIsUrgentComesFirstAndEachOnce) {
  Want("a");
  Want("b", true);
  std::mutex mutex;
  std::vector<std::string> done;
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return done.size();
  };
  Worker worker(*store_,
                [&](const std::string& job, const auto&) {
                  const std::lock_guard lock(mutex);
                  done.push_back(job);
                  return true;
                },
                {});
  EXPECT_TRUE(Eventually([&] { return count() == 2; }));
  Want("a");
  worker.Wake();
  EXPECT_TRUE(Eventually([&] { return count() == 3; }));
  worker.Stop();
  worker.Wait();
  EXPECT_EQ(done, (std::vector<std::string>{"b", "a", "a"}));
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

TEST_F(WorkerTest, WorkThatThrowsIsToldAndNotDoneAgain) {
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
  EXPECT_EQ(store_->ClaimWork(1).value(), std::nullopt);
}

}  // namespace
}  // namespace perseus::server
