// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/refresher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "server/service_testing.h"

namespace perseus::server {
namespace {

TEST(RefresherTest, EveryAskIsFollowedByARefresh) {
  std::atomic<int> asked = 0;
  std::map<std::string, int> seen;
  std::mutex mutex;
  Refresher refresher(
      [&](const std::string& id) {
        const int now = asked;
        const std::lock_guard lock(mutex);
        seen[id] = now;
      },
      {});
  for (int i = 0; i < 200; ++i) {
    ++asked;
    refresher.Ask("a");
    refresher.Ask("b");
  }
  EXPECT_TRUE(Eventually([&] {
    const std::lock_guard lock(mutex);
    return seen["a"] == 200 && seen["b"] == 200;
  }));
}

TEST(RefresherTest, OneJobIsRefreshedByOneThreadAndSeldom) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<int> runs = 0;
  std::atomic<bool> stopping = false;
  Refresher refresher(
      [&](const std::string&) {
        most = std::max(most.load(), ++running);
        ++runs;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        --running;
      },
      {});
  std::thread asker([&] {
    while (!stopping) refresher.Ask("a");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  stopping = true;
  asker.join();
  refresher.Stop();
  EXPECT_EQ(most, 1);
  EXPECT_GE(runs, 2);
  EXPECT_LE(runs, 300 / 20 + 2);
}

TEST(RefresherTest, WhatThrowsIsToldAndTheNextGoesOn) {
  std::atomic<int> problems = 0;
  std::atomic<bool> done = false;
  Refresher refresher(
      [&](const std::string& id) {
        if (id == "bad") throw std::runtime_error("no");
        done = true;
      },
      [&](const std::string&) { ++problems; });
  refresher.Ask("bad");
  EXPECT_TRUE(Eventually([&] { return problems == 1; }));
  refresher.Ask("good");
  EXPECT_TRUE(Eventually([&] { return done.load(); }));
  refresher.Stop();
  refresher.Ask("good");
}

}  // namespace
}  // namespace perseus::server
