// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "common/file.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "http/client_wire.h"
#include "http/listener.h"
#include "http/message.h"
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

constexpr std::size_t kMaxResponseHeadBytes = 64 << 10;

bool HasControls(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

bool IsRepeatable(std::string_view method) {
  constexpr std::array<std::string_view, 4> kRepeatable = {"GET", "HEAD", "PUT", "DELETE"};
  return std::find(kRepeatable.begin(), kRepeatable.end(), method) != kRepeatable.end();
}

bool IsForLater(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

// Refuses arguments that could say more than one request.
Result<void> CheckCall(std::string_view method, std::string_view target,
                       const CallOptions& options) {
  const bool is_token = !method.empty() && std::all_of(method.begin(), method.end(),
                                                       [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!is_token) return InvalidInput(fmt::format("{} is no method.", Shown(method)));
  if (!target.starts_with('/') || HasControls(target) ||
      target.find(' ') != std::string_view::npos) {
    return InvalidInput(fmt::format(
        "{} is no target: it has to begin with '/' and be percent-encoded.", Shown(target)));
  }
  for (const auto& [name, value] : options.headers) {
    if (name.empty() || HasControls(name) || HasControls(value) ||
        name.find_first_of(": ") != std::string::npos) {
      return InvalidInput(fmt::format("{} is no header.", Shown(name)));
    }
  }
  return {};
}

Response TakeResponse(MessageParser* parser) {
  Response response;
  response.status = parser->head().status;
  const std::string* type = FindHeader(parser->head().headers, "Content-Type");
  response.content_type = type != nullptr ? *type : "";
  response.headers = std::move(parser->head().headers);
  response.body = std::make_shared<const std::string>(std::move(parser->body()));
  return response;
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

Result<std::string> ReadTokenFile(const std::string& path) {
  constexpr std::size_t kMostTokenFileBytes = 4096;
  constexpr std::string_view kSpace = " \t\r\n";
  if (path.empty()) return "";
  const Result<std::string> text = ReadWholeFile(path, kMostTokenFileBytes);
  if (!text) return tl::unexpected(text.error());
  const std::size_t first = std::min(text->find_first_not_of(kSpace), text->size());
  const std::size_t end = std::min(text->find_first_of(kSpace, first), text->size());
  if (first == end || text->find_first_not_of(kSpace, end) != std::string::npos) {
    const std::string_view word = std::string_view(*text).substr(first, end - first);
    const bool is_servers = word == "read" || word == "train" || word == "operate";
    return InvalidInput(fmt::format(
        "{}: expected a file that holds one token{}", path,
        is_servers ? " and nothing else; this seems to be a server's file, with a role before each"
                   : ""));
  }
  return text->substr(first, end - first);
}

struct Client::State {
  ClientOptions options;
  std::vector<Endpoint> endpoints;
  std::size_t present = 0;  // The endpoint that is asked first.
  std::optional<TlsContext> tls;
  std::unique_ptr<CancelSignal> cancel;
  std::optional<ClientWire> wire;
  std::minstd_rand random{std::random_device{}()};

  std::string Head(std::string_view method, std::string_view target, std::string_view body,
                   const CallOptions& call) const;
  Result<ClientWire> Connect(Deadline deadline, const CancelSignal* signal) const;
  Result<Response> Receive(bool is_head, Deadline deadline);
  // `was_sent`: the server may have the request.
  Result<Response> Once(std::string_view method, std::string_view head, std::string_view body,
                        Deadline deadline, bool* was_sent);
  Result<Response> OfAnyServer(std::string_view method, std::string_view target,
                               std::string_view body, const CallOptions& call, Deadline deadline);
  const Endpoint& endpoint() const { return endpoints[present]; }
  void TurnToNext() {
    if (endpoints.size() > 1) wire.reset();
    present = (present + 1) % endpoints.size();
  }
  // How long to wait before the next attempt.
  double Pause(const Retry& retry, int attempt, const Result<Response>& last);
};

std::string Client::State::Head(std::string_view method, std::string_view target,
                                std::string_view body, const CallOptions& call) const {
  std::string head = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n", method, endpoint().prefix,
                                 target, endpoint().host_header);
  if (!options.token.empty()) head += fmt::format("Authorization: Bearer {}\r\n", options.token);
  if (!body.empty()) head += fmt::format("Content-Type: {}\r\n", call.content_type);
  if (!body.empty() || method == "POST" || method == "PUT") {
    head += fmt::format("Content-Length: {}\r\n", body.size());
  }
  for (const auto& [name, value] : call.headers) head += fmt::format("{}: {}\r\n", name, value);
  return head += "\r\n";
}

Result<ClientWire> Client::State::Connect(Deadline deadline, const CancelSignal* signal) const {
  return ClientWire::Connect(endpoint(), endpoint().is_tls ? &*tls : nullptr,
                             std::min(deadline, DeadlineIn(options.connect_seconds)), signal);
}

Result<Response> Client::State::Receive(bool is_head, Deadline deadline) {
  MessageParser parser(is_head ? MessageKind::kResponseToHead : MessageKind::kResponse,
                       kMaxResponseHeadBytes);
  parser.AllowBody(options.max_response_bytes);
  std::string body;
  for (;;) {
    const Result<MessageParser::Step> step = wire->Read(&parser, deadline);
    if (!step) return tl::unexpected(step.error());
    if (*step == MessageParser::Step::kDone) break;
    if (*step == MessageParser::Step::kMore) body += std::exchange(parser.body(), {});
    if (*step == MessageParser::Step::kHead && parser.head().status / 100 == 1) {
      // "100 Continue" and its like come before the answer.
      parser = MessageParser(is_head ? MessageKind::kResponseToHead : MessageKind::kResponse,
                             kMaxResponseHeadBytes);
      parser.AllowBody(options.max_response_bytes);
    }
  }
  parser.body() = body.empty() ? std::move(parser.body()) : body + parser.body();
  const bool keep_alive = parser.head().keep_alive;
  Response response = TakeResponse(&parser);
  if (!keep_alive) wire.reset();
  return response;
}

Result<Response> Client::State::Once(std::string_view method, std::string_view head,
                                     std::string_view body, Deadline deadline, bool* was_sent) {
  if (wire && wire->is_stale()) wire.reset();
  for (;;) {
    const bool is_kept = wire.has_value();
    if (!is_kept) {
      Result<ClientWire> connected = Connect(deadline, cancel.get());
      if (!connected) return tl::unexpected(connected.error());
      wire.emplace(*std::move(connected));
    }
    *was_sent = true;
    const Result<void> sent = wire->Send(head, body, deadline);
    Result<Response> response =
        sent ? Receive(method == "HEAD", deadline) : tl::unexpected(sent.error());
    if (response) return response;
    const bool was_closed = is_kept && !wire->has_received() && !wire->deadline_passed() &&
                            response.error().code == ErrorCode::kIo;
    wire.reset();
    if (!was_closed || !IsRepeatable(method)) return response;
  }
}

// Asks one server after the other, as long as none has taken the request. The next call begins with
// the one that did.
Result<Response> Client::State::OfAnyServer(std::string_view method, std::string_view target,
                                            std::string_view body, const CallOptions& call,
                                            Deadline deadline) {
  for (std::size_t asked = 1;; ++asked) {
    bool was_sent = false;
    Result<Response> response =
        Once(method, Head(method, target, body, call), body, deadline, &was_sent);
    if (response && response->status != 503) return response;
    if (!response && response.error().code != ErrorCode::kIo) return response;
    TurnToNext();
    const bool is_taken =
        response ? FindHeader(response->headers, kActiveHeader) == nullptr : was_sent;
    if (is_taken || asked == endpoints.size()) return response;
  }
}

double Client::State::Pause(const Retry& retry, int attempt, const Result<Response>& last) {
  double pause = retry.pause_seconds;
  for (int i = 1; i < attempt && pause < retry.max_pause_seconds; ++i) pause *= 2;
  pause = std::min(pause, retry.max_pause_seconds);
  pause *= 1 - 0.5 * std::uniform_real_distribution<double>()(random);
  const std::string* wish = last ? FindHeader(last->headers, "Retry-After") : nullptr;
  if (wish != nullptr) {
    pause = std::max(pause, static_cast<double>(ParseInteger<int>(*wish).value_or(0)));
  }
  return pause;
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

namespace {

bool IsThisMachine(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty() || endpoint.host == "localhost") return true;
  bool is_local = false;
  return IsNumericHost(endpoint.host, &is_local) && is_local;
}

}  // namespace

Result<Client> Client::Create(ClientOptions options) {
  auto state = std::make_unique<State>();
  if (HasControls(options.token) || options.token.find(' ') != std::string::npos) {
    return InvalidInput("The token holds a space or a control character; is it one line?");
  }
  for (std::size_t begin = 0; begin <= options.url.size();) {
    const std::size_t end = std::min(options.url.find(',', begin), options.url.size());
    const std::string url = options.url.substr(begin, end - begin);
    begin = end + 1;
    Result<Endpoint> endpoint = ParseEndpoint(url);
    if (!endpoint) return tl::unexpected(endpoint.error());
    // The server refuses to be such a place; who listens between would have the token.
    if (!options.token.empty() && !endpoint->is_tls && !IsThisMachine(*endpoint)) {
      return InvalidInput(fmt::format(
          "{}: a token would cross the network in the clear; name the server with https://",
          Shown(url)));
    }
    if (endpoint->is_tls && !state->tls) {
      Result<TlsContext> tls = TlsContext::ForClient(options.ca_file);
      if (!tls) return tl::unexpected(tls.error());
      state->tls = *std::move(tls);
    }
    state->endpoints.push_back(*std::move(endpoint));
  }
  Result<std::unique_ptr<CancelSignal>> cancel = CancelSignal::Make();
  if (!cancel) return tl::unexpected(cancel.error());
  state->cancel = *std::move(cancel);
  state->options = std::move(options);
  return Client(std::move(state));
}

Result<Response> Client::Call(std::string_view method, std::string_view target,
                              std::string_view body, const CallOptions& options) {
  const Result<void> checked = CheckCall(method, target, options);
  if (!checked) return tl::unexpected(checked.error());
  const Deadline deadline = DeadlineIn(options.deadline_seconds);
  for (int attempt = 1;; ++attempt) {
    Result<Response> response = state_->OfAnyServer(method, target, body, options, deadline);
    const bool is_final =
        response ? !IsForLater(response->status) : response.error().code != ErrorCode::kIo;
    if (is_final || attempt >= options.retry.attempts) return response;
    const Deadline next = DeadlineIn(state_->Pause(options.retry, attempt, response));
    if (next >= deadline) return response;
    if (WaitFor(-1, 0, next, *state_->cancel) == Waited::kCancelled) {
      return MakeError(ErrorCode::kCancelled, "The call was cancelled.");
    }
  }
}

Result<EventReader> Client::OpenEvents(std::string_view target, double deadline_seconds,
                                       std::string_view last_event_id) {
  CallOptions call;
  call.headers.emplace_back("Accept", "text/event-stream");
  if (!last_event_id.empty()) call.headers.emplace_back("Last-Event-ID", last_event_id);
  const Result<void> checked = CheckCall("GET", target, call);
  if (!checked) return tl::unexpected(checked.error());
  const Deadline deadline = DeadlineIn(deadline_seconds);
  const auto open = [&]() -> Result<std::unique_ptr<EventReader::State>> {
    // Cancelling the client ends this call; from then on the reader has a signal of its own.
    Result<ClientWire> wire = state_->Connect(deadline, state_->cancel.get());
    if (!wire) return tl::unexpected(wire.error());
    const Result<void> sent = wire->Send(state_->Head("GET", target, {}, call), {}, deadline);
    if (!sent) return tl::unexpected(sent.error());
    return EventReader::State::Begin(*std::move(wire), deadline, last_event_id);
  };
  Result<std::unique_ptr<EventReader::State>> opened = open();
  for (std::size_t asked = 1; !opened && asked < state_->endpoints.size(); ++asked) {
    state_->TurnToNext();
    opened = open();
  }
  return std::move(opened).map(
      [](std::unique_ptr<EventReader::State> state) { return EventReader(std::move(state)); });
}

void Client::Cancel() { state_->cancel->Set(); }

}  // namespace perseus::http
