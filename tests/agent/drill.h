// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_AGENT_DRILL_H_
#define PERSEUS_TESTS_AGENT_DRILL_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/file_descriptor.h"
#include "common/temporary_directory.h"
#include "device/simulated/simulated_gpu.h"

// Death drills: the real `perseus agent`, real clients, GPUs of a file that all of
// them share. For tests and for bench/agent_restore.cc.
namespace perseus::agent {

// A program that was started; killed, if it still runs, when the object goes.
// A trouble-maker: what cannot be started ends this process with a sentence.
class Program {
 public:
  // `environment`: "NAME=value" beside what this process has.
  Program(std::vector<std::string> arguments, std::vector<std::string> environment = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  pid_t pid() const { return pid_; }
  void Kill(int signal) const;
  // Closes its standard input, after a byte: "go on".
  void Poke();
  // One line of its standard output; nullopt: it ended, or said nothing for 20 s.
  std::optional<std::string> ReadLine();
  // Its exit code, or minus the signal that ended it; nullopt: it lives after 20 s.
  std::optional<int> Wait();

 private:
  pid_t pid_ = -1;
  FileDescriptor input_;
  FileDescriptor output_;
};

struct DrillOptions {
  std::vector<double> call_ms = {10, 10};  // Of each GPU.
  std::string driver = "simulated";        // Or "nvml", the fake library.
  std::vector<std::string> agent_arguments;
};

// A node: a file of simulated GPUs, a socket, a journal, an agent.
class Drill {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kLowMhz = 600;
  static constexpr int kHighMhz = 1500;

  explicit Drill(DrillOptions options);

  // Starts an agent (again); false: it does not answer within 20 seconds.
  bool StartAgent();
  Program& agent() { return *agent_; }
  // Starts a client that locks the GPUs, and waits until it has. Null: it could not.
  std::unique_ptr<Program> StartClient(const std::string& mode, const std::vector<int>& gpus) const;

  device::SimulatedGpus& gpus() { return *gpus_; }
  // Whether all of these run at their highest clock, default_clocks, now.
  bool AreFree(const std::vector<int>& gpus);
  // Waits for that; the time when it was seen, or nullopt after 20 seconds.
  std::optional<Clock::time_point> WaitUntilFree(const std::vector<int>& gpus);

  std::string Socket() const { return folder_.Path("agent.sock"); }
  std::string JournalPath() const { return folder_.Path("agent.journal"); }
  // What the agent is started with, for other commands of `perseus agent`.
  std::vector<std::string> PlaceArguments() const;
  std::vector<std::string> Environment() const;

 private:
  TemporaryDirectory folder_;
  DrillOptions options_;
  std::unique_ptr<device::SimulatedGpus> gpus_;
  std::unique_ptr<Program> agent_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_TESTS_AGENT_DRILL_H_
