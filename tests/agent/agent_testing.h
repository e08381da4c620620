// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_AGENT_AGENT_TESTING_H_
#define PERSEUS_TESTS_AGENT_AGENT_TESTING_H_

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "agent/agent.h"
#include "agent/fake_gpu.h"
#include "agent/protocol.h"
#include "common/temporary_directory.h"

namespace perseus::agent {

// Collects log lines.
class TestLog {
 public:
  TestLog()
      : log_(std::make_shared<Log>([lines = lines_](const std::string& line) {
          const std::lock_guard lock(lines->mutex);
          lines->lines.push_back(line);
        })) {}

  const std::shared_ptr<Log>& log() const { return log_; }
  // How many lines have this text.
  int Count(const std::string& text) const {
    log_->Flush(std::chrono::seconds(20));
    const std::lock_guard lock(lines_->mutex);
    int count = 0;
    for (const std::string& line : lines_->lines) count += line.find(text) != std::string::npos;
    return count;
  }

 private:
  struct Lines {
    std::mutex mutex;
    std::vector<std::string> lines;
  };
  std::shared_ptr<Lines> lines_ = std::make_shared<Lines>();
  std::shared_ptr<Log> log_;
};

// Waits until `is_so` holds; false: not within 20 seconds, which only a hang misses.
inline bool Eventually(const std::function<bool()>& is_so) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// While it lives no file of this process can grow, as on a full disk.
class FullDisk {
 public:
  FullDisk() : old_action_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit none = {0, old_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_action_);
  }

 private:
  void (*const old_action_)(int);
  rlimit old_limit_{};
};

// Makes a journal that can be read and locked, but not written, to root also: the
// place of its lock has a directory, which opens for reading only.
inline void ForbidWriting(const std::string& journal_path) {
  std::filesystem::remove(journal_path + ".lock");
  std::filesystem::create_directory(journal_path + ".lock");
}

// An agent on GPUs in memory, in a thread of this process.
class TestAgent {
 public:
  explicit TestAgent(int gpus = 2) : driver_(std::make_shared<FakeDriver>(gpus)) {
    options_.driver = "fake";
    options_.socket_path = folder_.Path("agent.sock");
    options_.journal_path = folder_.Path("agent.journal");
    options_.gpu_locks = folder_.Path("gpus");
    options_.stop_patience = std::chrono::seconds(20);
  }
  ~TestAgent() { EXPECT_TRUE(Stop().has_value()); }
  TestAgent(const TestAgent&) = delete;
  TestAgent& operator=(const TestAgent&) = delete;

  AgentOptions& options() { return options_; }
  FakeDriver& driver() { return *driver_; }
  FakeGpu& gpu(std::size_t index) { return driver_->gpu(index); }
  const TestLog& log() const { return log_; }
  const TemporaryDirectory& folder() const { return folder_; }

  Result<void> Start() {
    stop_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
    Result<std::unique_ptr<Agent>> agent = Agent::Start(options_, driver_, log_.log());
    if (!agent) return tl::unexpected(agent.error());
    thread_ = std::thread([this, agent = std::shared_ptr<Agent>(*std::move(agent))]() mutable {
      ended_ = agent->Run(stop_.get());
      agent.reset();
    });
    return {};
  }
  Result<void> Stop() {
    if (!thread_.joinable()) return {};
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(stop_.get(), &one, sizeof(one)), 8);
    thread_.join();
    return ended_;
  }

  Control Connect(const std::string& name = "test") {
    Result<Control> control =
        Control::Connect(options_.socket_path, name, std::chrono::seconds(20));
    EXPECT_TRUE(control) << (control ? "" : control.error().message);
    return *std::move(control);
  }

 private:
  TemporaryDirectory folder_;
  AgentOptions options_;
  std::shared_ptr<FakeDriver> driver_;
  TestLog log_;
  FileDescriptor stop_;
  std::thread thread_;
  Result<void> ended_;
};

inline Request Ask(Operation operation, std::string gpu = "", int mhz = 0) {
  Request request;
  request.operation = operation;
  request.gpu = std::move(gpu);
  request.mhz = mhz;
  return request;
}

// The answer of the kind that is expected; a failed test where it is another.
template <typename Body>
Body Expect(Control* control, Request request) {
  const Result<Answer> answer = control->Ask(std::move(request));
  if (!answer) {
    ADD_FAILURE() << answer.error().message;
    return {};
  }
  if (const auto* body = std::get_if<Body>(&answer->body)) return *body;
  ADD_FAILURE() << "another answer: " << FormatAnswer(*answer);
  return {};
}

}  // namespace perseus::agent

#endif  // PERSEUS_TESTS_AGENT_AGENT_TESTING_H_
