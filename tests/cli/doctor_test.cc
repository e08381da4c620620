// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// perseus doctor over simulated GPUs, from outside.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cli/run_perseus.h"
#include "common/file_descriptor.h"
#include "device/simulated/simulated_gpu.h"
#include "support/mentions.h"
#include "support/unix_listener.h"

namespace perseus::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class DoctorTest : public testing::Test {
 protected:
  void Make(const std::string& config) {
    ASSERT_TRUE(device::CreateSimulatedGpus(Gpus(), config, "test.toml").has_value());
    auto gpus = device::SimulatedGpus::Open(Gpus());
    ASSERT_TRUE(gpus.has_value());
    engine_ = *std::move(gpus);
  }
  std::string Gpus() const { return folder_.Path("gpus"); }
  std::vector<std::string> Arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {
        "doctor",    "--driver", "simulated:" + Gpus(), "--socket", folder_.Path("agent.sock"),
        "--seconds", "0.3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  // Of `about`: "level: message", joined.
  static std::string Findings(const nlohmann::json& json, const std::string& about) {
    std::string text;
    for (const auto& finding : json["findings"]) {
      if (finding["about"] != about) continue;
      text += finding["level"].get<std::string>() + ": " + finding["message"].get<std::string>() +
              " TO DO " + finding["fix"].get<std::string>() + "\n";
    }
    return text;
  }

  TemporaryFolder folder_;
  std::unique_ptr<device::SimulatedGpus> engine_;
};

TEST_F(DoctorTest, AGoodNodeCanFollowPlans) {
  Make("[[gpus]]\ncount = 2\nname = 'Test GPU'\nidle_watts = 70\ncounter_period_ms = 20\n");
  const RunResult text = RunPerseus(Arguments());
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("Test GPU"));
  EXPECT_THAT(text.out, Mentions("81", "210-1410"));
  EXPECT_THAT(text.out, HasSubstr("To do: run 'perseus agent run'"));
  EXPECT_EQ(text.err, "");

  const RunResult run = RunPerseus(Arguments({"--json"}));
  EXPECT_EQ(run.exit_code, 0);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["can_follow_plans"], true);
  EXPECT_EQ(json["may_set_clocks"], true);
  EXPECT_EQ(json["agent"]["sets_clocks"], false);
  ASSERT_EQ(json["gpus"].size(), 2);
  const auto& gpu = json["gpus"][1];
  EXPECT_EQ(gpu["index"], 1);
  EXPECT_EQ(gpu["clocks_mhz"].size(), 81);
  EXPECT_EQ(gpu["energy_counter"]["readable"], true);
  EXPECT_GT(gpu["energy_counter"]["period_s"], 0);
  EXPECT_EQ(gpu["energy_counter"]["read_every_s"], 0.01);
  EXPECT_EQ(gpu["power_w"], 70);
  EXPECT_EQ(gpu["power_limit_w"], 400);
  // Nothing was changed.
  EXPECT_EQ(engine_->Snapshot(0)->set_calls, 0);
  EXPECT_EQ(engine_->Snapshot(0)->reset_calls, 0);
}

TEST_F(DoctorTest, WithoutTheRightNobodyCan) {
  Make("[[gpus]]\nrefuse_sets = true\n");
  const RunResult text = RunPerseus(Arguments());
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_THAT(text.out, Mentions("see", "1", "fault"));
  const RunResult run = RunPerseus(Arguments({"--json"}));
  EXPECT_EQ(run.exit_code, 2);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["can_follow_plans"], false);
  EXPECT_THAT(Findings(json, "rights"), StartsWith("fault: "));
  EXPECT_THAT(Findings(json, "rights"), Mentions("DO"));
}

TEST_F(DoctorTest, WithoutADriverNobodyCan) {
  const RunResult run = RunPerseus({"doctor", "--driver", "nvml:/nonexistent/libnvidia-ml.so.1",
                                    "--socket", folder_.Path("none"), "--json"});
  EXPECT_EQ(run.exit_code, 2);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_THAT(Findings(json, "driver"), StartsWith("fault: "));
  EXPECT_TRUE(json["may_set_clocks"].is_null());
  EXPECT_EQ(json["gpus"].size(), 0);
}

// NVML as a library that is really loaded.
TEST_F(DoctorTest, LooksThroughNvml) {
  Make("[[gpus]]\ncount = 2\n");
  std::vector<std::string> words = Arguments({"--json"});
  words[2] = std::string("nvml:") + PERSEUS_FAKE_NVML_LIBRARY;
  RunOptions options;
  options.environment.push_back("PERSEUS_FAKE_NVML=" + Gpus());
  const RunResult run = RunPerseus(words, options);
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json["gpus"].size(), 2) << run.out;
  EXPECT_EQ(json["gpus"][1]["energy_counter"]["readable"], true);
}

TEST_F(DoctorTest, NamesWhatElseActsOnTheGpus) {
  Make(R"(
[[gpus]]
clocks_mhz = [1410]
[[gpus]]
power_limit_watts = 250
default_power_limit_watts = 400
throttle_reasons = 64
power_profiles = ["MAX_Q"]
power_floor_watts = 200
mig = true
[[gpus]]
counter_period_ms = 600000
errors = [{call = "conditions", every = 1, code = "gpu_is_lost"}]
[[gpus]]
errors = [{call = "energy", every = 1, code = "not_supported"}]
)");
  const RunResult run = RunPerseus(Arguments({"--json"}));
  EXPECT_EQ(run.exit_code, 2);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_THAT(Findings(json, "GPU 0"), Mentions("1410"));
  const std::string busy = Findings(json, "GPU 1");
  EXPECT_THAT(busy, ContainsRegex("warning: [^:]*thermal"));
  EXPECT_THAT(busy, Mentions("MAX_Q"));
  EXPECT_THAT(busy, Mentions("200"));
  EXPECT_THAT(busy, Mentions("250"));
  EXPECT_THAT(busy, Mentions("MIG"));
  EXPECT_THAT(busy, Not(HasSubstr("fault: ")));
  EXPECT_THAT(Findings(json, "GPU 2"), Mentions("bus;"));
  EXPECT_THAT(Findings(json, "GPU 2"), Mentions("twice"));
  EXPECT_THAT(Findings(json, "GPU 3"), Mentions("offer"));
}

// Answers one hello at the agent's socket.
class OneHello {
 public:
  OneHello(const std::string& path, std::string answer) : answer_(std::move(answer)) {
    listener_ = ListenAt(path, 1);
    thread_ = std::thread([this] { Serve(); });
  }
  OneHello(const OneHello&) = delete;
  OneHello& operator=(const OneHello&) = delete;
  ~OneHello() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

 private:
  void Serve() {
    const FileDescriptor peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char byte = 0;
    while (peer.valid() && ::read(peer.get(), &byte, 1) == 1 && byte != '\n') {
    }
    if (!peer.valid()) return;
    EXPECT_GT(::write(peer.get(), answer_.data(), answer_.size()), 0);
    while (::read(peer.get(), &byte, 1) == 1) {
    }
  }

  std::string answer_;
  FileDescriptor listener_;
  std::thread thread_;
};

std::string Hello(bool observe, const std::string& uuid) {
  return std::string(
             R"({"id":1,"op":"hello","ok":true,"version":1,"max_silence_s":30,"observe":)") +
         (observe ? "true" : "false") + R"(,"gpus":[{"uuid":")" + uuid +
         R"(","name":"x","index":0,"clocks_mhz":[1,2],"owner_pid":null}]})" + "\n";
}

TEST_F(DoctorTest, AnAgentSetsClocksForOthers) {
  Make("[[gpus]]\nrefuse_sets = true\n");
  const OneHello agent(folder_.Path("agent.sock"), Hello(false, "GPU-other"));
  const RunResult run = RunPerseus(Arguments({"--json"}));
  EXPECT_EQ(run.exit_code, 0) << run.out;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["agent"]["sets_clocks"], true);
  EXPECT_THAT(Findings(json, "agent"), StartsWith("ok: "));
  EXPECT_THAT(Findings(json, "rights"), Mentions("not:"));
}

TEST_F(DoctorTest, AnAgentThatOnlyWatchesIsNoHelp) {
  Make("[[gpus]]\nrefuse_sets = true\n");
  const OneHello agent(folder_.Path("agent.sock"), Hello(true, "GPU-other"));
  const RunResult run = RunPerseus(Arguments({"--json"}));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(Findings(nlohmann::json::parse(run.out), "agent"), Mentions("watches:"));
}

}  // namespace
}  // namespace perseus::cli
