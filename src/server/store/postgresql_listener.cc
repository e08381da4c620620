// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/postgresql_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>

namespace perseus::store {
namespace {

// Between two looks: with messages, which can be lost, and without.
constexpr std::chrono::milliseconds kLookSeldom{1000};
constexpr std::chrono::milliseconds kLookOften{250};
constexpr std::chrono::seconds kListenPatience{3};

struct FreeResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
struct FreeMessage {
  void operator()(PGnotify* message) const { PQfreemem(message); }
};

}  // namespace

PostgresqlListener::PostgresqlListener(std::string uri, std::string server_id,
                                       std::function<void(std::vector<std::string>)> woken,
                                       std::function<void()> look)
    : uri_(std::move(uri)),
      server_id_(std::move(server_id)),
      woken_(std::move(woken)),
      look_(std::move(look)),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] { ListenAndLook(); });
}

PostgresqlListener::~PostgresqlListener() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void PostgresqlListener::ListenAndLook() {
  Clock::time_point look_at = Clock::now();
  while (true) {
    if (connection_ == nullptr && !is_pooled_ && Clock::now() >= connect_at_) {
      Connect();
      look_at = Clock::now();  // What was told before is not told again.
    }
    if (Clock::now() >= look_at) {
      look_();
      look_at = Clock::now() + (connection_ == nullptr ? kLookOften : kLookSeldom);
    }
    const bool is_away = connection_ == nullptr && !is_pooled_;
    switch (Wait(POLLIN, is_away ? std::min(look_at, connect_at_) : look_at)) {
      case Woken::kStop:
        return;
      case Woken::kSocket:
        TakeMessages();
        break;
      case Woken::kTime:
        break;
    }
  }
}

// Until the time, the socket, or the end.
PostgresqlListener::Woken PostgresqlListener::Wait(short events, Clock::time_point until) const {
  const int socket = connection_ == nullptr ? -1 : PQsocket(connection_.get());
  std::array<pollfd, 2> sources = {{{stop_.get(), POLLIN, 0}, {socket, events, 0}}};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  // One more: not to be back just before the time.
  ::poll(sources.data(), sources.size(), std::max(0, static_cast<int>(left.count()) + 1));
  if (sources[0].revents != 0) return Woken::kStop;
  return sources[1].revents != 0 ? Woken::kSocket : Woken::kTime;
}

void PostgresqlListener::Drop() {
  connection_.reset();
  connect_at_ = Clock::now() + backoff_.Next();
}

void PostgresqlListener::Connect() {
  const Clock::time_point until = Clock::now() + kListenPatience;
  connection_.reset(PQconnectStart(uri_.c_str()));
  if (connection_ == nullptr || !ConnectWithin(until) || !Listen(until)) return Drop();
  backoff_ = {};
  if (is_pooled_) connection_.reset();
}

bool PostgresqlListener::ConnectWithin(Clock::time_point until) {
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  if (PQstatus(connection_.get()) == CONNECTION_BAD) return false;
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
  while (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING) {
    const short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (Wait(events, until) != Woken::kSocket) return false;
    status = PQconnectPoll(connection_.get());
  }
  return status == PGRES_POLLING_OK;
}

// The process that answers is another one than that which was connected to: a
// pooler is in between.
bool PostgresqlListener::Listen(Clock::time_point until) {
  const std::string process = Ask("SELECT pg_backend_pid()", until);
  if (process.empty()) return false;
  is_pooled_ = process != std::to_string(PQbackendPID(connection_.get()));
  return is_pooled_ || Ask("LISTEN perseus", until) == "done";
}

// The one cell of the answer, or "done"; empty: there was no answer.
std::string PostgresqlListener::Ask(const std::string& query, Clock::time_point until) {
  if (PQsendQuery(connection_.get(), query.c_str()) == 0) return "";
  std::string answer;
  while (true) {
    while (PQisBusy(connection_.get()) != 0) {
      if (Wait(POLLIN, until) != Woken::kSocket) return "";
      if (PQconsumeInput(connection_.get()) == 0) return "";
    }
    const std::unique_ptr<PGresult, FreeResult> result(PQgetResult(connection_.get()));
    if (result == nullptr) return answer;
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_COMMAND_OK) answer = "done";
    if (status == PGRES_TUPLES_OK && PQntuples(result.get()) == 1) {
      answer = PQgetvalue(result.get(), 0, 0);
    }
  }
}

void PostgresqlListener::TakeMessages() {
  if (PQconsumeInput(connection_.get()) == 0) return Drop();
  std::vector<std::string> ids;
  while (true) {
    const std::unique_ptr<PGnotify, FreeMessage> message(PQnotifies(connection_.get()));
    if (message == nullptr) break;
    std::istringstream words(message->extra);
    std::string id;
    std::string revision;
    std::string server;
    words >> id >> revision >> server;
    if (server != server_id_ && std::find(ids.begin(), ids.end(), id) == ids.end()) {
      ids.push_back(id);
    }
  }
  if (!ids.empty()) woken_(std::move(ids));
}

}  // namespace perseus::store
