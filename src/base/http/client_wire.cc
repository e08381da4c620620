// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/client_wire.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "http/connect.h"

namespace perseus::http {
namespace {

constexpr std::size_t kReadBytes = 16 << 10;

}  // namespace

Deadline DeadlineIn(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(seconds > 0 ? std::min(seconds, 1e6) : 0));
}

Result<std::unique_ptr<CancelSignal>> CancelSignal::Make() {
  FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.valid()) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("No client can be made: {}.", SystemMessage(errno)));
  }
  return std::unique_ptr<CancelSignal>(new CancelSignal(std::move(event)));
}

void CancelSignal::Set() {
  set_.store(true);
  ::eventfd_write(event_.get(), 1);  // Never read: whoever waits later is woken, too.
}

Waited WaitFor(int descriptor, short events, Deadline deadline, const CancelSignal& cancel) {
  for (;;) {
    if (cancel.is_set()) return Waited::kCancelled;
    const auto left = deadline - std::chrono::steady_clock::now();
    // Rounded up: a wait that ends early would be repeated without a pause.
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    std::array<pollfd, 2> wanted = {pollfd{descriptor, events, 0},
                                    pollfd{cancel.descriptor(), POLLIN, 0}};
    const int count = ::poll(wanted.data(), wanted.size(),
                             static_cast<int>(std::clamp<std::int64_t>(milliseconds, 0, 1 << 30)));
    if (count < 0 && errno != EINTR) return Waited::kDeadline;
    if (wanted[1].revents != 0 && count > 0) return Waited::kCancelled;
    if (wanted[0].revents != 0 && count > 0) return Waited::kReady;
    if (count == 0 && milliseconds <= (1 << 30)) return Waited::kDeadline;
  }
}

ClientWire::ClientWire(const Endpoint& endpoint, std::unique_ptr<Transport> transport,
                       const CancelSignal* cancel)
    : url_(endpoint.url),
      is_tls_(endpoint.is_tls),
      transport_(std::move(transport)),
      cancel_(cancel) {}

Result<ClientWire> ClientWire::Connect(const Endpoint& endpoint, const TlsContext* tls,
                                       Deadline deadline, const CancelSignal* cancel) {
  Result<FileDescriptor> socket = ConnectSocket(endpoint, deadline, *cancel);
  if (!socket) return tl::unexpected(socket.error());
  std::unique_ptr<Transport> transport = endpoint.is_tls
                                             ? tls->Connect(*std::move(socket), endpoint.host)
                                             : PlainTransport(*std::move(socket));
  if (!transport) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("Cannot reach {}: TLS cannot be set up.", endpoint.url));
  }
  ClientWire wire(endpoint, std::move(transport), cancel);
  Result<void> shaken = wire.Handshake(deadline);
  if (!shaken) return tl::unexpected(shaken.error());
  return wire;
}

tl::unexpected<Error> ClientWire::Broken(std::string_view what) const {
  const std::string reason = transport_->failure();
  return MakeError(ErrorCode::kIo, fmt::format("{} {}: {}.", what, url_, reason));
}

Result<void> ClientWire::Wait(short events, Deadline deadline) {
  deadline_passed_ = false;
  switch (WaitFor(transport_->descriptor(), events, deadline, *cancel_)) {
    case Waited::kReady:
      return {};
    case Waited::kCancelled:
      return MakeError(ErrorCode::kCancelled, "The call was cancelled.");
    case Waited::kDeadline:
      break;
  }
  deadline_passed_ = true;
  return TooLate();
}

tl::unexpected<Error> ClientWire::TooLate() const {
  return MakeError(ErrorCode::kIo, fmt::format("{} did not answer before the deadline.", url_));
}

Result<void> ClientWire::Handshake(Deadline deadline) {
  for (;;) {
    const IoResult result = transport_->Handshake();
    if (result.what == IoResult::What::kDone) return {};
    if (result.what == IoResult::What::kEnd || result.what == IoResult::What::kBroken) {
      return Broken("No TLS connection to");
    }
    Result<void> waited =
        Wait(result.what == IoResult::What::kWantRead ? POLLIN : POLLOUT, deadline);
    if (!waited) return waited;
  }
}

Result<void> ClientWire::Send(std::string_view head, std::string_view body, Deadline deadline) {
  received_bytes_ = 0;
  while (!head.empty() || !body.empty()) {
    const IoResult result = transport_->Write(head, body);
    switch (result.what) {
      case IoResult::What::kDone: {
        const std::size_t of_head = std::min(head.size(), result.bytes);
        head.remove_prefix(of_head);
        body.remove_prefix(result.bytes - of_head);
        continue;
      }
      case IoResult::What::kWantRead:
      case IoResult::What::kWantWrite: {
        // Readable bytes under TLS may be a ticket, not an answer.
        const short early = is_tls_ ? 0 : POLLIN;
        Result<void> waited =
            Wait(result.what == IoResult::What::kWantRead ? POLLIN : (POLLOUT | early), deadline);
        if (!waited) return waited;
        if (early != 0 &&
            WaitFor(transport_->descriptor(), POLLIN, DeadlineIn(0), *cancel_) == Waited::kReady) {
          return {};
        }
        continue;
      }
      default:
        // It may have answered before it closed.
        if (WaitFor(transport_->descriptor(), POLLIN, DeadlineIn(0), *cancel_) == Waited::kReady) {
          return {};
        }
        return Broken("The connection broke while sending to");
    }
  }
  return {};
}

Result<MessageParser::Step> ClientWire::Read(MessageParser* parser, Deadline deadline) {
  std::array<char, kReadBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (int turn = 0;; turn = 1) {
    const MessageParser::Fed fed = parser->Feed(unread_);
    unread_.erase(0, fed.consumed);
    if (fed.step == MessageParser::Step::kFailed) {
      return MakeError(ErrorCode::kIo, fmt::format("The answer of {} cannot be read: {}", url_,
                                                   parser->failure().message));
    }
    if (fed.step != MessageParser::Step::kMore) return fed.step;
    if (!parser->body().empty()) return MessageParser::Step::kMore;
    const IoResult result = transport_->Read(buffer.data(), buffer.size());
    switch (result.what) {
      case IoResult::What::kDone:
        unread_.append(buffer.data(), result.bytes);
        received_bytes_ += result.bytes;
        // A server that always has a byte more would never let us wait.
        if (std::chrono::steady_clock::now() < deadline || turn == 0) continue;
        deadline_passed_ = true;
        return TooLate();
      case IoResult::What::kEnd:
        if (parser->FeedEnd()) return MessageParser::Step::kDone;
        return MakeError(ErrorCode::kIo,
                         fmt::format("{} closed the connection before it had answered.", url_));
      case IoResult::What::kBroken:
        return Broken("The connection broke while reading from");
      default: {
        Result<void> waited =
            Wait(result.what == IoResult::What::kWantRead ? POLLIN : POLLOUT, deadline);
        if (!waited) return tl::unexpected(waited.error());
      }
    }
  }
}

bool ClientWire::is_stale() {
  if (!unread_.empty()) return true;
  char byte = 0;
  return transport_->Read(&byte, 1).what != IoResult::What::kWantRead;
}

}  // namespace perseus::http
