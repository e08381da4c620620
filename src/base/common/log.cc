// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/json_text.h"
#include "common/printable.h"

namespace perseus {
namespace {

constexpr double kBurstSeconds = 10;
// For the last lines, at the end of the program.
constexpr std::chrono::milliseconds kLastPatience{300};

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      break;
  }
  return "error";
}

bool IsBareWord(std::string_view text) {
  const auto is_bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./:@+,%").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_bare);
}

// "2026-11-22T00:31:09.120Z".
std::string Now() {
  using std::chrono::milliseconds;
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto count = std::chrono::duration_cast<milliseconds>(since).count();
  const auto seconds = static_cast<std::time_t>(count / 1000);
  std::tm moment{};
  ::gmtime_r(&seconds, &moment);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", moment.tm_year + 1900,
                     moment.tm_mon + 1, moment.tm_mday, moment.tm_hour, moment.tm_min,
                     moment.tm_sec, count % 1000);
}

std::string LineOf(LogFormat format, LogLevel level, std::string_view event,
                   const std::vector<LogField>& fields) {
  const bool is_json = format == LogFormat::kJson;
  std::string line = is_json ? fmt::format(R"({{"time":"{}","level":"{}","event":{})", Now(),
                                           LevelName(level), LogValue(event).Json())
                     : format == LogFormat::kText
                         ? fmt::format("{} {} {}", Now(), LevelName(level), Printable(event))
                         : fmt::format("level={} event={}", LevelName(level), Printable(event));
  for (const LogField& field : fields) {
    line += is_json ? fmt::format(",{}:{}", LogValue(field.key).Json(), field.value.Json())
                    : fmt::format(" {}={}", Printable(field.key), field.value.Text());
  }
  return line + (is_json ? "}\n" : "\n");
}

}  // namespace

LogValue::LogValue(double number)
    : text_(std::isfinite(number) ? fmt::format("{}", number) : "null"), is_json_(true) {}

LogValue::LogValue(const nlohmann::ordered_json& value)
    : text_(value.is_string() ? value.get<std::string>() : FormatCompact(value)),
      is_json_(!value.is_string()) {}

std::string LogValue::Json() const {
  return PrintableJson(is_json_ ? text_ : FormatCompact(text_));
}

std::string LogValue::Text() const { return IsBareWord(text_) ? text_ : Json(); }

// Lines on their way to the sink.
struct Log::Queue {
  Queue(const LogOptions& options, Sink to)
      : format(options.format), most_lines(options.most_waiting), sink(std::move(to)) {}

  void Put(std::string line) {
    const MutexLock lock(mutex);
    if (lines.size() >= most_lines) {
      ++left_out;
      return;
    }
    lines.push_back(std::move(line));
    changed.NotifyAll();
  }

  // Has all lines written; waits for the last at most so long. False: the sink hangs.
  bool Stop(std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    const MutexLock lock(mutex);
    stopping = true;
    changed.NotifyAll();
    while (!ended && changed.WaitUntil(mutex, until)) {
    }
    return ended;
  }

  void Flush(std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    const MutexLock lock(mutex);
    while ((!lines.empty() || is_writing) && changed.WaitUntil(mutex, until)) {
    }
  }

  // The next line; where too many waited meanwhile, how many of them are lost comes last.
  std::optional<std::string> TakeLine() PERSEUS_REQUIRES(mutex) {
    if (!lines.empty()) {
      std::string line = std::move(lines.front());
      lines.pop_front();
      return line;
    }
    if (left_out == 0) return std::nullopt;
    return LineOf(format, LogLevel::kWarning, "log_lines_left_out",
                  {{"lines", std::exchange(left_out, 0)}, {"why", "nobody took them"}});
  }

  void WriteAll() {
    const MutexLock lock(mutex);
    while (true) {
      while (!stopping && lines.empty() && left_out == 0) changed.Wait(mutex);
      const std::optional<std::string> line = TakeLine();
      if (!line) break;
      is_writing = true;
      {
        const MutexUnlock open_again(mutex);
        sink(*line);
      }
      is_writing = false;
      changed.NotifyAll();
    }
    ended = true;
    changed.NotifyAll();
  }

  const LogFormat format;
  const std::size_t most_lines;
  const Sink sink;
  Mutex mutex;
  ConditionVariable changed;
  std::deque<std::string> lines PERSEUS_GUARDED_BY(mutex);
  std::int64_t left_out PERSEUS_GUARDED_BY(mutex) = 0;
  bool is_writing PERSEUS_GUARDED_BY(mutex) = false;
  bool stopping PERSEUS_GUARDED_BY(mutex) = false;
  bool ended PERSEUS_GUARDED_BY(mutex) = false;
};

Log::Log(Sink sink, LogOptions options)
    : options_(options),
      queue_(std::make_shared<Queue>(options, std::move(sink))),
      writer_([queue = queue_] { queue->WriteAll(); }),
      tokens_(options.lines_per_second * kBurstSeconds) {}

Log::~Log() {
  if (queue_->Stop(kLastPatience)) {
    writer_.join();
  } else {
    writer_.detach();
  }
}

void Log::Flush(std::chrono::milliseconds patience) { queue_->Flush(patience); }

bool Log::MayWrite(LogLevel level) {
  if (options_.lines_per_second <= 0) return true;
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> passed = now - refilled_;
  tokens_ = std::min(options_.lines_per_second * kBurstSeconds,
                     tokens_ + passed.count() * options_.lines_per_second);
  refilled_ = now;
  if (level == LogLevel::kError) return true;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

void Log::Write(LogLevel level, std::string_view event, const std::vector<LogField>& fields) {
  if (level < options_.least) return;
  std::int64_t left_out = 0;
  {
    const MutexLock lock(mutex_);
    if (!MayWrite(level)) {
      ++left_out_;
      return;
    }
    left_out = std::exchange(left_out_, 0);
  }
  if (left_out == 0) return queue_->Put(LineOf(options_.format, level, event, fields));
  std::vector<LogField> more = fields;
  more.push_back({"lines_left_out", left_out});
  queue_->Put(LineOf(options_.format, level, event, more));
}

void Log::WriteToStandardError(const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // Nobody is left to be told.
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace perseus
