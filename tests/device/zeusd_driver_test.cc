// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The zeusd driver against a daemon that is written here, with the fake NVML for
// what it reads.

#include "device/zeusd/zeusd_driver.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/file_descriptor.h"
#include "common/temporary_directory.h"
#include "device/device.h"
#include "device/simulated/simulated_gpu.h"
#include "support/mentions.h"
#include "support/unix_listener.h"

namespace perseus::device {
namespace {

using ::testing::ElementsAre;

// Answers requests, one a connection, until it is destroyed.
class Daemon {
 public:
  using Answer = std::function<std::string(const std::string& request)>;

  Daemon(const std::string& path, Answer answer) : answer_(std::move(answer)) {
    listener_ = ListenAt(path, 8);
    thread_ = std::thread([this] { Serve(); });
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  // First lines, without the version, in order.
  std::vector<std::string> requests() {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }

 private:
  void Serve() {
    while (true) {
      const FileDescriptor peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer.valid()) return;
      std::string request;
      char byte = 0;
      while (!request.ends_with("\r\n\r\n") && ::read(peer.get(), &byte, 1) == 1) request += byte;
      {
        const std::scoped_lock lock(mutex_);
        requests_.push_back(request.substr(0, request.find(" HTTP/")));
      }
      std::string bytes = answer_(request);
      while (!bytes.empty()) {
        const ssize_t sent = ::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) break;
        bytes.erase(0, static_cast<std::size_t>(sent));
      }
    }
  }

  Answer answer_;
  FileDescriptor listener_;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

// A text that the daemon's thread reads while the test changes it.
class SharedText {
 public:
  explicit SharedText(std::string text) : text_(std::move(text)) {}
  void Set(std::string text) {
    const std::scoped_lock lock(mutex_);
    text_ = std::move(text);
  }
  std::string Get() const {
    const std::scoped_lock lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

std::string Http(int status, const std::string& body) {
  return "HTTP/1.0 " + std::to_string(status) +
         " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

constexpr const char* kTwoGpusOfZeusd =
    R"({"gpus":[{"id":0,"name":"Test"},{"id":1,"name":"Test"}],"cpus":[],)"
    R"("enabled_api_groups":["gpu-control","gpu-read"],"auth_required":false})";

class ZeusdDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    // Whoever asks the loader for libnvidia-ml.so.1 gets the one that is there.
    library_ = ::dlopen(PERSEUS_FAKE_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr);
    ASSERT_TRUE(CreateSimulatedGpus(folder_.Path("gpus"),
                                    "[[gpus]]\ncount = 2\nname = 'Test'\nidle_watts = 66\n", "x")
                    .has_value());
    ::setenv("PERSEUS_FAKE_NVML", folder_.Path("gpus").c_str(), 1);
    ::unsetenv("ZEUSD_TOKEN");
  }
  void TearDown() override {
    ::unsetenv("PERSEUS_FAKE_NVML");
    ::unsetenv("ZEUSD_TOKEN");
    ::dlclose(library_);
  }
  std::string Socket() const { return folder_.Path("zeusd.sock"); }
  Result<std::unique_ptr<Driver>> Open() const { return OpenDriver("zeusd:" + Socket()); }

  TemporaryDirectory folder_;
  void* library_ = nullptr;
};

TEST_F(ZeusdDriverTest, SetsThroughTheDaemonAndReadsThroughNvml) {
  Daemon daemon(Socket(), [](const std::string& request) {
    return request.starts_with("GET /discover") ? Http(200, kTwoGpusOfZeusd) : Http(200, "");
  });
  const auto driver = Open();
  ASSERT_TRUE(driver.has_value()) << driver.error().message;
  EXPECT_EQ((*driver)->kind(), "zeusd");
  EXPECT_EQ((*driver)->MaySetClocks(), true);
  ASSERT_EQ((*driver)->gpus().size(), 2);
  Gpu& gpu = *(*driver)->gpus()[1];
  EXPECT_EQ(gpu.PowerWatts(), 66);
  EXPECT_EQ(gpu.ClockMhz(), 1410);
  EXPECT_TRUE(gpu.EnergyJoules().has_value());
  EXPECT_TRUE(gpu.Conditions().has_value());
  EXPECT_TRUE(gpu.LockClock(1200).has_value());
  EXPECT_TRUE(gpu.ReleaseClock().has_value());
  EXPECT_EQ(gpu.LockClock(1201).error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(daemon.requests(),
              ElementsAre("GET /discover",
                          "POST /gpu/set_gpu_locked_clocks?gpu_ids=1&min_clock_mhz=1200&"
                          "max_clock_mhz=1200&block=true",
                          "POST /gpu/reset_gpu_locked_clocks?gpu_ids=1&block=true"));
}

TEST_F(ZeusdDriverTest, RefusesADaemonThatSeesOtherGpus) {
  SharedText discovery(R"({"gpus":[{"id":0,"name":"Test"}],"cpus":[],"enabled_api_groups":[],)"
                       R"("auth_required":false})");
  Daemon daemon(Socket(), [&](const std::string&) { return Http(200, discovery.Get()); });
  EXPECT_THAT(Open().error().message, Mentions("other", "GPUs"));
  discovery.Set(R"({"gpus":[{"id":0,"name":"Test"},{"id":1,"name":"B"}],"cpus":[],)"
                R"("enabled_api_groups":[],"auth_required":false})");
  EXPECT_THAT(Open().error().message, Mentions("other", "GPUs"));
}

TEST_F(ZeusdDriverTest, SendsItsTokenAndSaysWhereOneIsMissing) {
  const std::string discovery =
      R"({"gpus":[{"id":0,"name":"Test"},{"id":1,"name":"Test"}],"cpus":[],)"
      R"("enabled_api_groups":["gpu-control"],"auth_required":true})";
  Daemon daemon(Socket(), [&](const std::string& request) {
    if (request.starts_with("GET")) return Http(200, discovery);
    const bool has_token =
        request.find("\r\nAuthorization: Bearer sesame\r\n") != std::string::npos;
    return has_token ? Http(200, "") : Http(401, "Unauthorized");
  });
  const auto without = Open();
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ((*without)->MaySetClocks(), false);
  const Result<void> denied = (*without)->gpus()[0]->LockClock(1410);
  ASSERT_FALSE(denied.has_value());
  EXPECT_EQ(denied.error().code, ErrorCode::kDenied);
  EXPECT_THAT(denied.error().message, Mentions("ZEUSD_TOKEN"));
  ::setenv("ZEUSD_TOKEN", "sesame", 1);
  const auto with = Open();
  ASSERT_TRUE(with.has_value());
  EXPECT_EQ((*with)->MaySetClocks(), true);
  EXPECT_TRUE((*with)->gpus()[0]->LockClock(1410).has_value());
  ::setenv("ZEUSD_TOKEN", "se\r\nsame", 1);
  EXPECT_EQ(Open().error().code, ErrorCode::kInvalidInput);
}

TEST_F(ZeusdDriverTest, ADaemonThatFailsIsASentence) {
  SharedText answer(Http(500, "NVML says no"));
  EXPECT_EQ(Open().error().code, ErrorCode::kIo);
  EXPECT_THAT(Open().error().message, Mentions("file"));
  Daemon daemon(Socket(), [&](const std::string& request) {
    return request.starts_with("GET") ? Http(200, kTwoGpusOfZeusd) : answer.Get();
  });
  const auto driver = Open();
  ASSERT_TRUE(driver.has_value());
  Gpu& gpu = *(*driver)->gpus()[0];
  const auto message = [&] { return gpu.LockClock(1410).error().message; };
  EXPECT_THAT(message(), Mentions("500"));
  for (const char* bad : {"", "HTTP/1.0", "SSH-2.0-x\r\n\r\n", "HTTP/1.0 abc X\r\n\r\n"}) {
    answer.Set(bad);
    EXPECT_THAT(message(), Mentions("HTTP")) << bad;
  }
  answer.Set(std::string(100'000, 'x'));
  EXPECT_THAT(message(), Mentions("64", "KiB"));
}

TEST_F(ZeusdDriverTest, WaitsNoLongerThanItsDeadline) {
  // Connects, as the listener has a backlog, and is never answered.
  const std::string path = Socket();
  const FileDescriptor listener = ListenAt(path, 1);
  const auto answer = OpenZeusdDriver(path, 0.05);
  ASSERT_FALSE(answer.has_value());
  EXPECT_THAT(answer.error().message, Mentions("time"));
}

}  // namespace
}  // namespace perseus::device
