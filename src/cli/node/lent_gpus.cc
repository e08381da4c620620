// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/node/lent_gpus.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <variant>

#include "agent/agent.h"
#include "agent/control.h"
#include "agent/protocol.h"
#include "cli/node/gpu_locks.h"
#include "common/file.h"
#include "common/file_descriptor.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/signal_hold.h"

namespace perseus::cli {
namespace {

constexpr std::string_view kReady = "ready";
constexpr const char* kOurName = "perseus doctor";
constexpr std::chrono::milliseconds kConnectPatience(2000);
// Longer than any driver's call.
constexpr std::chrono::milliseconds kAnswerPatience(30'000);
// A probe may set no clock for long, and then its connection says nothing.
constexpr std::chrono::hours kMaxSilence(1);

std::string SocketIn(const std::string& folder) { return folder + "/agent.sock"; }

// Simulated GPUs are not those of an agent at its usual place.
std::string JournalFor(const std::string& driver, const std::string& folder) {
  return driver.starts_with("simulated:") ? folder + "/journal" : agent::kDefaultJournalPath;
}

void Tell(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string ReadAll(int descriptor) {
  std::string text;
  std::array<char, 512> bytes{};
  while (true) {
    const ssize_t count = ::read(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

// In the new process. Says on `tells` that it is ready.
Result<void> Serve(const std::string& driver_spec, const std::string& folder,
                   FileDescriptor* tells) {
  const StopSignals signals;
  Result<std::unique_ptr<device::Driver>> driver = device::OpenDriver(driver_spec);
  if (!driver) return tl::unexpected(driver.error());
  agent::AgentOptions options;
  options.driver = driver_spec;
  options.socket_path = SocketIn(folder);
  options.journal_path = JournalFor(driver_spec, folder);
  options.gpu_locks = GpuLocksOf(driver_spec);
  options.worker.min_interval = std::chrono::nanoseconds(0);
  options.max_silence = kMaxSilence;
  const auto log = std::make_shared<Log>([](const std::string& /*line*/) {});
  const auto agent = agent::Agent::Start(options, *std::move(driver), log);
  if (!agent) return tl::unexpected(agent.error());
  Tell(tells->get(), kReady);
  *tells = FileDescriptor();
  return (*agent)->Run(signals.descriptor());
}

// Never returns.
void RunAgent(const std::string& driver, const std::string& folder, FileDescriptor* tells,
              pid_t parent) {
  // Ctrl-C is for the examination, which then ends this process.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(EXIT_FAILURE);
  const Result<void> served = Serve(driver, folder, tells);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!served && tells->valid()) Tell(tells->get(), served.error().message);
  ::_exit(served ? EXIT_SUCCESS : EXIT_FAILURE);
}

void Await(pid_t process) {
  while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

class LentGpu : public device::Gpu {
 public:
  LentGpu(device::Gpu* direct, agent::Control control)
      : direct_(direct), control_(std::move(control)) {}

  const device::GpuInfo& info() const override { return direct_->info(); }
  Result<void> LockClock(int mhz) override { return Ask(agent::Operation::kSet, mhz); }
  Result<void> ReleaseClock() override { return Ask(agent::Operation::kRelease, 0); }
  Result<int> ClockMhz() override { return direct_->ClockMhz(); }
  Result<double> EnergyJoules() override { return direct_->EnergyJoules(); }
  Result<double> PowerWatts() override { return direct_->PowerWatts(); }
  Result<device::GpuConditions> Conditions() override { return direct_->Conditions(); }

  Result<void> Ask(agent::Operation operation, int mhz) {
    agent::Request request;
    request.operation = operation;
    request.gpu = info().uuid;
    request.mhz = mhz;
    const MutexLock lock(mutex_);
    const Result<agent::Answer> answer = control_.Ask(std::move(request));
    if (!answer) return tl::unexpected(answer.error());
    const auto* const refused = std::get_if<agent::Refused>(&answer->body);
    if (refused == nullptr) return {};
    const bool is_denied = refused->code == agent::Refusal::kDenied;
    return MakeError(is_denied ? ErrorCode::kDenied : ErrorCode::kIo, refused->message);
  }

 private:
  device::Gpu* const direct_;
  Mutex mutex_;
  agent::Control control_ PERSEUS_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<OwnAgent>> OwnAgent::Start(const std::string& driver) {
  std::error_code failed;
  std::string folder =
      (std::filesystem::temp_directory_path(failed) / "perseus-doctor-XXXXXX").string();
  std::array<int, 2> ends{};
  if (failed || ::mkdtemp(folder.data()) == nullptr || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return MakeError(ErrorCode::kIo, "cannot make a folder for the agent that gives clocks back: " +
                                         SystemMessage(errno));
  }
  const FileDescriptor hears(ends[0]);
  FileDescriptor tells(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process == 0) RunAgent(driver, folder, &tells, parent);
  if (process < 0) {
    std::filesystem::remove_all(folder, failed);
    return MakeError(
        ErrorCode::kIo,
        "cannot make a process for the agent that gives clocks back: " + SystemMessage(errno));
  }
  tells = FileDescriptor();
  const std::string said = ReadAll(hears.get());
  if (said == kReady) return std::unique_ptr<OwnAgent>(new OwnAgent(std::move(folder), process));
  Await(process);
  return MakeError(ErrorCode::kIo, said.empty() ? "the agent that gives clocks back died" : said);
}

OwnAgent::~OwnAgent() {
  ::kill(process_, SIGTERM);
  Await(process_);
}

Result<std::unique_ptr<device::Gpu>> OwnAgent::Lend(device::Gpu* direct) const {
  Result<agent::Control> control =
      agent::Control::Connect(SocketIn(folder_), kOurName, kConnectPatience, kAnswerPatience);
  if (!control) return tl::unexpected(control.error());
  auto gpu = std::make_unique<LentGpu>(direct, *std::move(control));
  if (auto leased = gpu->Ask(agent::Operation::kLease, 0); !leased) {
    return tl::unexpected(leased.error());
  }
  return gpu;
}

}  // namespace perseus::cli
