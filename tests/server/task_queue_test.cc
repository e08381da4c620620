// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/task_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string>

namespace perseus::server {
namespace {

TEST(TaskQueueTest, ATaskThatThrowsTakesNoOtherWithIt) {
  std::promise<std::string> told;
  std::promise<void> next;
  TaskQueue tasks([&](const std::string& sentence) { told.set_value(sentence); });
  tasks.Add([](const auto&) { throw std::runtime_error("no room"); });
  tasks.Add([&](const auto&) { next.set_value(); });
  EXPECT_EQ(told.get_future().get(), "A bug: a computation threw: no room");
  next.get_future().get();
}

}  // namespace
}  // namespace perseus::server
