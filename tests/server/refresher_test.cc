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

}  // namespace
}  // namespace perseus::server
