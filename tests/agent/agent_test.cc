// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <variant>
#include <vector>

#include "agent/agent_testing.h"
#include "common/file.h"
#include "support/mentions.h"
#include "support/unix_listener.h"

namespace perseus::agent {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kFirst = "GPU-fake-0";
constexpr const char* kSecond = "GPU-fake-1";

void Write(const Control& control, const std::string& bytes) {
  ASSERT_EQ(::send(control.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

TEST(Agent, LeasesLocksAndGivesBack) {
  TestAgent agent;
  ASSERT_TRUE(agent.Start());
  Control control = agent.Connect("trainer");
  EXPECT_EQ(control.hello().gpus.size(), 2U);
  EXPECT_EQ(control.hello().gpus[1].uuid, kSecond);
  EXPECT_THAT(control.hello().gpus[1].clocks_mhz, ElementsAre(600, 900, 1200, 1500));
  EXPECT_EQ(control.hello().gpus[0].owner_pid, std::nullopt);
  EXPECT_EQ(Expect<Refused>(&control, Ask(Operation::kSet, kFirst, 900)).code, Refusal::kNotLeased);
  Expect<Done>(&control, Ask(Operation::kLease, kFirst));
  Expect<Done>(&control, Ask(Operation::kLease, kFirst));  // Again: the same.
  EXPECT_EQ(Expect<SetAnswer>(&control, Ask(Operation::kSet, kFirst, 1000)).mhz, 900);
  EXPECT_EQ(agent.gpu(0).locked(), 900);
  Expect<Done>(&control, Ask(Operation::kRelease, kFirst));
  EXPECT_EQ(agent.gpu(0).locked(), std::nullopt);
  Expect<SetAnswer>(&control, Ask(Operation::kSet, kFirst, 600));
  Expect<Done>(&control, Ask(Operation::kYield, kFirst));
  EXPECT_EQ(agent.gpu(0).locked(), std::nullopt);
  EXPECT_EQ(Expect<Refused>(&control, Ask(Operation::kSet, kFirst, 900)).code, Refusal::kNotLeased);
  EXPECT_THAT(agent.gpu(1).calls(), IsEmpty());
}

TEST(Agent, GivesBackWhenTheConnectionCloses) {
  TestAgent agent;
  ASSERT_TRUE(agent.Start());
  {
    Control control = agent.Connect();
    for (const char* gpu : {kFirst, kSecond}) {
      Expect<Done>(&control, Ask(Operation::kLease, gpu));
      Expect<SetAnswer>(&control, Ask(Operation::kSet, gpu, 600));
    }
  }
  EXPECT_TRUE(agent.gpu(0).WaitForLocked(std::nullopt));
  EXPECT_TRUE(agent.gpu(1).WaitForLocked(std::nullopt));
  Control next = agent.Connect();
  EXPECT_EQ(next.hello().gpus[0].owner_pid, std::nullopt);
  Expect<Done>(&next, Ask(Operation::kLease, kFirst));
}

TEST(Agent, RefusesAGpuThatAnotherHoldsAndSaysWho) {
  TestAgent agent;
  ASSERT_TRUE(agent.Start());
  Control owner = agent.Connect("trainer");
  Expect<Done>(&owner, Ask(Operation::kLease, kFirst));
  Control other = agent.Connect();
  EXPECT_EQ(other.hello().gpus[0].owner_pid, ::getpid());
  const auto refused = Expect<Refused>(&other, Ask(Operation::kLease, kFirst));
  EXPECT_EQ(refused.code, Refusal::kHeld);
  EXPECT_THAT(refused.message, Mentions("process", std::to_string(::getpid())));
  EXPECT_THAT(refused.message, Mentions("uid", std::to_string(::geteuid())));
  EXPECT_THAT(refused.message, Mentions("'trainer'"));
  Expect<Done>(&other, Ask(Operation::kLease, kSecond));
  Expect<Done>(&owner, Ask(Operation::kYield, kFirst));
  Expect<Done>(&other, Ask(Operation::kLease, kFirst));
}

TEST(Agent, AnswersWhatIsNoRequest) {
  TestAgent agent;
  ASSERT_TRUE(agent.Start());
  Control control = agent.Connect();
  Write(control, "\x01\xff garbage\n{\"id\":5}\n\n");
  for (const std::string says : {"not valid JSON", "'op' is missing", "empty"}) {
    const auto answer = control.Receive();
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_THAT(std::get<Refused>(answer->body).message, HasSubstr(says));
  }
  EXPECT_EQ(Expect<Refused>(&control, Ask(Operation::kLease, "GPU-none")).code,
            Refusal::kUnknownGpu);
  // Not for ever.
  for (int i = 0; i < 40; ++i) {
    if (::send(control.descriptor(), "x\n", 2, MSG_NOSIGNAL) < 0) break;
  }
  Result<Answer> answer = control.Receive();
  while (answer) answer = control.Receive();
  // The kernel resets a connection that is closed with bytes in it that nobody read.
  EXPECT_THAT(answer.error().message, AnyOf(Mentions("closed"), Mentions("reset")));
}

TEST(Agent, WantsHelloFirstOfItsVersion) {
  TestAgent agent;
  ASSERT_TRUE(agent.Start());
  const auto socket = ConnectUnix(agent.options().socket_path, std::chrono::seconds(20));
  ASSERT_TRUE(socket);
  const std::string lines =
      "{\"id\":1,\"op\":\"lease\",\"gpu\":\"GPU-fake-0\"}\n"
      "{\"id\":2,\"op\":\"hello\",\"version\":2}\n"
      "{\"id\":3,\"op\":\"hello\",\"version\":1}\n";
  ASSERT_EQ(::send(socket->get(), lines.data(), lines.size(), 0),
            static_cast<ssize_t>(lines.size()));
  std::string text;
  EXPECT_TRUE(Eventually([&] {
    char chunk[4096];
    const ssize_t count = ::recv(socket->get(), chunk, sizeof(chunk), MSG_DONTWAIT);
    if (count > 0) text.append(chunk, static_cast<std::size_t>(count));
    return text.find("\"id\":3") != std::string::npos;
  }));
  EXPECT_THAT(text, Mentions("first", "hello,"));
  EXPECT_THAT(text, Mentions("version", "1", "2"));
  EXPECT_THAT(text, Mentions("{\"id\":3,\"op\":\"hello\",\"ok\":true"));
}

TEST(Agent, EndsAConnectionWhoseLineIsTooLong) {
  TestAgent agent;
  ASSERT_TRUE(agent.Start());
  Control control = agent.Connect();
  Write(control, std::string(kMaxRequestBytes, 'x'));
  const auto refused = control.Receive();
  ASSERT_TRUE(refused) << refused.error().message;
  EXPECT_THAT(std::get<Refused>(refused->body).message, Mentions("65536"));
  EXPECT_FALSE(control.Receive());
}

TEST(Agent, DropsAReaderThatNeverReads) {
  TestAgent agent;
  ASSERT_TRUE(agent.Start());
  Control control = agent.Connect();
  Expect<Done>(&control, Ask(Operation::kLease, kFirst));
  Expect<SetAnswer>(&control, Ask(Operation::kSet, kFirst, 600));
  const std::string line = "{\"id\":9,\"op\":\"status\"}\n";
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += line;
  // Until the agent has had enough: then its end of the socket is closed.
  for (int i = 0; i < 2000; ++i) {
    if (::send(control.descriptor(), lines.data(), lines.size(), MSG_NOSIGNAL) < 0) break;
  }
  EXPECT_TRUE(agent.gpu(0).WaitForLocked(std::nullopt));
  EXPECT_EQ(agent.log().Count("it does not read its answers"), 1);
}

TEST(Agent, AHangingDriverDelaysNoOtherGpuAndBoundsWhatWaits) {
  TestAgent agent;
  ASSERT_TRUE(agent.Start());
  Control slow = agent.Connect();
  Control quick = agent.Connect();
  Expect<Done>(&slow, Ask(Operation::kLease, kFirst));
  Expect<Done>(&quick, Ask(Operation::kLease, kSecond));
  agent.gpu(0).Hang();
  // More than may be in flight: the agent reads no further, and forgets none.
  constexpr int kMany = kMaxRequestsInFlight * 3;
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(slow.Send(Ask(Operation::kEnergy, kFirst)));
  }
  ASSERT_TRUE(agent.gpu(0).WaitForCalls(1));
  Expect<SetAnswer>(&quick, Ask(Operation::kSet, kSecond, 600));
  Expect<Done>(&quick, Ask(Operation::kRelease, kSecond));
  EXPECT_EQ(agent.gpu(1).locked(), std::nullopt);
  agent.gpu(0).Resume();
  for (int i = 0; i < kMany; ++i) {
    const auto answer = slow.Receive();
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_TRUE(std::holds_alternative<EnergyAnswer>(answer->body));
  }
}

TEST(Agent, TakesTheClockOfASilentClientAndItsLeaseWhenAnotherAsks) {
  TestAgent agent;
  agent.options().max_silence = std::chrono::milliseconds(50);
  ASSERT_TRUE(agent.Start());
  Control silent = agent.Connect("stopped");
  Expect<Done>(&silent, Ask(Operation::kLease, kFirst));
  Expect<SetAnswer>(&silent, Ask(Operation::kSet, kFirst, 600));
  EXPECT_TRUE(agent.gpu(0).WaitForLocked(std::nullopt));
  // It wakes up: the lease is still its own.
  Expect<SetAnswer>(&silent, Ask(Operation::kSet, kFirst, 600));
  EXPECT_TRUE(agent.gpu(0).WaitForLocked(std::nullopt));
  EXPECT_THAT(agent.gpu(0).changes(), ElementsAre("lock 600", "release", "lock 600", "release"));
  Control other = agent.Connect("next");
  Expect<Done>(&other, Ask(Operation::kLease, kFirst));
  EXPECT_EQ(Expect<Refused>(&silent, Ask(Operation::kSet, kFirst, 600)).code, Refusal::kNotLeased);
}

TEST(Agent, RenewalKeepsTheClock) {
  TestAgent agent;
  agent.options().max_silence = std::chrono::seconds(2);
  ASSERT_TRUE(agent.Start());
  Control control = agent.Connect();
  Expect<Done>(&control, Ask(Operation::kLease, kFirst));
  Expect<SetAnswer>(&control, Ask(Operation::kSet, kFirst, 600));
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2500);
  while (std::chrono::steady_clock::now() < until) {
    Expect<Done>(&control, Ask(Operation::kRenew));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(agent.log().Count("event=silent"), 0);
  EXPECT_EQ(agent.gpu(0).locked(), 600);
}

TEST(Agent, OperatorsReleaseEverything) {
  TestAgent agent(3);
  ASSERT_TRUE(agent.Start());
  Control owner = agent.Connect();
  Expect<Done>(&owner, Ask(Operation::kLease, kFirst));
  Expect<SetAnswer>(&owner, Ask(Operation::kSet, kFirst, 600));
  ASSERT_TRUE(agent.gpu(2).LockClock(900));  // Past the agent.
  Control control = agent.Connect();
  const auto all = Expect<ReleaseAllAnswer>(&control, Ask(Operation::kReleaseAll));
  EXPECT_EQ(all.released, 3);
  EXPECT_THAT(all.failed, IsEmpty());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(agent.gpu(i).locked(), std::nullopt);
  EXPECT_EQ(Expect<Refused>(&owner, Ask(Operation::kSet, kFirst, 600)).code, Refusal::kNotLeased);
}

TEST(Agent, OneFailedRestoreStopsNoOther) {
  TestAgent agent(3);
  ASSERT_TRUE(agent.Start());
  {
    Control owner = agent.Connect();
    for (int i = 0; i < 3; ++i) {
      const std::string gpu = "GPU-fake-" + std::to_string(i);
      Expect<Done>(&owner, Ask(Operation::kLease, gpu));
      Expect<SetAnswer>(&owner, Ask(Operation::kSet, gpu, 600));
    }
    agent.gpu(0).FailNext(3);
    agent.gpu(1).Hang();
  }
  EXPECT_TRUE(agent.gpu(2).WaitForLocked(std::nullopt));
  EXPECT_TRUE(agent.gpu(0).WaitForLocked(std::nullopt));
  agent.gpu(1).Resume();
  EXPECT_TRUE(agent.gpu(1).WaitForLocked(std::nullopt));
}

TEST(Agent, ObservesWithoutTouchingAnything) {
  TestAgent agent;
  agent.options().observe = true;
  agent.driver().ForbidClocks();
  ASSERT_TRUE(agent.Start());
  Control control = agent.Connect();
  EXPECT_TRUE(control.hello().observe);
  Expect<Done>(&control, Ask(Operation::kLease, kFirst));
  EXPECT_EQ(Expect<Refused>(&control, Ask(Operation::kSet, kFirst, 600)).code, Refusal::kDenied);
  EXPECT_EQ(Expect<Refused>(&control, Ask(Operation::kReleaseAll)).code, Refusal::kDenied);
  EXPECT_EQ(Expect<EnergyAnswer>(&control, Ask(Operation::kEnergy, kFirst)).joules, 10);
  Expect<Done>(&control, Ask(Operation::kYield, kFirst));
  ASSERT_TRUE(agent.Stop());
  EXPECT_THAT(agent.gpu(0).changes(), IsEmpty());
  EXPECT_FALSE(ReadWholeFile(agent.options().journal_path, 1 << 20));
}

TEST(Agent, SaysWhatItLacksToSetClocks) {
  TestAgent agent;
  agent.driver().ForbidClocks();
  const auto started = agent.Start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kDenied);
  EXPECT_THAT(started.error().message, Mentions("CAP_SYS_ADMIN"));
  EXPECT_THAT(started.error().message, Mentions("--observe"));
}

TEST(Agent, StopGivesEveryClockBack) {
  TestAgent agent;
  ASSERT_TRUE(agent.Start());
  Control control = agent.Connect();
  for (const char* gpu : {kFirst, kSecond}) {
    Expect<Done>(&control, Ask(Operation::kLease, gpu));
    Expect<SetAnswer>(&control, Ask(Operation::kSet, gpu, 600));
  }
  ASSERT_TRUE(agent.Stop());
  EXPECT_EQ(agent.gpu(0).locked(), std::nullopt);
  EXPECT_EQ(agent.gpu(1).locked(), std::nullopt);
  const auto again = Control::Connect(agent.options().socket_path, "", std::chrono::seconds(20));
  EXPECT_FALSE(again);
}

TEST(Agent, StopSaysWhatIsNotBack) {
  TestAgent agent;
  agent.options().stop_patience = std::chrono::milliseconds(50);
  ASSERT_TRUE(agent.Start());
  Control control = agent.Connect();
  Expect<Done>(&control, Ask(Operation::kLease, kFirst));
  Expect<SetAnswer>(&control, Ask(Operation::kSet, kFirst, 600));
  agent.gpu(0).Hang();
  const auto stopped = agent.Stop();
  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().message, HasSubstr(kFirst));
  EXPECT_THAT(stopped.error().message, Mentions(agent.options().journal_path));
  agent.gpu(0).Resume();
  EXPECT_TRUE(agent.gpu(0).WaitForLocked(std::nullopt));
}

TEST(Agent, OnlyOneServesASocket) {
  TestAgent agent;
  ASSERT_TRUE(agent.Start());
  TestAgent second;
  second.options().socket_path = agent.options().socket_path;
  const auto started = second.Start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, Mentions("listens"));
  // And the first one's socket is still there.
  agent.Connect();
}

// Its backlog fills, and connect(2) would wait for as long as it is stopped.
TEST(Agent, AStoppedOneIsNotWaitedFor) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("agent.sock");
  const FileDescriptor listening = ListenAt(path, 0);
  const std::vector<FileDescriptor> waiting = FillBacklog(path);
  const auto control = Control::Connect(path, "", std::chrono::milliseconds(50));
  ASSERT_FALSE(control);
  EXPECT_EQ(control.error().code, ErrorCode::kIo);  // `release` then goes past it.
  EXPECT_THAT(control.error().message, Mentions("50"));
}

TEST(Agent, LimitsConnectionsButLetsRootIn) {
  TestAgent agent;
  agent.options().max_connections = 2;
  ASSERT_TRUE(agent.Start());
  std::vector<Control> controls;
  Result<Control> control =
      Control::Connect(agent.options().socket_path, "", std::chrono::seconds(20));
  while (control && controls.size() < 20) {
    controls.push_back(*std::move(control));
    control = Control::Connect(agent.options().socket_path, "", std::chrono::seconds(20));
  }
  ASSERT_FALSE(control);
  EXPECT_THAT(control.error().message, Mentions("limit"));
  EXPECT_EQ(controls.size(), ::geteuid() == 0 ? 10U : 2U);
  controls.pop_back();
  EXPECT_TRUE(Eventually([&] {
    return Control::Connect(agent.options().socket_path, "", std::chrono::seconds(20)).has_value();
  }));
}

TEST(Agent, StatusSaysWhoHasWhat) {
  TestAgent agent;
  ASSERT_TRUE(agent.Start());
  Control control = agent.Connect("trainer");
  Expect<Done>(&control, Ask(Operation::kLease, kFirst));
  Expect<SetAnswer>(&control, Ask(Operation::kSet, kFirst, 600));
  const auto status = Expect<StatusAnswer>(&control, Ask(Operation::kStatus));
  EXPECT_EQ(status.pid, ::getpid());
  EXPECT_EQ(status.driver, "fake");
  EXPECT_EQ(status.connections, 1);
  ASSERT_EQ(status.gpus.size(), 2U);
  ASSERT_TRUE(status.gpus[0].owner);
  EXPECT_EQ(status.gpus[0].owner->client, "trainer");
  EXPECT_EQ(status.gpus[0].locked_mhz, 600);
  EXPECT_EQ(status.gpus[0].sets, 1);
  EXPECT_FALSE(status.gpus[1].owner);
  EXPECT_EQ(status.gpus[1].locked_mhz, std::nullopt);
}

}  // namespace
}  // namespace perseus::agent
