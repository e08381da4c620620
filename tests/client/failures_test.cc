// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What goes wrong around a client: trainers that stop, agents that restart or
// hang, servers that forget or do not wait.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/agent_testing.h"
#include "client/clock_caller.h"
#include "client/fake_server.h"
#include "client/hot_page.h"
#include "client/shared_state.h"
#include "client/threads.h"
#include "client/whole_client_testing.h"
#include "client/withholding_proxy.h"
#include "common/file_descriptor.h"
#include "common/temporary_directory.h"
#include "device/simulated/simulated_gpu.h"
#include "support/mentions.h"
#include "support/unix_listener.h"

namespace perseus::client {
namespace {

using FailuresTest = WholeClientTest;

TEST_F(FailuresTest, ASweepGivesTheClockBackWhenTheTrainerStops) {
  MakeQuickGpus();
  FakeServer server;
  server.SetJobState("profiling");
  ASSERT_EQ(OpenToSweep(server, 1000), PERSEUS_OK);  // It stays at the first clock.
  const auto sweeps = [this](const auto&) { return Gpu().locked_mhz == 1400; };
  ASSERT_TRUE(TrainUntil(sweeps));
  perseus_step_begin(client_, ++iteration_);
  perseus_instruction_begin(client_, PERSEUS_FORWARD, 0, 0);
  EXPECT_TRUE(agent::Eventually([this] { return !Gpu().locked_mhz; }));
  EXPECT_EQ(Stats().state, PERSEUS_STATE_PROFILING);
  perseus_instruction_end(client_, PERSEUS_FORWARD, 0, 0);
  perseus_step_end(client_, 0);
  EXPECT_TRUE(TrainUntil(sweeps));
}

TEST_F(FailuresTest, AClockThatARestartedAgentGaveBackIsSetAgain) {
  agent::TestAgent agent(1);
  ASSERT_TRUE(agent.Start());
  FakeServer server;
  server.SetPlan(Plan(1, 1200, 1200), 1);
  url_ = server.url();
  device_ = "agent:" + agent.options().socket_path;
  ASSERT_EQ(Open(), PERSEUS_OK);
  const auto follows = [&](const auto&) { return agent.gpu(0).locked() == 1200; };
  ASSERT_TRUE(TrainUntil(follows));
  ASSERT_TRUE(agent.Stop());
  ASSERT_EQ(agent.gpu(0).locked(), std::nullopt);
  ASSERT_TRUE(agent.Start());
  EXPECT_TRUE(TrainUntil(follows));
  Close();
}

// What the agent has to say of conditions, it says in its own time.
TEST_F(FailuresTest, AnAgentThatAnswersLateDelaysNoClock) {
  agent::TestAgent agent(1);
  ASSERT_TRUE(agent.Start());
  const std::string path = folder_ / "late.sock";
  WithholdingProxy proxy(path, agent.options().socket_path, "conditions");
  FakeServer server;
  server.SetPlan(Plan(1, 900, 1200), 1);
  url_ = server.url();
  device_ = "agent:" + path;
  ASSERT_EQ(Open(), PERSEUS_OK);
  const auto tells_of_agent = [&](const auto&) {
    const auto calls = server.Calls("POST", "/iterations");
    return !calls.empty() && calls.back().body.find("\"agent\":{\"version\"") != std::string::npos;
  };
  ASSERT_TRUE(TrainUntil(tells_of_agent));
  proxy.Withhold();
  // Clocks are set while one and the same question waits for its answer.
  int question = 0;
  std::uint64_t before = 0;
  EXPECT_TRUE(TrainUntil([&](const auto& stats) {
    if (!proxy.is_waited_for() || proxy.withheld() != question) {
      question = proxy.withheld();
      before = stats.calls;
      return false;
    }
    return stats.calls >= before + 2;
  }));
  // An agent that does not answer has nothing to say.
  EXPECT_TRUE(TrainUntil([&](const auto& stats) { return !tells_of_agent(stats); }));
  // Nor did it cost the connection that has the clock.
  EXPECT_EQ(Stats().refused, 0U);
  EXPECT_EQ(agent.log().Count("lease_ended"), 0);
  Close();
}

// It is the driver's again, so a rank that may set none any more is measured at it.
TEST_F(FailuresTest, AClockThatAnAgentGaveBackIsHeldByNobody) {
  agent::TestAgent agent(1);
  ASSERT_TRUE(agent.Start());
  FakeServer server;
  server.SetPlan(Plan(1, 1200, 1200), 1);
  device_ = "agent:" + agent.options().socket_path;
  ASSERT_EQ(OpenToSweep(server, 4), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([&](const auto&) { return agent.gpu(0).locked() == 1200; }));
  ASSERT_TRUE(agent.Stop());
  agent.gpu(0).FailNext(1'000'000);
  ASSERT_TRUE(agent.Start());
  std::string plan = Plan(2, 1200, 1200);
  plan.insert(1, "\"profile_wanted\":true,");
  server.SetPlan(plan, 2);
  EXPECT_TRUE(TrainUntil([&](const auto&) {
    const auto calls = server.Calls("POST", "/measurements");
    return !calls.empty() && calls.back().body.find("\"done\":true") != std::string::npos;
  }));
  agent.gpu(0).FailNext(0);
  Close();
}

TEST_F(FailuresTest, AServerThatForgotItsPlansIsFollowed) {
  FakeServer server;
  server.SetPlan(Plan(7, 1000, 1400), 7);
  url_ = server.url();
  ASSERT_EQ(Open(), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.plan_version == 7; }));
  server.SetPlan(Plan(3, 1000, 1400), 3);  // Restored from a backup.
  EXPECT_TRUE(TrainUntil([](const auto& stats) { return stats.plan_version == 3; }));
  EXPECT_GE(server.Calls("POST", "/ranks").size(), 2U);
}

TEST_F(FailuresTest, AServerThatDoesNotWaitIsNotAskedWithoutEnd) {
  FakeServer server;
  server.SetHasty(true);
  url_ = server.url();
  ASSERT_EQ(Open(), PERSEUS_OK);
  ASSERT_TRUE(server.WaitForCalls("GET", "/plan", 2));
  EXPECT_EQ(LastError(), "");  // That there is no plan yet is no fault.
  for (int i = 0; i < 10; ++i) Iterate(++iteration_);
  EXPECT_LT(server.Calls("GET", "/plan").size(), 50U);
  server.SetPlan(Plan(1, 1000, 1400), 1);
  EXPECT_TRUE(TrainUntil([](const auto& stats) { return stats.plan_version == 1; }));
}

TEST_F(FailuresTest, WhichServerIsAtFaultIsSaidOnceInASentence) {
  {
    FakeServer server;
    url_ = server.url();
    server.AnswerAlways("no JSON");
    ASSERT_EQ(Open(), PERSEUS_OK);
    EXPECT_TRUE(agent::Eventually([this] { return !LastError().empty(); }));
    EXPECT_EQ(LastError().rfind("the server " + url_ + ": ", 0), 0U) << LastError();
    Close();
  }
  ASSERT_EQ(Open(), PERSEUS_OK);  // Nobody listens there any more.
  EXPECT_TRUE(agent::Eventually([this] { return !LastError().empty(); }));
  EXPECT_EQ(LastError().rfind("Cannot reach " + url_ + ": Connection refused", 0), 0U)
      << LastError();
}

TEST_F(FailuresTest, AStoppedClientDoesNothingUntilItIsClosed) {
  ASSERT_EQ(Open(), PERSEUS_OK);
  Iterate(++iteration_);
  perseus_client_stop(client_);
  perseus_client_stop(client_);
  Iterate(++iteration_);
  EXPECT_EQ(perseus_client_get_state(client_), PERSEUS_STATE_CLOSED);
  EXPECT_EQ(perseus_straggler_set(client_, 0, 0, 2, nullptr), PERSEUS_CLOSED);
  perseus_client_stop(nullptr);
}

TEST(SharedState, APlanIsStaleWithoutAnAnswerWhoeverStandsStill) {
  const auto state_of = [](const std::string& server) {
    auto page = MapHotPage();
    EXPECT_TRUE(page);
    ClientSettings settings;
    settings.server = server;
    return std::make_unique<SharedState>(std::move(settings), std::move(*page));
  };
  const auto state = state_of("http://127.0.0.1:1");
  const std::int64_t now_ns = MonotonicNs();
  state->SetAnswered(now_ns);
  EXPECT_TRUE(state->plan_fresh(now_ns + 59 * kSecondNs));
  EXPECT_FALSE(state->plan_fresh(now_ns + 61 * kSecondNs));
  EXPECT_TRUE(state_of("")->plan_fresh(now_ns + 61 * kSecondNs));  // Nobody to ask.
}

TEST(SharedState, NobodyListensWhereTheServerNeverAnswered) {
  Result<HotPagePointer> page = MapHotPage();
  ASSERT_TRUE(page);
  ClientSettings settings;
  settings.server = "http://127.0.0.1:9";
  SharedState state(std::move(settings), std::move(*page));
  state.SetAnswered(MonotonicNs() - 61 * kSecondNs);
  state.page().listens.store(1);
  std::thread clock([&] { RunClockThread(&state); });
  const std::int64_t deadline_ns = MonotonicNs() + 20 * kSecondNs;
  while (state.page().listens.load() != 0 && MonotonicNs() < deadline_ns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(state.page().listens.load(), 0U);
  EXPECT_EQ(state.stats().state, PERSEUS_STATE_RELEASED);
  state.StopClock();
  clock.join();
}

TEST(SharedState, WhoWasRefusedConnectsNoMore) {
  const auto state_of = [](const std::string& server) {
    auto page = MapHotPage();
    EXPECT_TRUE(page);
    ClientSettings settings;
    settings.server = server;
    return std::make_unique<SharedState>(std::move(settings), std::move(*page));
  };
  const auto state = state_of("http://127.0.0.1:9");
  EXPECT_EQ(state->stats().state, PERSEUS_STATE_CONNECTING);
  state->SetRegistrationFailed("it did not take rank 0: there is no job j-1");
  EXPECT_EQ(state->stats().state, PERSEUS_STATE_RELEASED);
  state->SetRegistered("j-1");  // It was created meanwhile.
  EXPECT_EQ(state->stats().state, PERSEUS_STATE_WAITING);
  EXPECT_EQ(state_of("")->stats().state, PERSEUS_STATE_WAITING);  // For the trainer's own plans.
}

TEST(SharedState, WhereNobodyTakesStepPlansTheNewestFourStay) {
  auto page = MapHotPage();
  ASSERT_TRUE(page);
  SharedState state(ClientSettings{}, std::move(*page));
  for (int k = 1; k <= 6; ++k) {
    auto plan = std::make_shared<RankPlan>();
    plan->iteration = k;
    state.AddStepPlan(plan);
  }
  EXPECT_EQ(state.stats().step_plans_late, 2U);
  const auto left = state.TakeStepPlans();
  ASSERT_EQ(left.size(), 4U);
  EXPECT_EQ(left.front()->iteration, 3);
  EXPECT_EQ(left.back()->iteration, 6);
}

TEST(ClockCaller, NoticesThatAnAgentLeftAndCameBack) {
  agent::TestAgent agent(1);
  ASSERT_TRUE(agent.Start());
  ClockCaller caller(false);
  ASSERT_TRUE(caller.Open("agent:" + agent.options().socket_path, "test", "", 0));
  std::atomic<std::int64_t> in_driver_since = 0;
  EXPECT_TRUE(caller.Call(900, &in_driver_since).ok);
  EXPECT_FALSE(caller.TakeClockLost());
  ASSERT_TRUE(agent.Stop());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(caller.EnergyJoules());
  EXPECT_TRUE(caller.energy_exhausted());
  EXPECT_TRUE(caller.TakeClockLost());
  EXPECT_FALSE(caller.TakeClockLost());
  EXPECT_FALSE(caller.Call(900, &in_driver_since).ok);
  ASSERT_TRUE(agent.Start());
  EXPECT_TRUE(caller.Call(900, &in_driver_since).ok);
  EXPECT_FALSE(caller.TakeClockLost());
  EXPECT_TRUE(caller.EnergyJoules());
}

// The GPU of another job must not be taken for one's own.
TEST(ClockCaller, RefusesAGpuWhereItIsNotSureWhichOneIsMeant) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("perseus-whose-gpu-{}", getpid());
  const auto error_of = [&](const std::vector<std::pair<std::string, bool>>& gpus,
                            const std::string& uuid, int index) -> std::string {
    std::string config;
    for (const auto& [name, mig] : gpus)
      config += fmt::format("[[gpus]]\nname = \"{}\"\nmig = {}\n", name, mig);
    std::filesystem::remove(file);
    const auto made = device::CreateSimulatedGpus(file, config, "the test");
    EXPECT_TRUE(made) << made.error().message;
    ClockCaller caller(false);
    const auto opened = caller.Open("simulated:" + file.string(), "test", uuid, index);
    return opened ? "" : opened.error().message;
  };
  EXPECT_EQ(error_of({{"A100", false}, {"A100", false}}, "cuda:1", 0), "");
  EXPECT_THAT(error_of({{"A100", false}, {"T4", false}}, "cuda:1", 0),
              Mentions("A100", "T4", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "gpu_uuid="));
  EXPECT_EQ(error_of({{"A100", false}, {"T4", false}}, "", 1), "");
  EXPECT_THAT(error_of({{"A100", false}}, "cuda:1", 0), Mentions("gpu_uuid=", "gpu_index="));
  EXPECT_THAT(error_of({{"A100", false}}, "cuda:x", 0), Mentions("cuda:N", "cuda:x"));
  EXPECT_THAT(error_of({{"A100", false}, {"A100", true}}, "", 1), Mentions("MIG"));
  EXPECT_EQ(error_of({{"A100", false}, {"A100", true}}, "", 0), "");
  std::filesystem::remove(file);
}

// Also through an agent. A clock that never comes is waited for twice.
TEST(ClockCaller, SeesWhenAClockIsInEffect) {
  agent::TestAgent agent(1);
  ASSERT_TRUE(agent.Start());
  ClockCaller caller(false);
  ASSERT_TRUE(caller.Open("agent:" + agent.options().socket_path, "test", "", 0));
  std::atomic<std::int64_t> in_driver_since = 0;
  agent.gpu(0).SettleAfter(3);
  const ClockCaller::Outcome called = caller.Call(900, &in_driver_since);
  ASSERT_TRUE(called.ok);
  EXPECT_EQ(agent.gpu(0).clock_reads(), 4);
  EXPECT_EQ(caller.latency().Settlings(900), 1);
  EXPECT_GE(caller.latency().SettlingNs(900), 1'500'000);  // Half a millisecond between readings.
  EXPECT_GE(called.effective_ns - called.begin_ns, 1'500'000);
  agent.gpu(0).SettleAfter(1'000'000);
  for (const int mhz : {600, 1500, 600, 1500}) EXPECT_TRUE(caller.Call(mhz, &in_driver_since).ok);
  const int reads = agent.gpu(0).clock_reads();
  for (const int mhz : {600, 1500}) EXPECT_TRUE(caller.Call(mhz, &in_driver_since).ok);
  EXPECT_EQ(agent.gpu(0).clock_reads(), reads);
  EXPECT_EQ(caller.latency().Settlings(600), 0);
  agent.gpu(0).SettleAfter(0);
  EXPECT_TRUE(caller.Call(1200, &in_driver_since).ok);
  EXPECT_EQ(caller.latency().Settlings(1200), 1);
}

TEST(ClockCaller, ALongSilenceMayHaveCostTheClock) {
  agent::TestAgent agent(1);
  agent.options().max_silence = std::chrono::milliseconds(50);
  ASSERT_TRUE(agent.Start());
  ClockCaller caller(false);
  ASSERT_TRUE(caller.Open("agent:" + agent.options().socket_path, "test", "", 0));
  std::atomic<std::int64_t> in_driver_since = 0;
  EXPECT_TRUE(caller.Call(900, &in_driver_since).ok);
  EXPECT_TRUE(agent.gpu(0).WaitForLocked(std::nullopt));  // As after SIGSTOP.
  caller.KeepAlive(MonotonicNs());
  EXPECT_TRUE(caller.TakeClockLost());
  EXPECT_TRUE(caller.Call(900, &in_driver_since).ok);
  const std::vector<std::string> changes = agent.gpu(0).changes();
  ASSERT_GE(changes.size(), 3U);
  EXPECT_EQ(changes[2], "lock 900");
}

TEST(AgentDriver, AnAgentThatTakesNoConnectionIsAnError) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("agent.sock");
  const FileDescriptor listening = ListenAt(path, 0);
  const std::vector<FileDescriptor> waiting = FillBacklog(path);
  const auto driver = AgentDriver::Connect(path, "test");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kIo);
  EXPECT_NE(driver.error().message.find("takes no connection"), std::string::npos);
}

#if !defined(__SANITIZE_THREAD__)  // Which does not follow a fork of a program with threads.
TEST(AgentDriver, TheClockComesBackThoughAChildHoldsTheConnection) {
  agent::TestAgent agent(1);
  agent.options().max_silence = std::chrono::seconds(300);
  ASSERT_TRUE(agent.Start());
  auto driver = AgentDriver::Connect(agent.options().socket_path, "test");
  ASSERT_TRUE(driver);
  ASSERT_TRUE((*driver)->gpus()[0]->LockClock(900));
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    char byte = 0;
    static_cast<void>(!::read(ends[0], &byte, 1));  // Until the parent lets go.
    _exit(0);
  }
  driver->reset();
  EXPECT_TRUE(agent.gpu(0).WaitForLocked(std::nullopt));
  ASSERT_TRUE(to.Close());
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}
#endif

}  // namespace
}  // namespace perseus::client
