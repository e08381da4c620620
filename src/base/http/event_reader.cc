// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "http/event_reader_state.h"

namespace perseus::http {
namespace {

constexpr std::size_t kMaxEventHeadBytes = 64 << 10;
constexpr std::size_t kMaxErrorBytes = 64 << 10;

// The rest of an answer that is no stream, for its message.
std::string ReadError(ClientWire* wire, MessageParser* parser, Deadline deadline) {
  parser->AllowBody(kMaxErrorBytes);
  std::string body;
  for (;;) {
    const Result<MessageParser::Step> step = wire->Read(parser, deadline);
    body += std::exchange(parser->body(), {});
    if (!step || *step == MessageParser::Step::kDone) return body;
  }
}

}  // namespace

EventReader::State::State(ClientWire connected, std::unique_ptr<CancelSignal> signal)
    : wire(std::move(connected)),
      cancel(std::move(signal)),
      parser(MessageKind::kResponse, kMaxEventHeadBytes),
      heard(std::chrono::steady_clock::now()) {}

Result<std::unique_ptr<EventReader::State>> EventReader::State::Begin(
    ClientWire wire, Deadline deadline, std::string_view last_event_id) {
  Result<std::unique_ptr<CancelSignal>> cancel = CancelSignal::Make();
  if (!cancel) return tl::unexpected(cancel.error());
  auto state = std::make_unique<State>(std::move(wire), *std::move(cancel));
  const Result<MessageParser::Step> step = state->wire.Read(&state->parser, deadline);
  if (!step) return tl::unexpected(step.error());
  const int status = state->parser.head().status;
  if (status != 200) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("The server gives no events (status {}): {}", status,
                                 ReadError(&state->wire, &state->parser, deadline)));
  }
  state->parser.AllowBody(std::numeric_limits<std::size_t>::max());
  state->events.set_last_id(last_event_id);
  // From here on another may cancel.
  state->wire.set_cancel(state->cancel.get());
  return state;
}

EventReader::EventReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
EventReader::EventReader(EventReader&&) noexcept = default;
EventReader& EventReader::operator=(EventReader&&) noexcept = default;
EventReader::~EventReader() = default;

Result<std::optional<Event>> EventReader::Next(double deadline_seconds) {
  const Deadline deadline = DeadlineIn(deadline_seconds);
  for (;;) {
    if (!state_->events.events().empty()) {
      std::optional<Event> event = std::move(state_->events.events().front());
      state_->events.events().pop_front();
      return event;
    }
    const Result<MessageParser::Step> step = state_->wire.Read(&state_->parser, deadline);
    if (!step) {
      if (state_->wire.deadline_passed()) return std::nullopt;
      return tl::unexpected(step.error());
    }
    const std::string text = std::exchange(state_->parser.body(), {});
    if (!text.empty()) state_->heard = std::chrono::steady_clock::now();
    if (!state_->events.Feed(text)) {
      return MakeError(ErrorCode::kIo, "The server sent an event that is too long to be one.");
    }
    if (*step == MessageParser::Step::kDone && state_->events.events().empty()) {
      return MakeError(ErrorCode::kIo, "The server ended the stream of events.");
    }
  }
}

double EventReader::silent_seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - state_->heard).count();
}

void EventReader::Cancel() { state_->cancel->Set(); }

}  // namespace perseus::http
