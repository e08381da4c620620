// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "agent/drill.h"
#include "common/file_descriptor.h"

// The real agent whose standard error nobody reads.
namespace perseus::agent {
namespace {

// While it lives, standard error of this process, and of those that it starts, is a pipe
// that is full.
class FullStandardError {
 public:
  FullStandardError() : before_(::dup(STDERR_FILENO)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    read_ = FileDescriptor(ends[0]);
    const FileDescriptor write(ends[1]);
    const std::string line(4096, 'x');
    while (::write(write.get(), line.data(), line.size()) > 0) {
    }
    ::fcntl(write.get(), F_SETFL, 0);  // It blocks from here on.
    ::dup2(write.get(), STDERR_FILENO);
  }
  FullStandardError(const FullStandardError&) = delete;
  FullStandardError& operator=(const FullStandardError&) = delete;
  ~FullStandardError() { ::dup2(before_.get(), STDERR_FILENO); }

 private:
  FileDescriptor before_;
  FileDescriptor read_;
};

TEST(AgentLog, AFullStandardErrorHoldsUpNothing) {
  Drill drill{DrillOptions{}};
  const FullStandardError full;
  ASSERT_TRUE(drill.StartAgent());
  for (int i = 0; i < 10; ++i) {
    const auto client = drill.StartClient("wait", {1});
    ASSERT_NE(client, nullptr);
    client->Kill(SIGKILL);
    EXPECT_TRUE(drill.WaitUntilFree({1}));
  }
  drill.agent().Kill(SIGTERM);
  EXPECT_EQ(drill.agent().Wait(), 0);
}

}  // namespace
}  // namespace perseus::agent
