// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/framework/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "common/file.h"

namespace perseus::cli {
namespace {

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(Environment(name));
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

int TerminalColumns() {
  constexpr int kNarrowest = 60;
  constexpr int kWidest = 120;
  int columns = 0;
  const std::string_view variable = Environment("COLUMNS");
  std::from_chars(variable.data(), variable.data() + variable.size(), columns);
  winsize size{};
  if (columns <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns <= 0) columns = 80;
  return std::clamp(columns, kNarrowest, kWidest);
}

int TerminalRows() {
  constexpr int kUsual = 24;
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : kUsual;
}

// errno of the first failure, 0 when everything was written.
int WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

std::string Style::Bold(std::string_view text) const {
  return color ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}

std::string Style::Dim(std::string_view text) const {
  return color ? fmt::format("\x1b[2m{}\x1b[0m", text) : std::string(text);
}

Style DetectStyle() {
  Style style;
  const bool is_dumb = Environment("TERM") == "dumb";
  style.color = isatty(STDOUT_FILENO) == 1 && Environment("NO_COLOR").empty() && !is_dumb;
  style.utf8 = LocaleIsUtf8() && !is_dumb;
  style.columns = TerminalColumns();
  style.rows = TerminalRows();
  return style;
}

void PrepareStandardStreams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free descriptor is the one that is missing.
    if (open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) != descriptor) return;
  }
  std::signal(SIGPIPE, SIG_IGN);
  // A file over `ulimit -f` is an error of its write, and not the end.
  std::signal(SIGXFSZ, SIG_IGN);
}

Result<bool> WriteStandardOutput(std::string_view text) {
  const int failure = WriteAll(STDOUT_FILENO, text);
  if (failure == 0 || failure == EPIPE) return failure == 0;
  return MakeError(ErrorCode::kIo,
                   fmt::format("cannot write to standard output: {}; send it to a place that "
                               "can be written",
                               std::generic_category().message(failure)));
}

bool HasReader() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, 0) <= 0 || (output.revents & POLLERR) == 0;
}

void WriteStandardError(std::string_view text) { static_cast<void>(WriteAll(STDERR_FILENO, text)); }

bool Confirm(std::string_view question) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return true;
  WriteStandardError(std::string(question) + " [y/N] ");
  std::string answer;
  char c = 0;
  while (::read(STDIN_FILENO, &c, 1) == 1 && c != '\n') answer += c;
  return answer == "y" || answer == "Y" || answer == "yes";
}

ProgressLine::ProgressLine(std::string_view what)
    : what_(what), is_terminal_(isatty(STDERR_FILENO) == 1), start_(Clock::now()), last_(start_) {}

ProgressLine::~ProgressLine() {
  if (shown_) WriteStandardError("\r\x1b[K");
}

void ProgressLine::SetWhat(std::string_view what) { what_ = what; }

void ProgressLine::Report(double share) {
  constexpr std::chrono::milliseconds kBetweenUpdates(100);
  if (!is_terminal_ || (shown_ && Clock::now() - last_ < kBetweenUpdates)) return;
  Show(fmt::format("{}: {:.0f} %", what_, 100 * std::clamp(share, 0.0, 1.0)));
}

void ProgressLine::Announce(std::string_view what) {
  what_ = what;
  if (is_terminal_) Show(what_);
}

void ProgressLine::Show(std::string_view text) {
  constexpr std::chrono::milliseconds kPatience(1000);
  const Clock::time_point now = Clock::now();
  if (now - start_ < kPatience) return;
  last_ = now;
  shown_ = true;
  WriteStandardError(fmt::format("\r\x1b[K{}", text));
}

ProgressFunction ProgressLine::Function() {
  return [this](const Progress& now) {
    Report(now.share);
    return true;
  };
}

namespace {

bool AreOneFile(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

Result<void> CheckNotAnInput(const std::string& path, const std::vector<InputFile>& inputs) {
  for (const InputFile& input : inputs) {
    if (!AreOneFile(path, input.path)) continue;
    return InvalidInput(
        fmt::format("{}: --output would replace {}; choose another place", path, input.what));
  }
  return {};
}

}  // namespace

Result<void> CheckOutputFile(const std::string& path, const std::vector<InputFile>& inputs) {
  if (auto good = CheckNotAnInput(path, inputs); !good) return good;
  return CheckWritable(path);
}

Result<void> CheckOutputFiles(const std::string& directory, const std::vector<std::string>& names,
                              const std::vector<InputFile>& inputs) {
  for (const std::string& name : names) {
    const std::string path = (std::filesystem::path(directory) / name).string();
    if (auto good = CheckNotAnInput(path, inputs); !good) return good;
  }
  return CheckWritable(directory, names);
}

void NoteStale(const std::string& directory, std::string_view name,
               std::vector<std::string>* notes) {
  const std::string stale = fmt::format("{}/{}", directory, name);
  std::error_code ignored;
  if (!std::filesystem::exists(stale, ignored)) return;
  notes->push_back(
      fmt::format("{} is there from an earlier plan and does not belong to this one.", stale));
}

}  // namespace perseus::cli
