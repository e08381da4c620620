// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_EVENT_PARSER_H_
#define PERSEUS_HTTP_EVENT_PARSER_H_

#include <deque>
#include <string>
#include <string_view>

#include "http/client.h"

namespace perseus::http {

// Reads server-sent events (the HTML standard, 9.2.6) from the pieces in which they
// arrive. `retry` fields are skipped: the caller decides when it connects again.
class EventParser {
 public:
  // False: an event is longer than 16 MiB; the stream cannot be read any further.
  bool Feed(std::string_view bytes);

  // Sets the id that events have until the server sends one.
  void set_last_id(std::string_view id) { next_.id = id; }

  // The complete events; take them from the front.
  std::deque<Event>& events() { return events_; }

 private:
  void EndLine();

  std::string line_;
  bool after_return_ = false;  // The last byte was a '\r', whose '\n' may follow.
  bool is_first_line_ = true;
  Event next_;
  bool has_data_ = false;
  std::deque<Event> events_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_EVENT_PARSER_H_
