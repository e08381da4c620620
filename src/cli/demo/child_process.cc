// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/demo/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>

#include "common/file.h"
#include "common/monotonic_clock.h"

namespace perseus::demo {
namespace {

constexpr std::size_t kMaxLogBytes = std::size_t{64} << 20;
constexpr long kStopLookNs = 10'000'000;

double NowSeconds() { return 1e-9 * static_cast<double>(MonotonicNs()); }

// In the child, between fork and exec: async-signal-safe calls only.
[[noreturn]] void Become(char* const* arguments, int output, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(127);  // It died before that.
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
  dup2(output, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(arguments[0], arguments);
  _exit(127);
}

}  // namespace

Result<ChildProcess> ChildProcess::Start(std::string name,
                                         const std::vector<std::string>& arguments,
                                         const std::string& log, bool pipe) {
  const auto fail = [&](const std::string& what) {
    return MakeError(ErrorCode::kIo, fmt::format("{}: {}: {}", name, what, SystemMessage(errno)));
  };
  const FileDescriptor log_file = OpenFile(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (!log_file.valid()) return fail(log);
  FileDescriptor read_end;
  FileDescriptor write_end;
  if (pipe) {
    std::array<int, 2> ends = {};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail("no pipe");
    read_end = FileDescriptor(ends[0]);
    write_end = FileDescriptor(ends[1]);
  }
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail("it cannot be started");
  if (pid == 0) {
    Become(pointers.data(), pipe ? write_end.get() : log_file.get(), log_file.get(), parent);
  }
  return ChildProcess(std::move(name), log, pid, std::move(read_end));
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(log_, other.log_);
  std::swap(pid_, other.pid_);
  std::swap(buffer_, other.buffer_);
  std::swap(end_, other.end_);
  std::swap(ended_well_, other.ended_well_);
  output_ = std::move(other.output_);
  return *this;
}

std::optional<std::string> ChildProcess::ReadLine(double seconds) {
  const double deadline = NowSeconds() + seconds;
  while (true) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    const double left = deadline - NowSeconds();
    pollfd ready = {.fd = output_.get(), .events = POLLIN, .revents = 0};
    const int count = left > 0 ? ::poll(&ready, 1, static_cast<int>(left * 1e3) + 1) : 0;
    if (count < 0 && errno == EINTR) return std::nullopt;
    if (count <= 0) return std::nullopt;
    std::array<char, 1024> chunk = {};
    const ssize_t got = ::read(output_.get(), chunk.data(), chunk.size());
    if (got <= 0) return std::nullopt;
    buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

std::optional<std::string> ChildProcess::Ended() {
  if (pid_ <= 0) return end_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  ended_well_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  end_ = WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                             : fmt::format("exited with {}", WEXITSTATUS(status));
  return end_;
}

void ChildProcess::Stop(double seconds) {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  const double deadline = NowSeconds() + seconds;
  while (!Ended() && NowSeconds() < deadline) {
    const timespec look = {.tv_sec = 0, .tv_nsec = kStopLookNs};
    nanosleep(&look, nullptr);
  }
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

Error ChildProcess::Failure(const std::string& how) const {
  std::string last;
  if (const Result<std::string> log = ReadWholeFile(log_, kMaxLogBytes)) {
    const std::size_t end = log->find_last_not_of('\n');
    if (end != std::string::npos) {
      const std::size_t begin = log->rfind('\n', end);
      last = log->substr(begin == std::string::npos ? 0 : begin + 1,
                         end - (begin == std::string::npos ? 0 : begin + 1) + 1);
    }
  }
  return {ErrorCode::kIo, fmt::format("{} {}{}{}", name_, how, last.empty() ? "" : ": ", last)};
}

}  // namespace perseus::demo
