// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/event_parser.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "http/server.h"

namespace perseus::http {
namespace {

constexpr std::size_t kMaxEventBytes = 16 << 20;

void AppendField(std::string_view name, std::string_view value, std::string* event) {
  event->append(name).append(": ");
  for (const char c : value) *event += c == '\n' || c == '\r' || c == '\0' ? ' ' : c;
  *event += '\n';
}

}  // namespace

bool EventParser::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (std::exchange(after_return_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t size = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (line_.size() + next_.data.size() + size > kMaxEventBytes) return false;
    line_.append(bytes.substr(0, size));
    bytes.remove_prefix(size);
    if (bytes.empty()) break;
    after_return_ = bytes.front() == '\r';
    bytes.remove_prefix(1);
    EndLine();
  }
  return true;
}

void EventParser::EndLine() {
  std::string line = std::exchange(line_, {});
  if (std::exchange(is_first_line_, false) && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  if (line.empty()) {
    if (std::exchange(has_data_, false)) {
      next_.data.pop_back();  // The line end after the last line of data.
      if (next_.name.empty()) next_.name = "message";
      events_.push_back(next_);
    }
    next_.name.clear();
    next_.data.clear();
    return;
  }
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string_view field = std::string_view(line).substr(0, colon);
  std::string_view value = std::string_view(line).substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    next_.data.append(value).append("\n");
    has_data_ = true;
  } else if (field == "event") {
    next_.name = value;
  } else if (field == "id" && value.find('\0') == std::string_view::npos) {
    next_.id = value;
  }
}

std::string EventStream::Format(std::string_view event_name, std::string_view data,
                                std::string_view id) {
  std::string event;
  event.reserve(event_name.size() + data.size() + id.size() + 32);
  if (!id.empty()) AppendField("id", id, &event);
  if (!event_name.empty()) AppendField("event", event_name, &event);
  // "\r\n", "\r" and "\n" are line ends alike.
  for (;;) {
    const std::size_t size = std::min(data.find_first_of("\r\n"), data.size());
    event.append("data: ").append(data.substr(0, size)).append("\n");
    if (size == data.size()) return event += '\n';
    const bool is_pair = data.substr(size).starts_with("\r\n");
    data.remove_prefix(size + (is_pair ? 2 : 1));
  }
}

}  // namespace perseus::http
