// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>
#include <string_view>

#include "http/server.h"

namespace perseus::http {
namespace {

void AppendField(std::string_view name, std::string_view value, std::string* event) {
  event->append(name).append(": ");
  for (const char c : value) *event += c == '\n' || c == '\r' || c == '\0' ? ' ' : c;
  *event += '\n';
}

}  // namespace

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
