// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/json_text.h"
#include "common/utf8.h"

namespace perseus::agent {
namespace {

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      break;
  }
  return "error";
}

// Bare words stay as they are; all else in quotes, with escapes.
std::string LogValue(const std::string& text) {
  const auto is_bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./:@+,").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_bare)) return text;
  return FormatCompact(text);
}

}  // namespace

// Lines on their way to the sink.
struct Log::Queue {
  static constexpr std::size_t kMostLines = 1000;

  explicit Queue(Sink to) : sink(std::move(to)) {}

  // False: too many wait.
  bool Put(std::string line) {
    const std::lock_guard lock(mutex);
    if (lines.size() >= kMostLines) return false;
    lines.push_back(std::move(line));
    changed.notify_all();
    return true;
  }

  void WriteAll() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stopping || !lines.empty(); });
      if (lines.empty()) break;
      const std::string line = std::move(lines.front());
      lines.pop_front();
      is_writing = true;
      lock.unlock();
      sink(line);
      lock.lock();
      is_writing = false;
      changed.notify_all();
    }
    ended = true;
    changed.notify_all();
  }

  const Sink sink;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> lines;
  bool is_writing = false;
  bool stopping = false;
  bool ended = false;
};

Log::Log(Sink sink)
    : queue_(std::make_shared<Queue>(std::move(sink))),
      writer_([queue = queue_] { queue->WriteAll(); }) {}

Log::~Log() {
  std::unique_lock lock(queue_->mutex);
  queue_->stopping = true;
  queue_->changed.notify_all();
  const bool ended =
      queue_->changed.wait_for(lock, std::chrono::seconds(1), [this] { return queue_->ended; });
  lock.unlock();
  if (ended) {
    writer_.join();
  } else {
    writer_.detach();
  }
}

void Log::Flush(std::chrono::milliseconds patience) {
  std::unique_lock lock(queue_->mutex);
  queue_->changed.wait_for(lock, patience,
                           [this] { return queue_->lines.empty() && !queue_->is_writing; });
}

bool Log::MayWrite(LogLevel level) {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> passed = now - refilled_;
  tokens_ = std::min(kBurst, tokens_ + passed.count() * kPerSecond);
  refilled_ = now;
  if (level == LogLevel::kError) return true;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

void Log::Write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  const std::lock_guard lock(mutex_);
  if (!MayWrite(level)) {
    ++left_out_;
    return;
  }
  std::string line = fmt::format("level={} event={}", LevelName(level), event);
  for (const LogField& field : fields) {
    line += fmt::format(" {}={}", field.key, LogValue(field.value));
  }
  if (left_out_ > 0) line += fmt::format(" lines_left_out={}", left_out_);
  if (queue_->Put(line + "\n")) {
    left_out_ = 0;
  } else {
    ++left_out_;
  }
}

}  // namespace perseus::agent
