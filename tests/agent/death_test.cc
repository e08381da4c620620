// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "agent/agent_testing.h"
#include "agent/drill.h"
#include "common/file.h"

// However a client or the agent ends, the clocks come back. Real processes; how
// soon is measured by bench/agent_restore.cc, not here.
namespace perseus::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<int> kBoth = {0, 1};

class DeathDrill : public ::testing::TestWithParam<const char*> {
 protected:
  void Begin(DrillOptions options = {}) {
    options.driver = GetParam();
    drill_ = std::make_unique<Drill>(std::move(options));
    ASSERT_TRUE(drill_->StartAgent());
  }
  std::unique_ptr<Program> Client(const std::string& mode, const std::vector<int>& gpus = kBoth) {
    std::unique_ptr<Program> client = drill_->StartClient(mode, gpus);
    EXPECT_NE(client, nullptr);
    for (const int gpu : gpus) EXPECT_FALSE(drill_->AreFree({gpu}));
    return client;
  }
  void ExpectFree(const std::vector<int>& gpus = kBoth) {
    EXPECT_TRUE(drill_->WaitUntilFree(gpus).has_value());
  }
  std::string Journal() { return ReadWholeFile(drill_->JournalPath(), 1 << 20).value_or(""); }
  int Perseus(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), PERSEUS_BINARY);
    const auto place = drill_->PlaceArguments();
    arguments.insert(arguments.end(), place.begin(), place.end());
    Program perseus(std::move(arguments), drill_->Environment());
    return perseus.Wait().value_or(-1000);
  }

  std::unique_ptr<Drill> drill_;
};

TEST_P(DeathDrill, ClientExits) {
  Begin();
  const auto client = Client("exit");
  client->Poke();
  EXPECT_EQ(client->Wait(), 0);
  ExpectFree();
}

TEST_P(DeathDrill, ClientThrows) {
  Begin();
  const auto client = Client("throw");
  client->Poke();
  EXPECT_EQ(client->Wait(), -SIGABRT);
  ExpectFree();
}

TEST_P(DeathDrill, ClientIsKilled) {
  Begin();
  const auto client = Client("wait");
  client->Kill(SIGKILL);
  ExpectFree();
}

TEST_P(DeathDrill, ClientClosesItsSocketAndLives) {
  Begin();
  const auto client = Client("close");
  client->Poke();
  ExpectFree();
}

// The child keeps the connection open; the lease was the parent's.
TEST_P(DeathDrill, ClientForksAndDies) {
  Begin();
  const auto client = Client("fork");
  client->Kill(SIGKILL);
  ExpectFree();
}

TEST_P(DeathDrill, ClientIsStoppedAndGoesOn) {
  DrillOptions options;
  options.agent_arguments = {"--max-silence", "1s"};
  Begin(options);
  const auto client = Client("wait");
  client->Kill(SIGSTOP);
  ExpectFree();
  EXPECT_TRUE(Eventually([this] { return Journal().find("locked") == std::string::npos; }));
  client->Kill(SIGCONT);
  EXPECT_NE(Client("wait"), nullptr);  // Another may have it now.
}

TEST_P(DeathDrill, AgentIsKilledAndStartedAgain) {
  Begin();
  const auto client = Client("wait");
  drill_->agent().Kill(SIGKILL);
  EXPECT_EQ(drill_->agent().Wait(), -SIGKILL);
  EXPECT_FALSE(drill_->AreFree({0}));
  EXPECT_THAT(Journal(), HasSubstr("locked GPU-"));
  ASSERT_TRUE(drill_->StartAgent());
  ExpectFree();
}

TEST_P(DeathDrill, AgentIsKilledAndTheServiceManagerReleases) {
  Begin();
  const auto client = Client("wait");
  drill_->agent().Kill(SIGKILL);
  EXPECT_EQ(drill_->agent().Wait(), -SIGKILL);
  EXPECT_EQ(Perseus({"agent", "release", "--journaled"}), 0);
  EXPECT_TRUE(drill_->AreFree(kBoth));
  EXPECT_THAT(Journal(), Not(HasSubstr("locked")));
}

TEST_P(DeathDrill, AgentIsTerminated) {
  Begin();
  const auto client = Client("wait");
  drill_->agent().Kill(SIGTERM);
  EXPECT_EQ(drill_->agent().Wait(), 0);
  EXPECT_TRUE(drill_->AreFree(kBoth));
  EXPECT_THAT(Journal(), Not(HasSubstr("locked")));
}

TEST_P(DeathDrill, JournalIsTornWhenTheAgentIsKilled) {
  Begin();
  const auto client = Client("wait");
  drill_->agent().Kill(SIGKILL);
  EXPECT_EQ(drill_->agent().Wait(), -SIGKILL);
  const std::string text = Journal();
  ASSERT_TRUE(WriteFileAtomically(drill_->JournalPath(), text.substr(0, text.size() / 2)));
  ASSERT_TRUE(drill_->StartAgent());
  ExpectFree();
}

TEST_P(DeathDrill, TwoClientsWantOneGpu) {
  Begin();
  const auto first = Client("wait", {0});
  EXPECT_EQ(drill_->StartClient("wait", {0}), nullptr);
  first->Kill(SIGKILL);
  ExpectFree({0});
  EXPECT_NE(Client("wait", {0}), nullptr);
}

// One GPU's driver takes 1.5 s a call and is busy with it; the other GPU comes
// back while that call lasts.
TEST_P(DeathDrill, ASlowDriverDelaysNoOtherGpu) {
  DrillOptions options;
  options.call_ms = {1500, 1};
  Begin(options);
  const auto slow = Client("wait", {0});
  const auto quick = Client("wait", {1});
  slow->Kill(SIGKILL);
  quick->Kill(SIGKILL);
  ExpectFree({1});
  EXPECT_FALSE(drill_->AreFree({0}));  // Its call began first, and takes longer.
  ExpectFree({0});
}

TEST_P(DeathDrill, OperatorReleasesThroughTheAgentAndWithoutOne) {
  Begin();
  const auto client = Client("wait");
  EXPECT_EQ(Perseus({"agent", "release", "--all"}), 0);
  EXPECT_TRUE(drill_->AreFree(kBoth));
  drill_->agent().Kill(SIGTERM);
  EXPECT_EQ(drill_->agent().Wait(), 0);
  ASSERT_TRUE(drill_->gpus().LockClock(0, Drill::kLowMhz));
  ASSERT_TRUE(drill_->gpus().LockClock(1, Drill::kLowMhz));
  EXPECT_EQ(Perseus({"agent", "release", "--gpu", "1"}), 0);
  EXPECT_TRUE(drill_->AreFree({1}));
  EXPECT_FALSE(drill_->AreFree({0}));
  EXPECT_EQ(Perseus({"agent", "release", "--all"}), 0);
  EXPECT_TRUE(drill_->AreFree(kBoth));
}

TEST_P(DeathDrill, AnAgentThatDoesNotAnswerIsPassedBy) {
  Begin();
  const auto client = Client("wait");
  drill_->agent().Kill(SIGSTOP);
  EXPECT_EQ(Perseus({"agent", "release", "--all"}), 0);
  EXPECT_TRUE(drill_->AreFree(kBoth));
  drill_->agent().Kill(SIGCONT);
}

// "nvml" is our NVML driver with a libnvidia-ml.so.1 over the same GPUs.
INSTANTIATE_TEST_SUITE_P(Drivers, DeathDrill, ::testing::Values("simulated", "nvml"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace perseus::agent
