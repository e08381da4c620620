// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/control.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>
#include <variant>

#include "common/unix_socket.h"

namespace perseus::agent {

namespace {

tl::unexpected<Error> Fault(const std::string& path, const std::string& what) {
  return MakeError(ErrorCode::kIo, fmt::format("the agent at {}: {}", path, what));
}

}  // namespace

Result<FileDescriptor> ConnectUnix(const std::string& path, std::chrono::milliseconds patience) {
  auto socket = ConnectUnixSocket(path, patience, SocketMode::kBlocking);
  if (socket) {
    const timeval within = {.tv_sec = patience.count() / 1000,
                            .tv_usec = patience.count() % 1000 * 1000};
    if (::setsockopt(socket->get(), SOL_SOCKET, SO_SNDTIMEO, &within, sizeof(within)) != 0) {
      return Fault(path, SystemMessage(errno));
    }
    return *std::move(socket);
  }
  const int error = socket.error();
  if (error == EINVAL || error == ENAMETOOLONG) {
    return InvalidInput(fmt::format("'{}' is no path of a socket: {}", path, SystemMessage(error)));
  }
  if (error == EAGAIN) {
    return Fault(
        path, fmt::format("it takes no connection within {} ms; does it hang?", patience.count()));
  }
  return Fault(path, SystemMessage(error) + "; is it running?");
}

Result<Control> Control::Connect(const std::string& socket_path, const std::string& name,
                                 std::chrono::milliseconds patience,
                                 std::chrono::milliseconds answers) {
  Result<FileDescriptor> socket = ConnectUnix(socket_path, patience);
  if (!socket) return tl::unexpected(socket.error());
  Control control(socket_path, *std::move(socket), answers.count() > 0 ? answers : patience);
  Request hello;
  hello.operation = Operation::kHello;
  hello.client = name;
  Result<Answer> answer = control.Ask(std::move(hello));
  if (!answer) return tl::unexpected(answer.error());
  if (const auto* refused = std::get_if<Refused>(&answer->body)) {
    return MakeError(ErrorCode::kDenied, refused->message);
  }
  auto* said = std::get_if<HelloAnswer>(&answer->body);
  if (said == nullptr) return Fault(socket_path, "it did not say what it has");
  control.hello_ = std::move(*said);
  return control;
}

Result<std::int64_t> Control::Send(Request request) {
  request.id = next_id_++;
  const std::string line = FormatRequest(request);
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count =
        ::send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EPIPE) break;  // Why is in what it said last.
    if (count < 0) {
      return Fault(path_, SystemMessage(errno));
    }
    sent += static_cast<std::size_t>(count);
  }
  return request.id;
}

Result<Answer> Control::Receive() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + patience_;
  std::size_t end = buffer_.find('\n');
  while (end == std::string::npos) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd item = {socket_.get(), POLLIN, 0};
    const int ready = ::poll(&item, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return Fault(path_, fmt::format("no answer within {} ms", patience_.count()));
    }
    char chunk[16384];
    const ssize_t count = ::recv(socket_.get(), chunk, sizeof(chunk), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return Fault(path_, count == 0 ? "it closed the connection" : SystemMessage(errno));
    }
    if (buffer_.size() > kMaxAnswerBytes) return Fault(path_, "its answer is too long");
    buffer_.append(chunk, static_cast<std::size_t>(count));
    end = buffer_.find('\n');
  }
  Result<Answer> answer = ParseAnswer(std::string_view(buffer_).substr(0, end));
  buffer_.erase(0, end + 1);
  if (!answer) return Fault(path_, answer.error().message);
  return answer;
}

Result<Answer> Control::Ask(Request request) {
  const Result<std::int64_t> id = Send(std::move(request));
  if (!id) return tl::unexpected(id.error());
  while (true) {
    Result<Answer> answer = Receive();
    // Without a number: to the connection as a whole.
    if (!answer || !answer->id || *answer->id == *id) return answer;
  }
}

}  // namespace perseus::agent
