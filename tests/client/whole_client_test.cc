// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
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
#include "client/withholding_proxy.h"
#include "common/file_descriptor.h"
#include "common/temporary_directory.h"
#include "device/simulated/simulated_gpu.h"
#include "perseus/client.h"
#include "support/mentions.h"
#include "support/unix_listener.h"

namespace perseus::client {
namespace {

// F0 F1 B0 B1 of stage 0, 20 ms each.
std::string PlanText(int version, int low, int high) {
  const auto row = [](const char* type, int microbatch, int mhz, double start) {
    return "[\"" + std::string(type) + "\",0," + std::to_string(microbatch) + "," +
           std::to_string(mhz) + "," + std::to_string(start) + ",0.02]";
  };
  return R"({"version":)" + std::to_string(version) +
         R"(,"reason":"target","iteration_time_s":0.08,"computations":[)" + row("F", 0, low, 0) +
         "," + row("F", 1, low, 0.02) + "," + row("B", 0, high, 0.04) + "," +
         row("B", 1, high, 0.06) + "]}";
}

// A client through its C ABI, and a trainer that only sleeps.
class WholeClientTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("perseus-" + std::to_string(getpid()) + "-" +
               std::to_string(testing::UnitTest::GetInstance()->current_test_info()->line()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    Close();
    std::filesystem::remove_all(folder_);
  }

  void MakeGpus(const std::string& more) {
    const std::string file = folder_ / "gpus";
    const auto made = device::CreateSimulatedGpus(
        file, "[[gpus]]\nclocks_mhz = [800, 1000, 1200, 1400]\n" + more, "the test");
    ASSERT_TRUE(made) << made.error().message;
    auto opened = device::SimulatedGpus::Open(file);
    ASSERT_TRUE(opened) << opened.error().message;
    gpus_ = std::move(*opened);
    device_ = "simulated:" + file;
  }

  // One whose calls and counters are quick, as sweeps need it.
  void MakeQuickGpus() { MakeGpus("call_ms = 1\nsettle_ms = 0\ncounter_period_ms = 5\n"); }

  // Opens a client that measures a profile when the server asks for one.
  perseus_status OpenToSweep(const FakeServer& server, int iterations) {
    url_ = server.url();
    return Open([iterations](perseus_client_options* options) {
      options->flags = PERSEUS_PROFILE;
      options->profile_iterations = iterations;
    });
  }

  perseus_status Open(const std::function<void(perseus_client_options*)>& change = {}) {
    perseus_client_options options;
    perseus_client_options_init(&options, sizeof(options));
    options.server = url_.empty() ? nullptr : url_.c_str();
    options.job_json = url_.empty() ? nullptr : R"({"client_key":"k"})";
    options.device = device_.empty() ? nullptr : device_.c_str();
    options.report_interval_seconds = 0.1;
    if (change) change(&options);
    char* message = nullptr;
    const perseus_status status = perseus_client_open(&options, &client_, &message);
    message_ = message == nullptr ? "" : message;
    perseus_client_free_text(message);
    return status;
  }

  void Close() {
    perseus_client_close(client_);
    client_ = nullptr;
  }

  void Iterate(int number, std::chrono::milliseconds each = std::chrono::milliseconds(20)) {
    perseus_step_begin(client_, number);
    for (int i = 0; i < 4; ++i) {
      const auto type = i < 2 ? PERSEUS_FORWARD : PERSEUS_BACKWARD;
      perseus_instruction_begin(client_, type, 0, i % 2);
      std::this_thread::sleep_for(each);
      perseus_instruction_end(client_, type, 0, i % 2);
    }
    perseus_step_end(client_, 0);
  }

  // Trains until `is` holds; false: not within 20 s, and where the client then is.
  testing::AssertionResult TrainUntil(const std::function<bool(const perseus_client_stats&)>& is) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      Iterate(++iteration_);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // For the background thread.
      if (is(Stats())) return testing::AssertionSuccess();
    }
    const perseus_client_stats stats = Stats();
    return testing::AssertionFailure()
           << "state " << stats.state << ", plan " << stats.plan_version << ", level "
           << stats.level << ", " << stats.iterations << " of " << iteration_ << " iterations, "
           << stats.calls << " calls, " << stats.refused << " refused, " << stats.clock_mhz
           << " MHz, error: " << LastError();
  }

  // The background thread reads events a little later.
  testing::AssertionResult EverythingWasSeen() {
    return TrainUntil([&](const auto& stats) {
      return stats.instructions == 4 * static_cast<std::uint64_t>(iteration_) &&
             stats.lost_events == 0;
    });
  }

  perseus_client_stats Stats() const {
    perseus_client_stats stats = {};
    stats.struct_size = sizeof(stats);
    EXPECT_EQ(perseus_client_get_stats(client_, &stats, nullptr), PERSEUS_OK);
    return stats;
  }

  std::string LastError() const {
    std::array<char, 1024> text = {};
    perseus_client_last_error(client_, text.data(), text.size());
    return text.data();
  }

  device::SimulatedSnapshot Gpu() const {
    const auto snapshot = gpus_->Snapshot(0);
    EXPECT_TRUE(snapshot);
    return snapshot.value_or(device::SimulatedSnapshot{});
  }

  std::filesystem::path folder_;
  std::unique_ptr<device::SimulatedGpus> gpus_;
  std::string url_;
  std::string device_;
  std::string message_;
  perseus_client* client_ = nullptr;
  int iteration_ = 0;
};

}  // namespace
}  // namespace perseus::client

// The client through its C ABI: real threads and sockets, a server that says
// what the test wants, simulated GPUs. No test here asserts how long anything
// takes; deadlines are such that only a hang misses them.

namespace perseus::client {
namespace {

TEST_F(WholeClientTest, FollowsPlansAndGivesTheClockBack) {
  MakeGpus("call_ms = 2\nsettle_ms = 0\n");
  FakeServer server;
  server.SetPlan(PlanText(1, 1000, 1400), 1);
  url_ = server.url();
  ASSERT_EQ(Open(), PERSEUS_OK) << message_;
  ASSERT_TRUE(TrainUntil([](const auto& stats) {
    return stats.state == PERSEUS_STATE_FOLLOWING && stats.calls >= 6;
  })) << LastError();
  EXPECT_EQ(Stats().plan_version, 1);
  EXPECT_TRUE(std::isnan(Stats().saving_percent));  // This server does not say it.
  EXPECT_GT(Stats().joules, 0);
  EXPECT_EQ(perseus_client_listens(client_), 1);
  EXPECT_EQ(LastError(), "");
  // Another plan, pushed.
  server.SetPlan(PlanText(2, 1200, 1200), 2);
  ASSERT_TRUE(TrainUntil([](const auto& stats) {
    return stats.plan_version == 2 && stats.clock_mhz == 1200;
  })) << LastError();
  ASSERT_TRUE(server.WaitForCalls("POST", "/iterations", 1));
  const std::string report = server.Calls("POST", "/iterations").back().body;
  EXPECT_NE(report.find("\"time_s\":"), std::string::npos) << report;
  EXPECT_NE(report.find("\"state\":"), std::string::npos) << report;
  Close();
  EXPECT_FALSE(Gpu().locked_mhz);
}

// Once in a while, with the report of an iteration.
TEST_F(WholeClientTest, TellsWhatItMeasuresOfItsConditions) {
  MakeGpus("call_ms = 4\nsettle_ms = 0\n");
  FakeServer server;
  server.SetPlan(PlanText(1, 1000, 1400), 1);
  url_ = server.url();
  ASSERT_EQ(Open(), PERSEUS_OK) << message_;
  const auto tells = [&](const char* name) {
    const auto reports = server.Calls("POST", "/iterations");
    return std::any_of(reports.begin(), reports.end(), [&](const auto& report) {
      return report.body.find(name) != std::string::npos;
    });
  };
  ASSERT_TRUE(TrainUntil([&](const auto& /*stats*/) {
    return tells("\"switch_latency_s\":") && tells("\"noise_variance_std\":");
  })) << LastError();
}

TEST_F(WholeClientTest, ShadowSetsNoClock) {
  MakeGpus("call_ms = 2\n");
  FakeServer server;
  server.SetPlan(PlanText(1, 1000, 1400), 1);
  url_ = server.url();
  ASSERT_EQ(Open([](auto* options) { options->flags = PERSEUS_SHADOW; }), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.calls >= 6; })) << LastError();
  Close();
  EXPECT_EQ(Gpu().set_calls, 0U);
}

TEST_F(WholeClientTest, TrainsOnWithoutAServer) {
  MakeGpus("");
  {
    const FakeServer gone;
    url_ = gone.url();
  }
  ASSERT_EQ(Open(), PERSEUS_OK) << message_;
  ASSERT_TRUE(TrainUntil(
      [](const auto& stats) { return stats.server_errors >= 2 && stats.iterations >= 3; }));
  EXPECT_TRUE(EverythingWasSeen());
  EXPECT_NE(LastError().find(url_), std::string::npos) << LastError();
  Close();
  EXPECT_EQ(Gpu().set_calls, 0U);
}

TEST_F(WholeClientTest, TrainsOnWhereTheServerTalksGarbage) {
  MakeGpus("");
  FakeServer server;
  url_ = server.url();
  server.AnswerAlways("<html>It works!</html>");
  ASSERT_EQ(Open(), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.server_errors >= 2; }));
  EXPECT_FALSE(LastError().empty());
  const std::uint32_t problems = perseus_client_problems(client_);
  EXPECT_GT(problems, 0U);
  // It comes to its senses.
  server.SetPlan(PlanText(1, 1000, 1400), 1);
  server.AnswerAlways(std::nullopt);
  EXPECT_TRUE(TrainUntil([](const auto& stats) { return stats.plan_version == 1; }));
  EXPECT_NE(perseus_client_problems(client_), problems);
  EXPECT_EQ(LastError(), "");
}

TEST_F(WholeClientTest, TrainsOnWhereTheServerIsSilent) {
  MakeGpus("");
  FakeServer server;
  url_ = server.url();
  server.AnswerAlways("");
  ASSERT_EQ(Open([](auto* options) { options->close_timeout_seconds = 0.2; }), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.iterations >= 5; }));
  EXPECT_EQ(perseus_client_listens(client_), 0);
  EXPECT_TRUE(EverythingWasSeen());
}

TEST_F(WholeClientTest, KeepsItsPlanWhileTheServerIsAway) {
  MakeGpus("call_ms = 2\n");
  auto server = std::make_unique<FakeServer>();
  server->SetPlan(PlanText(1, 1000, 1400), 1);
  url_ = server->url();
  ASSERT_EQ(Open(), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.plan_version == 1; }));
  const std::uint64_t errors = Stats().server_errors;
  server.reset();
  ASSERT_TRUE(TrainUntil([&](const auto& stats) { return stats.server_errors > errors; }));
  EXPECT_EQ(Stats().state, PERSEUS_STATE_FOLLOWING);  // A server may restart: the plan holds.
}

// Steps that are shorter than what the background thread sleeps while nobody listens.
TEST_F(WholeClientTest, APlanThatComesAtAnyMomentFindsNoWrongOrder) {
  using std::chrono::microseconds;
  MakeGpus("call_ms = 0\nsettle_ms = 0\n");
  for (int moment = 0; moment < 12; ++moment) {
    FakeServer server;
    url_ = server.url();
    ASSERT_EQ(Open(), PERSEUS_OK);
    ASSERT_TRUE(server.WaitForCalls("GET", "/plan", 1));
    const auto begin = std::chrono::steady_clock::now();
    const auto comes = begin + microseconds(30'000 + 1'700 * moment);
    const auto deadline = begin + std::chrono::seconds(20);
    bool is_there = false;
    int heard = 0;
    for (int number = 0; heard < 3 && std::chrono::steady_clock::now() < deadline; ++number) {
      if (!is_there && std::chrono::steady_clock::now() >= comes) {
        server.SetPlan(PlanText(1, 1000, 1400), 1);
        is_there = true;
      }
      perseus_step_begin(client_, number);
      const bool is_quiet = perseus_client_listens(client_) == 0;
      for (int i = 0; i < 4; ++i) {
        const auto type = i < 2 ? PERSEUS_FORWARD : PERSEUS_BACKWARD;
        if (!is_quiet) perseus_instruction_begin(client_, type, 0, i % 2);
        std::this_thread::sleep_for(microseconds(300));
        if (!is_quiet) perseus_instruction_end(client_, type, 0, i % 2);
      }
      if (is_quiet && perseus_client_listens(client_) != 0) {
        perseus_step_abandon(client_);
      } else {
        perseus_step_end(client_, 0);
      }
      heard += is_quiet ? 0 : 1;
    }
    EXPECT_EQ(heard, 3);
    EXPECT_EQ(Stats().order_mismatches, 0U) << moment << ": " << LastError();
    Close();
  }
}

// Its last word.
TEST_F(WholeClientTest, TellsTheServerThatItEnds) {
  MakeGpus("");
  FakeServer server;
  url_ = server.url();
  ASSERT_EQ(Open(), PERSEUS_OK);
  ASSERT_TRUE(server.WaitForCalls("GET", "/plan", 1));
  Close();
  const auto calls = server.Calls("POST", "/iterations");
  ASSERT_FALSE(calls.empty());
  EXPECT_NE(calls.back().body.find(R"("state":"closed")"), std::string::npos) << calls.back().body;
}

TEST_F(WholeClientTest, PassesOnWhatTheServerFindsWrong) {
  MakeGpus("");
  FakeServer server;
  url_ = server.url();
  server.SetTrouble("rank 0 is process 7 on n1, too");
  ASSERT_EQ(Open(), PERSEUS_OK);
  EXPECT_TRUE(
      TrainUntil([&](const auto&) { return LastError() == "rank 0 is process 7 on n1, too"; }));
  server.SetTrouble("");
  EXPECT_TRUE(TrainUntil([&](const auto&) { return LastError().empty(); }));
}

TEST_F(WholeClientTest, RefusedCallsAreCountedAndGivenUp) {
  MakeGpus("call_ms = 1\nrefuse_sets = true\n");
  FakeServer server;
  server.SetPlan(PlanText(1, 1000, 1400), 1);
  url_ = server.url();
  ASSERT_EQ(Open(), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.state == PERSEUS_STATE_RELEASED; }));
  EXPECT_NE(LastError().find("clock was not"), std::string::npos) << LastError();
  const std::uint64_t refused = Stats().refused;
  EXPECT_GE(refused, 1U);
  for (int i = 0; i < 5; ++i) Iterate(++iteration_);
  EXPECT_LE(Stats().refused, refused + 1);  // At rest.
  EXPECT_TRUE(EverythingWasSeen());
}

TEST_F(WholeClientTest, SlowClockCallsLoseNoEvent) {
  MakeGpus("call_ms = 20\n");
  FakeServer server;
  server.SetPlan(PlanText(1, 1000, 1400), 1);
  url_ = server.url();
  ASSERT_EQ(Open(), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.calls >= 5; }));
  EXPECT_TRUE(EverythingWasSeen());
  EXPECT_EQ(Stats().lost_events, 0U);
  EXPECT_EQ(Stats().order_mismatches, 0U);
}

TEST_F(WholeClientTest, AnotherOrderThanThePlansIsNotFollowed) {
  MakeGpus("call_ms = 1\n");
  FakeServer server;
  std::string plan = PlanText(1, 1000, 1400);
  plan.replace(plan.find("\"B\",0,0"), 7, "\"W\",0,0");
  server.SetPlan(plan, 1);
  url_ = server.url();
  ASSERT_EQ(Open(), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) {
    return stats.state == PERSEUS_STATE_RELEASED && stats.clock_mhz == 0;
  }));
  EXPECT_EQ(Stats().order_mismatches, 3U);
  EXPECT_FALSE(Gpu().locked_mhz);
}

TEST_F(WholeClientTest, StragglersAreTold) {
  FakeServer server;
  url_ = server.url();
  ASSERT_EQ(Open(), PERSEUS_OK);
  EXPECT_EQ(perseus_straggler_set(client_, 2, 0.5, 1.25, nullptr), PERSEUS_OK);
  EXPECT_EQ(perseus_straggler_set(client_, -1, 0, 1.25, nullptr), PERSEUS_INVALID);
  EXPECT_EQ(perseus_straggler_set(client_, 2, 0, std::nan(""), nullptr), PERSEUS_INVALID);
  ASSERT_TRUE(server.WaitForCalls("POST", "/stragglers", 1));
  EXPECT_EQ(server.Calls("POST", "/stragglers")[0].body,
            R"({"rank":2,"factor":1.25,"starts_s":0.5})");
  ASSERT_TRUE(server.WaitForCalls("DELETE", "/stragglers/s-9", 1));  // The word before.
  EXPECT_EQ(perseus_straggler_clear(client_, 2, nullptr), PERSEUS_OK);
  ASSERT_TRUE(server.WaitForCalls("DELETE", "/stragglers/s-9", 2));
  EXPECT_EQ(server.Calls("POST", "/stragglers").size(), 1U);
}

TEST_F(WholeClientTest, ProfilesWhereTheServerWantsIt) {
  MakeQuickGpus();
  FakeServer server;
  server.SetJobState("profiling");
  ASSERT_EQ(OpenToSweep(server, 2), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([&](const auto& stats) {
    return stats.iterations > 0 && !server.Calls("POST", "/measurements").empty() &&
           server.Calls("POST", "/measurements").back().body.find("\"done\":true") !=
               std::string::npos;
  })) << LastError()
      << server.Calls("POST", "/measurements").size();
  const std::string first = server.Calls("POST", "/measurements").front().body;
  EXPECT_NE(first.find("\"frequency\":1400"), std::string::npos) << first;
  EXPECT_NE(first.find("\"instruction\":\"forward\""), std::string::npos) << first;
  EXPECT_NE(first.find("\"time_std\":"), std::string::npos) << first;
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.clock_mhz == 0; }));
  const std::string last = server.Calls("POST", "/measurements").back().body;
  EXPECT_NE(last.find("\"sweep\":{\"iterations\":"), std::string::npos) << last;
  EXPECT_NE(last.find("\"frequency\":1400"), std::string::npos) << last;  // All of it again.
  EXPECT_NE(last.find("\"default_clocks\":[{"), std::string::npos)
      << last;  // And at default clocks.
  EXPECT_EQ(last.find("\"frequency\":0"), std::string::npos) << last;

  // The server wants it anew: once, however long it says so.
  const std::size_t reports = server.Calls("POST", "/measurements").size();
  server.SetPlan(PlanText(1, 1000, 1400), 1);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.state == PERSEUS_STATE_FOLLOWING; }));
  EXPECT_EQ(server.Calls("POST", "/measurements").size(), reports);
  std::string plan = PlanText(2, 1000, 1400);
  plan.insert(1, "\"profile_wanted\":true,");
  server.SetPlan(plan, 2);
  ASSERT_TRUE(TrainUntil([&](const auto&) {
    const auto calls = server.Calls("POST", "/measurements");
    return calls.size() > reports && calls.back().body.find("\"done\":true") != std::string::npos;
  })) << LastError();
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.state == PERSEUS_STATE_FOLLOWING; }));
  ASSERT_TRUE(TrainUntil([&](const auto&) {
    const auto calls = server.Calls("POST", "/iterations");
    return !calls.empty() && calls.back().body.find("\"kinds\":[{") != std::string::npos;
  }));
}

// What was reported before a restart: all of it, then all but what has default clocks.
TEST_F(WholeClientTest, ASweepGoesOnWithNoClockSetWhereThatIsAllThatLacks) {
  std::string rows;
  for (const int mhz : {800, 1000, 1200, 1400}) {
    for (const char* const kind : {"forward", "backward"}) {
      rows += fmt::format("{}{{\"stage\":0,\"instruction\":\"{}\",\"frequency\":{}}}",
                          rows.empty() ? "" : ",", kind, mhz);
    }
  }
  MakeQuickGpus();
  for (const bool lacks : {false, true}) {
    FakeServer server;
    server.SetJobState("profiling");
    server.SetReported(fmt::format(
        "{{\"rows\":[{}],\"done\":false{}}}", rows,
        lacks ? ""
              : ",\"default_clocks\":[{\"stage\":0,\"instruction\":\"forward\"},{\"stage\":0,"
                "\"instruction\":\"backward\"}]"));
    ASSERT_EQ(OpenToSweep(server, 2), PERSEUS_OK);
    ASSERT_TRUE(TrainUntil([&](const auto&) {
      const auto calls = server.Calls("POST", "/measurements");
      return !calls.empty() && calls.back().body.find("\"done\":true") != std::string::npos;
    })) << LastError();
    const std::string last = server.Calls("POST", "/measurements").back().body;
    EXPECT_EQ(last.find("\"default_clocks\":[{") != std::string::npos, lacks) << last;
    EXPECT_EQ(last.find("\"frequency\""), std::string::npos) << last;
    EXPECT_EQ(gpus_->Snapshot(0)->set_calls, 0);
    Close();
  }
}

TEST_F(WholeClientTest, APlanThatWantsNoProfileEndsTheSweep) {
  MakeQuickGpus();
  FakeServer server;
  server.SetJobState("registering");
  ASSERT_EQ(OpenToSweep(server, 1'000'000), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.state == PERSEUS_STATE_PROFILING; }));
  server.SetPlan(PlanText(1, 1000, 1400), 1);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.state == PERSEUS_STATE_FOLLOWING; }));
}

TEST_F(WholeClientTest, ASweepIsNotJudgedAsItsPlan) {
  constexpr const char* kOfPlan2 = "\"plan_version\":2,\"time_s\"";  // An iteration.
  MakeQuickGpus();
  FakeServer server;
  server.SetPlan(PlanText(1, 1000, 1400), 1);
  ASSERT_EQ(OpenToSweep(server, 4), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.state == PERSEUS_STATE_FOLLOWING; }));
  std::string plan = PlanText(2, 1400, 1400);
  plan.insert(1, "\"profile_wanted\":true,");
  server.SetPlan(plan, 2);
  ASSERT_TRUE(TrainUntil([&](const auto& stats) {
    const auto calls = server.Calls("POST", "/measurements");
    if (calls.empty() || calls.back().body.find("\"done\":true") == std::string::npos) {
      // Clocks below the plan's are the sweep's, and no late ones of the plan.
      EXPECT_EQ(stats.level, PERSEUS_LEVEL_COMPUTATION) << LastError();
      for (const auto& call : server.Calls("POST", "/iterations")) {
        EXPECT_EQ(call.body.find(kOfPlan2), std::string::npos) << call.body;
      }
      return false;
    }
    return true;
  })) << LastError();
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.state == PERSEUS_STATE_FOLLOWING; }));
  ASSERT_TRUE(TrainUntil([&](const auto&) {
    return server.Calls("POST", "/iterations").back().body.find(kOfPlan2) != std::string::npos;
  }));
}

// A clock that can no longer be set or given back is not the driver's.
TEST_F(WholeClientTest, AClockThatStaysIsNotMeasuredAsTheDrivers) {
  MakeQuickGpus();
  FakeServer server;
  server.SetPlan(PlanText(1, 1000, 1000), 1);
  ASSERT_EQ(OpenToSweep(server, 4), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.clock_mhz == 1000; }));
  gpus_->SetRefuseSets(0, true);
  std::string plan = PlanText(2, 1400, 1400);
  plan.insert(1, "\"profile_wanted\":true,");
  server.SetPlan(plan, 2);
  const std::uint64_t refused = Stats().refused;
  ASSERT_TRUE(TrainUntil([&](const auto& stats) { return stats.refused > refused; }));
  const std::uint64_t iterations = Stats().iterations;
  ASSERT_TRUE(TrainUntil([&](const auto& stats) { return stats.iterations > iterations + 20; }));
  EXPECT_TRUE(server.Calls("POST", "/measurements").empty());
  gpus_->SetRefuseSets(0, false);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.clock_mhz == 0; })) << LastError();
}

TEST_F(WholeClientTest, APlanThatComesBeforeTheSweepBeginsLeavesItOut) {
  MakeQuickGpus();
  FakeServer server;
  server.SetJobState("registering");
  server.SetPlan(PlanText(1, 1000, 1400), 1);
  ASSERT_EQ(OpenToSweep(server, 1'000'000), PERSEUS_OK);
  perseus_step_begin(client_, 0);  // No sweep begins within an iteration.
  ASSERT_TRUE(server.WaitForCalls("GET", "/plan", 2));
  perseus_step_end(client_, 0);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.state == PERSEUS_STATE_FOLLOWING; }));
}

TEST_F(WholeClientTest, ARestartedRankLeavesOutWhatTheServerHas) {
  MakeQuickGpus();
  FakeServer server;
  server.SetJobState("profiling");
  server.SetReported(R"({"rows":[
      {"stage":0,"instruction":"forward","frequency":1400},
      {"stage":0,"instruction":"backward","frequency":1400},
      {"stage":0,"instruction":"forward","frequency":1000},
      {"stage":0,"instruction":"forward","frequency":1200},
      {"stage":0,"instruction":"backward","frequency":1200}],"done":false})");
  ASSERT_EQ(OpenToSweep(server, 2), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([&](const auto&) {
    const auto calls = server.Calls("POST", "/measurements");
    return !calls.empty() && calls.back().body.find("\"done\":true") != std::string::npos;
  })) << LastError();
  const std::string last = server.Calls("POST", "/measurements").back().body;
  EXPECT_EQ(last.find("\"frequency\":1400"), std::string::npos) << last;
  EXPECT_EQ(last.find("\"frequency\":1200"), std::string::npos) << last;
  EXPECT_NE(last.find("\"frequency\":1000"), std::string::npos) << last;  // Half was there.
  EXPECT_NE(last.find("\"frequency\":800"), std::string::npos) << last;
}

TEST_F(WholeClientTest, StrictSaysWhatCannotBeHad) {
  {
    const FakeServer gone;
    url_ = gone.url();
  }
  EXPECT_EQ(Open([](auto* options) {
              options->flags = PERSEUS_STRICT;
              options->open_timeout_seconds = 0.5;
            }),
            PERSEUS_UNAVAILABLE);
  EXPECT_EQ(client_, nullptr);
  EXPECT_NE(message_.find(url_), std::string::npos) << message_;
  device_ = "simulated:" + (folder_ / "none").string();
  url_.clear();
  EXPECT_EQ(Open([](auto* options) { options->flags = PERSEUS_STRICT; }), PERSEUS_UNAVAILABLE);
  EXPECT_NE(message_.find("none"), std::string::npos) << message_;
}

TEST_F(WholeClientTest, WrongOptionsAreNamed) {
  url_ = "http://127.0.0.1:1";
  const std::vector<std::pair<std::function<void(perseus_client_options*)>, std::string>> cases = {
      {[](auto* options) { options->rank = -1; }, "rank"},
      {[](auto* options) { options->job_json = "{"; }, "job_json"},
      {[](auto* options) { options->job_id = "j"; }, "job_id"},
      {[](auto* options) { options->max_overhead = 2; }, "max_overhead"},
      {[](auto* options) { options->server = "gopher://x"; }, "gopher"},
      {[](auto* options) { options->flags = 1U << 20; }, "flags"}};
  for (const auto& [change, expected] : cases) {
    EXPECT_EQ(Open(change), PERSEUS_INVALID) << expected;
    EXPECT_NE(message_.find(expected), std::string::npos) << message_;
    EXPECT_EQ(client_, nullptr);
  }
}

TEST_F(WholeClientTest, AnOlderCallersStructsAreEnough) {
  // Who knows only the first fields gets defaults for the others.
  perseus_client_options options = {};
  const std::size_t known = offsetof(perseus_client_options, job_id);
  perseus_client_options_init(&options, known);
  options.job_id = "beyond what the caller knows: not read";
  ASSERT_EQ(perseus_client_open(&options, &client_, nullptr), PERSEUS_OK);
  std::array<std::uint32_t, 4> stats = {8, 77, 77, 77};
  ASSERT_EQ(perseus_client_get_stats(client_, reinterpret_cast<perseus_client_stats*>(stats.data()),
                                     nullptr),
            PERSEUS_OK);
  EXPECT_NE(stats[1], 77U);
  EXPECT_EQ(stats[2], 77U);
}

TEST_F(WholeClientTest, ADeviceThatCannotBeIsRefused) {
  for (const char* device : {"nvlm", "nvml:", "simulated", "agent:", "zeusd:", "gpu0", ":"}) {
    EXPECT_EQ(Open([&](auto* options) { options->device = device; }), PERSEUS_INVALID) << device;
    EXPECT_NE(message_, "");
    EXPECT_EQ(client_, nullptr);
  }
}

TEST_F(WholeClientTest, NoneAndTheDefaultAreTwoThings) {
  perseus_client_options options;
  perseus_client_options_init(&options, sizeof(options));
  EXPECT_EQ(options.max_early_loss, 0.05);
  EXPECT_EQ(options.profile_iterations, 5);
  EXPECT_EQ(Open([](auto* changed) { changed->max_early_loss = 0; }), PERSEUS_OK) << message_;
  Close();
  for (const auto& change : std::vector<std::function<void(perseus_client_options*)>>{
           [](auto* changed) { changed->profile_iterations = 0; },
           [](auto* changed) { changed->profile_stride = -1; },
           [](auto* changed) { changed->gpu_index = -1; },
           [](auto* changed) { changed->min_interval_seconds = std::nan(""); },
           [](auto* changed) { changed->struct_size = 12; },
           [](auto* changed) { changed->struct_size = 0; }}) {
    EXPECT_EQ(Open(change), PERSEUS_INVALID);
    EXPECT_NE(message_, "");
  }
  perseus_client_options never_begun = {};
  EXPECT_EQ(perseus_client_open(&never_begun, &client_, nullptr), PERSEUS_INVALID);
  EXPECT_EQ(perseus_client_open(nullptr, &client_, nullptr), PERSEUS_INVALID);
  EXPECT_EQ(perseus_client_open(&options, nullptr, nullptr), PERSEUS_INVALID);
}

TEST_F(WholeClientTest, AWrongArgumentIsSaid) {
  ASSERT_EQ(Open(), PERSEUS_OK) << message_;
  std::array<char, 256> error = {};
  const auto last_error = [&] {
    perseus_client_last_error(client_, error.data(), error.size());
    return std::string(error.data());
  };
  perseus_instruction_begin(client_, static_cast<perseus_instruction>(9), 0, 0);
  EXPECT_NE(last_error().find("instruction 9"), std::string::npos) << last_error();
  perseus_step_begin(client_, -7);
  EXPECT_EQ(last_error().rfind("perseus_step_begin: the iteration is -7", 0), 0U) << last_error();
  const double late = std::nan("");
  perseus_step_times(client_, 1, &late, &late, 1);
  EXPECT_EQ(last_error().rfind("perseus_step_times: computation 0", 0), 0U) << last_error();
  perseus_step_times(client_, 1, nullptr, nullptr, 3);
  EXPECT_EQ(last_error().rfind("perseus_step_times: begins", 0), 0U) << last_error();
  char* message = nullptr;
  perseus_step_row row = {};
  EXPECT_EQ(perseus_step_plan(client_, 1, &row, sizeof(row), 1, &message), PERSEUS_INVALID);
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(std::string(message).rfind("row 0: ", 0), 0U) << message;
  perseus_client_free_text(message);
  EXPECT_EQ(perseus_straggler_set(client_, -1, 0, 2, &message), PERSEUS_INVALID);
  ASSERT_NE(message, nullptr);
  perseus_client_free_text(message);
  perseus_client_stats unset = {};
  EXPECT_EQ(perseus_client_get_stats(client_, &unset, &message), PERSEUS_INVALID);
  ASSERT_NE(message, nullptr);
  perseus_client_free_text(message);
}

// Nor does it end up in the iteration that was not ended.
TEST_F(WholeClientTest, AnIterationWithANegativeNumberIsNotCounted) {
  ASSERT_EQ(Open(), PERSEUS_OK) << message_;
  Iterate(++iteration_);
  perseus_step_begin(client_, 2);
  perseus_step_begin(client_, -7);
  perseus_instruction_begin(client_, PERSEUS_FORWARD, 0, 0);
  perseus_instruction_end(client_, PERSEUS_FORWARD, 0, 0);
  perseus_step_end(client_, 0);
  const auto iterated = [&] { return static_cast<std::uint64_t>(iteration_); };
  ASSERT_TRUE(TrainUntil([&](const auto& stats) {
    return stats.instructions == 4 * iterated() + 1 && stats.iterations >= iterated();
  }));
  EXPECT_EQ(Stats().iterations, iterated());
}

TEST_F(WholeClientTest, NoClientIsAllowedEverywhere) {
  perseus_step_begin(nullptr, 1);
  perseus_instruction_begin(nullptr, PERSEUS_FORWARD, 0, 0);
  perseus_instruction_end(nullptr, PERSEUS_FORWARD, 0, 0);
  perseus_step_end(nullptr, 0);
  EXPECT_EQ(perseus_straggler_set(nullptr, 0, 0, 2, nullptr), PERSEUS_CLOSED);
  EXPECT_EQ(perseus_client_get_state(nullptr), PERSEUS_STATE_CLOSED);
  EXPECT_EQ(perseus_client_plan_version(nullptr), -1);
  EXPECT_EQ(perseus_client_listens(nullptr), 0);
  EXPECT_EQ(perseus_client_problems(nullptr), 0U);
  perseus_client_close(nullptr);
  ASSERT_EQ(Open(), PERSEUS_OK);
  perseus_instruction_begin(client_, static_cast<perseus_instruction>(17), 0, 0);
}

#if !defined(__SANITIZE_THREAD__)  // Which does not follow a fork of a program with threads.
TEST_F(WholeClientTest, AChildHasNoClient) {
  MakeGpus("call_ms = 1\n");
  FakeServer server;
  server.SetPlan(PlanText(1, 1000, 1000), 1);
  url_ = server.url();
  ASSERT_EQ(Open(), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.clock_mhz == 1000; }));
  const pid_t child = fork();
  if (child == 0) {
    bool good = perseus_client_get_state(client_) == PERSEUS_STATE_CLOSED;
    perseus_step_begin(client_, 1);
    perseus_instruction_begin(client_, PERSEUS_FORWARD, 0, 0);
    good = good && perseus_straggler_clear(client_, 0, nullptr) == PERSEUS_CLOSED;
    perseus_client_close(client_);
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(Gpu().locked_mhz, 1000);  // The child gave nothing back.
  Iterate(++iteration_);
  EXPECT_TRUE(TrainUntil([](const auto& stats) { return stats.clock_mhz == 1000; }));
}
#endif

}  // namespace
}  // namespace perseus::client

// What goes wrong around a client: trainers that stop, agents that restart or
// hang, servers that forget or do not wait.

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
  server.SetPlan(PlanText(1, 1200, 1200), 1);
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
  server.SetPlan(PlanText(1, 900, 1200), 1);
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
  server.SetPlan(PlanText(1, 1200, 1200), 1);
  device_ = "agent:" + agent.options().socket_path;
  ASSERT_EQ(OpenToSweep(server, 4), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([&](const auto&) { return agent.gpu(0).locked() == 1200; }));
  ASSERT_TRUE(agent.Stop());
  agent.gpu(0).FailNext(1'000'000);
  ASSERT_TRUE(agent.Start());
  std::string plan = PlanText(2, 1200, 1200);
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
  server.SetPlan(PlanText(7, 1000, 1400), 7);
  url_ = server.url();
  ASSERT_EQ(Open(), PERSEUS_OK);
  ASSERT_TRUE(TrainUntil([](const auto& stats) { return stats.plan_version == 7; }));
  server.SetPlan(PlanText(3, 1000, 1400), 3);  // Restored from a backup.
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
  server.SetPlan(PlanText(1, 1000, 1400), 1);
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
