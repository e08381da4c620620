// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_CLIENT_WHOLE_CLIENT_TESTING_H_
#define PERSEUS_TESTS_CLIENT_WHOLE_CLIENT_TESTING_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "client/fake_server.h"
#include "device/simulated/simulated_gpu.h"
#include "perseus/client.h"

namespace perseus::client {

// F0 F1 B0 B1 of stage 0, 20 ms each.
inline std::string Plan(int version, int low, int high) {
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

}  // namespace perseus::client

#endif  // PERSEUS_TESTS_CLIENT_WHOLE_CLIENT_TESTING_H_
