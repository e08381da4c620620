// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_EVENT_READER_STATE_H_
#define PERSEUS_HTTP_EVENT_READER_STATE_H_

#include <memory>
#include <string_view>

#include "http/client.h"
#include "http/client_wire.h"
#include "http/event_parser.h"
#include "http/message_parser.h"

namespace perseus::http {

struct EventReader::State {
  State(ClientWire connected, std::unique_ptr<CancelSignal> signal);

  // Reads the head of the answer on `wire`.
  static Result<std::unique_ptr<State>> Begin(ClientWire wire, Deadline deadline,
                                              std::string_view last_event_id);

  ClientWire wire;
  std::unique_ptr<CancelSignal> cancel;
  MessageParser parser;
  EventParser events;
  Deadline heard;  // When the last byte arrived.
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_EVENT_READER_STATE_H_
