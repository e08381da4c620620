// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// perseus doctor over simulated GPUs, from outside.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cli/node/doctor_conditions.h"
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
  // Whether it comes true; false after a long while.
  static bool Comes(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
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
  EXPECT_FALSE(gpu.contains("clock_call"));
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

// Two GPUs of a driver that serves one call at a time; and what was measured, for a plan.
TEST_F(DoctorTest, MeasuresWhatPlansCanExpectAndGivesTheClocksBack) {
  Make(
      "serial_calls = true\n[[gpus]]\ncount = 2\ncall_ms = 20\nsettle_ms = 10\n"
      "call_stall_ms = 2\ncounter_period_ms = 20\ncounter_lag_ms = 100\n");
  const std::string file = folder_.Path("conditions.toml");
  const RunResult run = RunPerseus(Arguments({"--json", "--set-clocks", "-o", file}));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const auto json = nlohmann::json::parse(run.out);
  for (const auto& gpu : json["gpus"]) {
    EXPECT_EQ(gpu["clock_call"]["calls"], 10);
    EXPECT_GE(gpu["clock_call"]["median_s"], 0.020);
    EXPECT_GE(gpu["clock_call"]["seen_after_median_s"], 0.030);
    EXPECT_EQ(gpu["clock_effect"]["by_clock"].size(), 4);
    EXPECT_EQ(gpu["clock_effect"]["by_clock"][3]["frequency"], 1410);
    EXPECT_GT(gpu["clock_effect"]["mean_s"], 0.020);
    EXPECT_GT(gpu["call_cost"]["mean_s"], 0.0005);
    EXPECT_GT(gpu["call_cost"]["error_s"], 0);
    EXPECT_TRUE(gpu.contains("transfer_call_cost"));
    EXPECT_GT(gpu["energy_counter"]["lag_s"], 0.02);
    EXPECT_GT(gpu["energy_counter"]["load_w"], gpu["energy_counter"]["idle_w"]);
  }
  EXPECT_EQ(json["together"]["gpus"], 2);
  EXPECT_EQ(json["together"]["serial"], true);
  EXPECT_THAT(Findings(json, "clocks"), HasSubstr("one call at a time"));
  EXPECT_THAT(Findings(json, "conditions"), HasSubstr("perseus plan --conditions"));
  for (int gpu = 0; gpu < 2; ++gpu) EXPECT_EQ(engine_->Snapshot(gpu)->locked_mhz, std::nullopt);

  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_THAT(text, ContainsRegex("switch_latency = \"[0-9.]+ms-[0-9.]+ms\""));
  EXPECT_THAT(text, HasSubstr("switch_stall = "));
  const std::vector<std::string> plan = {"plan",
                                         "examples/gpt3-1.3b-a100-sxm.toml",
                                         "--microbatches",
                                         "4",
                                         "--effort",
                                         "0.001",
                                         "--json",
                                         "--conditions",
                                         file};
  const RunResult planned = RunPerseus(plan);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const auto conditions = nlohmann::json::parse(planned.out)["conditions"];
  EXPECT_GT(conditions["switch_latency_s"], 0.02);
  EXPECT_EQ(conditions["ranges"]["switch_latency_s"].size(), 2);
  EXPECT_EQ(conditions["call_ahead"], "predicted");
}

// Two GPUs at which one clock takes 50 ms longer than the others; the spread is that of one clock.
TEST(DoctorConditions, ClocksThatTakeLongerHaveTheirOwnLatency) {
  Examination examination;
  for (int gpu = 0; gpu < 2; ++gpu) {
    ExaminedGpu& examined = examination.gpus.emplace_back();
    examined.info.name = "GPU";
    examined.effect.emplace().seconds = {.value = 0.02, .error = 0.001, .spread = 0.025};
    for (const int mhz : {600, 900, 1410}) {
      const double seconds = mhz == 600 ? 0.07 + 0.002 * gpu : 0.02;
      examined.effect->targets.push_back(
          {.mhz = mhz, .seconds = {.value = seconds, .error = 0.001, .spread = 0.002}});
    }
  }
  const std::string text = ConditionsFile(examination);
  EXPECT_THAT(text, HasSubstr("switch_latency = \"20.000ms\"\n"));
  EXPECT_THAT(text, HasSubstr("switch_latency_at = \"600=71.000ms\"\n"));
  EXPECT_THAT(text, HasSubstr("switch_latency_spread = \"2.082ms\"\n"));
  // One call after the other: each waits for half of them on average.
  device::TogetherProbe& together = examination.together.emplace();
  together = {.gpus = 2, .alone_seconds = {.value = 0.02}, .together_seconds = {.value = 0.05}};
  EXPECT_THAT(ConditionsFile(examination), HasSubstr("switch_latency_at = \"600=86.000ms\"\n"));
  examination.together.reset();
  for (ExaminedGpu& gpu : examination.gpus) gpu.effect->targets.erase(gpu.effect->targets.begin());
  EXPECT_THAT(ConditionsFile(examination), Not(HasSubstr("switch_latency_at")));
  EXPECT_THAT(ConditionsFile(examination), HasSubstr("switch_latency_spread = \"20.000ms\"\n"));
}

TEST_F(DoctorTest, AFileNeedsMeasurements) {
  Make("[[gpus]]\n");
  const std::string file = folder_.Path("conditions.toml");
  const RunResult run = RunPerseus(Arguments({"-o", file}));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--set-clocks"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

// No clock was set: the exit code says so, and no file pretends otherwise.
TEST_F(DoctorTest, WhatWasNotMeasuredIsNotWritten) {
  Make("[[gpus]]\nrefuse_sets = true\n");
  const std::string file = folder_.Path("conditions.toml");
  const RunResult run = RunPerseus(Arguments({"--json", "--set-clocks", "-o", file}));
  EXPECT_EQ(run.exit_code, 2);
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_THAT(Findings(json, "rights"), HasSubstr("clocks cannot be set"));
  EXPECT_THAT(Findings(json, "conditions"), HasSubstr("not written"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

// NVML and CUDA as libraries that are really loaded.
TEST_F(DoctorTest, MeasuresWhenAClockIsInEffect) {
  Make(
      "[[gpus]]\nuuid = 'GPU-0a1b2c3d-1111-2222-3333-0123456789ab'\ncall_ms = 2\nsettle_ms = 30\n");
  std::vector<std::string> words = Arguments({"--json", "--set-clocks"});
  words[2] = std::string("nvml:") + PERSEUS_FAKE_NVML_LIBRARY;
  RunOptions options;
  options.environment.push_back("PERSEUS_FAKE_NVML=" + Gpus());
  const RunResult run = RunPerseus(words, options);
  EXPECT_EQ(run.exit_code, 0) << run.out;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_TRUE(json["gpus"][0].contains("clock_effect")) << run.out;
  EXPECT_EQ(json["gpus"][0]["clock_effect"]["switches"], 24);
  EXPECT_GE(json["gpus"][0]["clock_effect"]["median_s"], 0.030);
  EXPECT_EQ(engine_->Snapshot(0)->locked_mhz, std::nullopt);
}

// Ctrl-C, and what nobody can catch, in the middle of setting clocks.
TEST_F(DoctorTest, GivesTheClockBackWhenItIsEnded) {
  for (const int signal : {SIGINT, SIGKILL}) {
    Make("[[gpus]]\ncall_ms = 500\nsettle_ms = 0\n");
    std::vector<std::string> words = Arguments({"--set-clocks"});
    words.insert(words.begin(), PERSEUS_BINARY);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    ASSERT_EQ(posix_spawn(&child, PERSEUS_BINARY, nullptr, nullptr, argv.data(), environ), 0);
    EXPECT_TRUE(Comes([&] { return engine_->Snapshot(0)->locked_mhz.has_value(); }));
    ::kill(child, signal);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_TRUE(Comes([&] { return !engine_->Snapshot(0)->locked_mhz.has_value(); })) << signal;
    EXPECT_LT(engine_->Snapshot(0)->set_calls, 10);
    // The agent of its own has gone, too: another may have the GPU.
    EXPECT_TRUE(Comes([&] {
      const RunResult again =
          RunPerseus({"agent", "release", "--all", "--driver", "simulated:" + Gpus(), "--socket",
                      folder_.Path("agent.sock"), "--journal", folder_.Path("journal")});
      return again.exit_code == 0;
    }));
  }
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

TEST_F(DoctorTest, LeavesAnAgentsClocksAlone) {
  Make("[[gpus]]\n");
  const OneHello agent(folder_.Path("agent.sock"), Hello(false, engine_->info(0).uuid));
  const RunResult run = RunPerseus(Arguments({"--set-clocks"}));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, Mentions("first,"));
  EXPECT_EQ(engine_->Snapshot(0)->set_calls, 0);
}

// On a machine that several share, each agent has some of the GPUs.
TEST_F(DoctorTest, SetsClocksThatAreNoneOfTheAgents) {
  Make("[[gpus]]\n");
  const OneHello agent(folder_.Path("agent.sock"), Hello(false, "GPU-other"));
  const RunResult run = RunPerseus(Arguments({"--set-clocks", "--json"}));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["gpus"][0]["clock_call"]["calls"], 10);
  EXPECT_GT(engine_->Snapshot(0)->set_calls, 0);
  EXPECT_EQ(engine_->Snapshot(0)->locked_mhz, std::nullopt);
}

}  // namespace
}  // namespace perseus::cli
