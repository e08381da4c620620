// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/drill.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "agent/protocol.h"

namespace perseus::agent {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

[[noreturn]] void Die(const std::string& why) {
  std::fputs(fmt::format("drill: {}\n", why).c_str(), stderr);
  std::exit(2);
}

std::pair<FileDescriptor, FileDescriptor> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) Die("no pipe");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> pointers;
  for (std::string& text : *texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string ConfigOf(const DrillOptions& options) {
  std::string config;
  for (const double call_ms : options.call_ms) {
    config += fmt::format(
        "[[gpus]]\nname = \"Drill\"\nclocks_mhz = [600, 900, 1200, 1500]\nidle_watts = 50\n"
        "busy_watts = [100, 150, 200, 300]\ncall_ms = {}\nsettle_ms = 0\n",
        call_ms);
  }
  return config;
}

}  // namespace

Program::Program(std::vector<std::string> arguments, std::vector<std::string> environment) {
  auto [child_in, input] = MakePipe();
  auto [output, child_out] = MakePipe();
  for (char** each = environ; *each != nullptr; ++each) environment.emplace_back(*each);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, child_in.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, child_out.get(), STDOUT_FILENO);
  std::vector<char*> argv = Pointers(&arguments);
  std::vector<char*> envp = Pointers(&environment);
  const int error =
      ::posix_spawn(&pid_, arguments.front().c_str(), &actions, nullptr, argv.data(), envp.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) Die(fmt::format("{}: {}", arguments.front(), SystemMessage(error)));
  input_ = std::move(input);
  output_ = std::move(output);
}

Program::~Program() {
  if (pid_ < 0) return;
  Kill(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Program::Kill(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

void Program::Poke() { [[maybe_unused]] const ssize_t written = ::write(input_.get(), "x", 1); }

std::optional<std::string> Program::ReadLine() {
  std::string line;
  char c = 0;
  while (true) {
    pollfd item = {output_.get(), POLLIN, 0};
    if (::poll(&item, 1, 20'000) <= 0 || ::read(output_.get(), &c, 1) != 1) return std::nullopt;
    if (c == '\n') return line;
    line += c;
  }
}

std::optional<int> Program::Wait() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

Drill::Drill(DrillOptions options) : options_(std::move(options)) {
  const std::string path = folder_.Path("gpus");
  const Result<void> made = device::CreateSimulatedGpus(path, ConfigOf(options_), "drill.toml");
  if (!made) Die(made.error().message);
  auto gpus = device::SimulatedGpus::Open(path);
  if (!gpus) Die(gpus.error().message);
  gpus_ = *std::move(gpus);
}

std::vector<std::string> Drill::PlaceArguments() const {
  const std::string driver = options_.driver == "nvml"
                                 ? fmt::format("nvml:{}", PERSEUS_FAKE_NVML_LIBRARY)
                                 : "simulated:" + folder_.Path("gpus");
  return {"--driver",  driver,        "--socket",    Socket(),
          "--journal", JournalPath(), "--gpu-locks", folder_.Path("locks")};
}

// Which GPUs the fake library shows.
std::vector<std::string> Drill::Environment() const {
  return {"PERSEUS_FAKE_NVML=" + folder_.Path("gpus")};
}

bool Drill::StartAgent() {
  agent_.reset();
  std::vector<std::string> arguments = {PERSEUS_BINARY, "agent", "run"};
  const std::vector<std::string> place = PlaceArguments();
  arguments.insert(arguments.end(), place.begin(), place.end());
  arguments.insert(arguments.end(), options_.agent_arguments.begin(),
                   options_.agent_arguments.end());
  agent_ = std::make_unique<Program>(std::move(arguments), Environment());
  const auto deadline = Clock::now() + kPatience;
  while (!Control::Connect(Socket(), "drill", kPatience)) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::unique_ptr<Program> Drill::StartClient(const std::string& mode,
                                            const std::vector<int>& gpus) const {
  std::vector<std::string> arguments = {PERSEUS_DRILL_CLIENT, Socket(), mode,
                                        std::to_string(kLowMhz)};
  for (const int gpu : gpus) arguments.push_back(gpus_->info(gpu).uuid);
  auto client = std::make_unique<Program>(std::move(arguments));
  return client->ReadLine() == "ready" ? std::move(client) : nullptr;
}

bool Drill::AreFree(const std::vector<int>& gpus) {
  return std::all_of(gpus.begin(), gpus.end(), [this](int gpu) {
    const auto now = gpus_->Snapshot(gpu);
    return now && !now->locked_mhz && now->clock_mhz == kHighMhz;
  });
}

std::optional<Drill::Clock::time_point> Drill::WaitUntilFree(const std::vector<int>& gpus) {
  const auto deadline = Clock::now() + kPatience;
  while (Clock::now() < deadline) {
    if (AreFree(gpus)) return Clock::now();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return std::nullopt;
}

}  // namespace perseus::agent
