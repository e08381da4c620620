// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/drill.h"
#include "agent/protocol.h"
#include "common/file_descriptor.h"
#include "support/mentions.h"

// What `perseus agent` prints and how it ends.
namespace perseus::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class AgentCommand : public ::testing::Test {
 protected:
  struct Result {
    int code = -1000;
    std::string out;
  };
  Result Perseus(std::vector<std::string> arguments) {
    if (arguments.front() == "status") {
      arguments.insert(arguments.end(), {"--socket", drill_.Socket()});
    } else {
      const auto place = drill_.PlaceArguments();
      arguments.insert(arguments.end(), place.begin(), place.end());
    }
    arguments.insert(arguments.begin(), {PERSEUS_BINARY, "agent"});
    // Its sentence for people comes with its output.
    std::string command = "exec \"$0\" \"$@\" 2>&1";
    std::vector<std::string> shell = {"/bin/sh", "-c", command};
    shell.insert(shell.end(), arguments.begin(), arguments.end());
    Program program(std::move(shell));
    Result result;
    while (const auto line = program.ReadLine()) result.out += *line + "\n";
    result.code = program.Wait().value_or(-1000);
    return result;
  }

  Drill drill_{DrillOptions{}};
};

TEST_F(AgentCommand, StatusShowsWhoHasWhat) {
  ASSERT_TRUE(drill_.StartAgent());
  const auto client = drill_.StartClient("wait", {1});
  ASSERT_NE(client, nullptr);
  const Result text = Perseus({"status"});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, AllOf(Mentions("600"), Mentions("free"), Mentions("drill"),
                              HasSubstr(std::to_string(client->pid()) + " of ")));
  const Result json = Perseus({"status", "--json"});
  EXPECT_EQ(json.code, 0);
  const auto answer = ParseAnswer(json.out);
  ASSERT_TRUE(answer) << answer.error().message;
  const auto& status = std::get<StatusAnswer>(answer->body);
  EXPECT_EQ(status.pid, drill_.agent().pid());
  ASSERT_EQ(status.gpus.size(), 2U);
  EXPECT_EQ(status.gpus[1].locked_mhz, 600);
  EXPECT_EQ(status.gpus[1].owner->pid, client->pid());
}

TEST_F(AgentCommand, SaysWhenNoAgentIsThere) {
  const Result status = Perseus({"status"});
  EXPECT_EQ(status.code, 2);
  EXPECT_THAT(status.out, AllOf(Mentions(drill_.Socket()), HasSubstr("'sudo perseus agent run'")));
}

TEST_F(AgentCommand, ReleaseWantsToKnowWhich) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"release"}, {"release", "--all", "--gpu", "0"}}) {
    const Result result = Perseus(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.out, Mentions("--all"));
  }
  const Result unknown = Perseus({"release", "--gpu", "7"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.out, Mentions("'7'"));
  const Result journaled = Perseus({"release", "--journaled"});
  EXPECT_EQ(journaled.code, 0);
  EXPECT_EQ(journaled.out, "The journal names no GPU.\n");
}

TEST_F(AgentCommand, SaysWhatItCannotDo) {
  const Result action = Perseus({"dance"});
  EXPECT_EQ(action.code, 2);
  EXPECT_THAT(action.out, AllOf(Mentions("'dance'"), Mentions("release")));
  const Result user = Perseus({"run", "--allow-user", "no-such-user"});
  EXPECT_EQ(user.code, 2);
  EXPECT_THAT(user.out, Mentions("--allow-user", "'no-such-user'"));
  drill_.gpus().SetRefuseSets(0, true);
  const Result rights = Perseus({"run"});
  EXPECT_EQ(rights.code, 2);
  EXPECT_THAT(rights.out, AllOf(Mentions("CAP_SYS_ADMIN"), Mentions("--observe")));
}

TEST_F(AgentCommand, ASecondAgentOfTheNodeIsRefused) {
  ASSERT_TRUE(drill_.StartAgent());
  const Result second = Perseus({"run"});
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.out, Mentions("journal"));
  EXPECT_EQ(Perseus({"status"}).code, 0);
}

}  // namespace
}  // namespace perseus::agent

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
