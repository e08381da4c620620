// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/client_wire.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "common/unix_socket.h"
#include "http/server.h"
#include "http/server_core.h"

namespace perseus::http {
namespace {

constexpr std::size_t kReadBytes = 16 << 10;

}  // namespace

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

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// A remedy, for the end of a sentence.
std::string_view AdviceOn(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ENOENT:
      return "; nobody listens there: start the server, or correct the address";
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "; correct the address, or let it through the firewall";
    case EACCES:
      return "; the socket's owner lets only some users and groups in";
    default:
      return "";
  }
}

tl::unexpected<Error> Unreachable(const Endpoint& endpoint, std::string_view reason) {
  return MakeError(ErrorCode::kIo, fmt::format("Cannot reach {}: {}.", endpoint.url, reason));
}

// The addresses that getaddrinfo finds; `error` is its return value.
Addresses Resolve(const std::string& host, int port, int flags, int* error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  *error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {*error == 0 ? found : nullptr, ::freeaddrinfo};
}

// Shared with the thread that looks a name up.
struct Lookup {
  FileDescriptor done;  // An eventfd.
  Mutex mutex;
  Addresses addresses PERSEUS_GUARDED_BY(mutex){nullptr, ::freeaddrinfo};
  int error PERSEUS_GUARDED_BY(mutex) = 0;
};

Result<Addresses> LookUp(const Endpoint& endpoint, Deadline deadline, const CancelSignal& cancel) {
  int error = 0;
  Addresses numeric = Resolve(endpoint.host, endpoint.port, AI_NUMERICHOST, &error);
  if (numeric) return numeric;
  auto lookup = std::make_shared<Lookup>();
  lookup->done = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (!lookup->done.valid()) return Unreachable(endpoint, SystemMessage(errno));
  QuietThread([lookup, host = endpoint.host, port = endpoint.port] {
    int outcome = 0;
    Addresses addresses = Resolve(host, port, AI_ADDRCONFIG, &outcome);
    const MutexLock lock(lookup->mutex);
    lookup->addresses = std::move(addresses);
    lookup->error = outcome;
    ::eventfd_write(lookup->done.get(), 1);
  }).detach();
  switch (WaitFor(lookup->done.get(), POLLIN, deadline, cancel)) {
    case Waited::kCancelled:
      return MakeError(ErrorCode::kCancelled, "The call was cancelled.");
    case Waited::kDeadline:
      return Unreachable(endpoint, "looking its name up took too long");
    case Waited::kReady:
      break;
  }
  const MutexLock lock(lookup->mutex);
  if (!lookup->addresses) {
    return Unreachable(endpoint,
                       fmt::format("its name is not known ({})", ::gai_strerror(lookup->error)));
  }
  return std::move(lookup->addresses);
}

// errno, 0 once it is connected.
Result<int> FinishConnect(int socket, int started, Deadline deadline, const CancelSignal& cancel) {
  if (started == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  switch (WaitFor(socket, POLLOUT, deadline, cancel)) {
    case Waited::kCancelled:
      return MakeError(ErrorCode::kCancelled, "The call was cancelled.");
    case Waited::kDeadline:
      return ETIMEDOUT;
    case Waited::kReady:
      break;
  }
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Result<FileDescriptor> ConnectUnix(const Endpoint& endpoint, Deadline deadline,
                                   const CancelSignal& cancel) {
  const auto address = UnixAddressOf(endpoint.unix_path);
  if (!address) return Unreachable(endpoint, SystemMessage(address.error()));
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return Unreachable(endpoint, SystemMessage(errno));
  for (;;) {
    const int started = ::connect(socket.get(), AsAddress(*address), sizeof(*address));
    // The server's queue is full, and nothing tells when it no longer is.
    if (started != 0 && errno == EAGAIN) {
      const Deadline soon = std::min(deadline, DeadlineIn(0.01));
      const Waited waited = WaitFor(-1, 0, soon, cancel);
      if (waited == Waited::kDeadline && soon < deadline) continue;
      errno = ETIMEDOUT;
    }
    Result<int> error = FinishConnect(socket.get(), started, deadline, cancel);
    if (!error) return tl::unexpected(error.error());
    if (*error != 0)
      return Unreachable(endpoint, SystemMessage(*error) + std::string(AdviceOn(*error)));
    return socket;
  }
}

}  // namespace

Result<FileDescriptor> ConnectSocket(const Endpoint& endpoint, Deadline deadline,
                                     const CancelSignal& cancel) {
  if (!endpoint.unix_path.empty()) return ConnectUnix(endpoint, deadline, cancel);
  const Result<Addresses> addresses = LookUp(endpoint, deadline, cancel);
  if (!addresses) return tl::unexpected(addresses.error());
  std::vector<const addrinfo*> candidates;
  for (const addrinfo* a = addresses->get(); a != nullptr; a = a->ai_next) candidates.push_back(a);
  int last_error = EADDRNOTAVAIL;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const addrinfo* address = candidates[i];
    FileDescriptor socket(
        ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) {
      last_error = errno;
      continue;
    }
    // An address that does not answer leaves time for those after it.
    const Deadline now = std::chrono::steady_clock::now();
    const Deadline share =
        now + (deadline - now) / static_cast<std::int64_t>(candidates.size() - i);
    const int started = ::connect(socket.get(), address->ai_addr, address->ai_addrlen);
    Result<int> error = FinishConnect(socket.get(), started, share, cancel);
    if (!error) return tl::unexpected(error.error());
    if (*error == 0) {
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      return socket;
    }
    last_error = *error;
  }
  return Unreachable(endpoint, SystemMessage(last_error) + std::string(AdviceOn(last_error)));
}

namespace {

bool IsPlainText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view url) {
  const auto malformed = [&] {
    return InvalidInput(
        fmt::format("{} is no server's address: write http://HOST:PORT, https://HOST:PORT or "
                    "unix:/path.",
                    Shown(url)));
  };
  Endpoint endpoint;
  endpoint.url = url;
  if (url.starts_with("unix:")) {
    endpoint.unix_path = url.substr(5);
    endpoint.host_header = "localhost";
    if (endpoint.unix_path.empty()) return malformed();
    return endpoint;
  }
  endpoint.is_tls = url.starts_with("https://");
  if (!IsPlainText(url) || (!endpoint.is_tls && !url.starts_with("http://"))) return malformed();
  std::string_view rest = url.substr(endpoint.is_tls ? 8 : 7);
  const std::string_view authority = rest.substr(0, rest.find('/'));
  rest.remove_prefix(authority.size());
  if (authority.find_first_of("@?#") != std::string_view::npos ||
      rest.find_first_of("?#") != std::string_view::npos) {
    return malformed();
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  endpoint.prefix = rest;
  endpoint.host_header = authority;

  std::string_view host = authority;
  std::string_view port;
  const std::size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  endpoint.host = host;
  endpoint.port = endpoint.is_tls ? 443 : 80;
  if (!port.empty()) endpoint.port = ParseInteger<int>(port).value_or(0);
  if (host.empty() || endpoint.port < 1 || endpoint.port > 65535) return malformed();
  return endpoint;
}

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
