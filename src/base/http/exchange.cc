// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/exchange.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "http/connection.h"
#include "http/server.h"
#include "http/server_core.h"

namespace perseus::http {
namespace {

// Beyond it nothing is waited for anyway, and what is no number becomes 0.
constexpr double kLongestSeconds = 1e6;

SteadyClock::time_point TimeAfter(double seconds) {
  const double bounded = seconds > 0 ? std::min(seconds, kLongestSeconds) : 0;
  return SteadyClock::now() +
         std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(bounded));
}

// Calls `f` with the connection, on its thread; with null where it closed meanwhile.
// False: it is known to be closed, and `f` is not called.
template <typename F>
bool PostTo(const std::weak_ptr<ServerCore>& weak_core,
            const std::weak_ptr<Connection>& weak_connection, F f) {
  // In this order: the connection is within the core.
  const std::shared_ptr<ServerCore> core = weak_core.lock();
  if (!core) return false;
  const std::shared_ptr<Connection> connection = weak_connection.lock();
  if (!connection) return false;
  boost::asio::post(connection->context(), [weak_connection, f = std::move(f)]() mutable {
    const std::shared_ptr<Connection> self = weak_connection.lock();
    f(self.get());
  });
  return true;
}

void PostGone(const std::weak_ptr<ServerCore>& weak_core, std::function<void()> gone) {
  if (const std::shared_ptr<ServerCore> core = weak_core.lock()) {
    core->workers.Post(std::move(gone));
  }
}

}  // namespace

Exchange::Exchange(std::weak_ptr<ServerCore> core, std::weak_ptr<Connection> connection,
                   Origin origin)
    : core_(std::move(core)),
      connection_(std::move(connection)),
      serial_(origin.serial),
      stops_before_(origin.stops_before),
      socket_(origin.socket) {}

void Exchange::MarkGone() {
  alive_.store(false, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  socket_ = -1;
}

void Exchange::MarkAnswered() {
  answered_.store(true);
  const MutexLock lock(mutex_);
  socket_ = -1;
}

bool Exchange::wanted() {
  const std::shared_ptr<ServerCore> core = core_.lock();
  // One that never had a server, as in a fuzzer, has nobody who could leave.
  const std::weak_ptr<ServerCore> none;
  if (!core_.owner_before(none) && !none.owner_before(core_)) return alive();
  if (!core || core->stops.Count() != stops_before_) return false;
  const MutexLock lock(mutex_);
  return socket_ >= 0 && !IsClosedByPeer(socket_);
}

Exchange::~Exchange() {
  if (answered_.load()) return;
  Send(ErrorResponse(500, "internal", "The server gave no answer."));
}

bool Exchange::Send(Response response) {
  if (answered_.exchange(true) || !alive()) return false;
  return PostTo(core_, connection_,
                [serial = serial_, response = std::move(response)](Connection* connection) mutable {
                  if (connection != nullptr) connection->Answer(serial, std::move(response));
                });
}

void Exchange::AnswerAfter(double seconds, Response response) {
  if (answered_.load() || !alive()) return;
  PostTo(core_, connection_,
         [serial = serial_, deadline = TimeAfter(seconds),
          response = std::move(response)](Connection* connection) mutable {
           if (connection != nullptr) connection->Park(serial, deadline, std::move(response));
         });
}

std::shared_ptr<EventStream> Exchange::StartEvents() {
  const std::shared_ptr<ServerCore> core = core_.lock();
  if (!core || answered_.exchange(true) || !alive()) return nullptr;
  auto stream =
      std::make_shared<EventStreamCore>(core_, connection_, core->options.max_stream_bytes);
  const bool posted =
      PostTo(core_, connection_, [serial = serial_, stream](Connection* connection) {
        if (connection != nullptr) connection->StartEvents(serial, stream);
      });
  if (!posted) return nullptr;
  return std::make_shared<EventStream>(std::move(stream));
}

void Exchange::OnGone(std::function<void()> gone) {
  if (answered_.load()) return;
  auto shared = std::make_shared<std::function<void()>>(std::move(gone));
  const bool posted = PostTo(
      core_, connection_,
      [weak = weak_from_this(), core = core_, serial = serial_, shared](Connection* connection) {
        if (connection != nullptr) {
          connection->SetGone(serial, std::move(*shared));
        } else if (const std::shared_ptr<Exchange> self = weak.lock();
                   self && !self->answered_.load()) {
          PostGone(core, std::move(*shared));
        }
      });
  if (!posted) PostGone(core_, std::move(*shared));
}

EventStreamCore::EventStreamCore(std::weak_ptr<ServerCore> core,
                                 std::weak_ptr<Connection> connection, std::size_t max_queued_bytes)
    : core_(std::move(core)),
      connection_(std::move(connection)),
      max_queued_bytes_(max_queued_bytes) {}

bool EventStreamCore::Send(std::shared_ptr<const std::string> formatted) {
  if (!alive()) return false;
  const std::size_t size = formatted->size();
  if (queued_bytes_.fetch_add(size, std::memory_order_relaxed) + size > max_queued_bytes_) {
    if (alive_.exchange(false)) {
      PostTo(core_, connection_, [](Connection* connection) {
        if (connection != nullptr) connection->DropStream();
      });
    }
    return false;
  }
  return PostTo(core_, connection_,
                [formatted = std::move(formatted)](Connection* connection) mutable {
                  if (connection != nullptr) connection->QueueEvent(std::move(formatted));
                });
}

bool EventStreamCore::SendFirst(std::shared_ptr<const std::string> formatted) {
  max_queued_bytes_.fetch_add(formatted->size(), std::memory_order_relaxed);
  return Send(std::move(formatted));
}

void EventStreamCore::Close() {
  if (!alive_.exchange(false)) return;
  PostTo(core_, connection_, [](Connection* connection) {
    if (connection != nullptr) connection->EndStream();
  });
}

void EventStreamCore::OnGone(std::function<void()> gone) {
  auto shared = std::make_shared<std::function<void()>>(std::move(gone));
  const bool posted = PostTo(core_, connection_, [core = core_, shared](Connection* connection) {
    if (connection != nullptr) {
      connection->SetStreamGone(std::move(*shared));
    } else {
      PostGone(core, std::move(*shared));
    }
  });
  if (!posted) PostGone(core_, std::move(*shared));
}

Responder::Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

bool Responder::Send(Response response) const { return exchange_->Send(std::move(response)); }
void Responder::AnswerAfter(double seconds, Response response) const {
  exchange_->AnswerAfter(seconds, std::move(response));
}
std::shared_ptr<EventStream> Responder::StartEvents() const { return exchange_->StartEvents(); }
bool Responder::alive() const { return exchange_->alive(); }
bool Responder::wanted() const { return exchange_->wanted(); }
void Responder::OnGone(std::function<void()> gone) const { exchange_->OnGone(std::move(gone)); }

EventStream::EventStream(std::shared_ptr<EventStreamCore> core) : core_(std::move(core)) {}
EventStream::~EventStream() { Close(); }

bool EventStream::Send(std::string_view event_name, std::string_view data, std::string_view id) {
  return Send(std::make_shared<const std::string>(Format(event_name, data, id)));
}
bool EventStream::Send(std::shared_ptr<const std::string> formatted) {
  return core_->Send(std::move(formatted));
}
bool EventStream::SendFirst(std::string_view event_name, std::string_view data,
                            std::string_view id) {
  return core_->SendFirst(std::make_shared<const std::string>(Format(event_name, data, id)));
}
void EventStream::Close() { core_->Close(); }
bool EventStream::alive() const { return core_->alive(); }
void EventStream::OnGone(std::function<void()> gone) { core_->OnGone(std::move(gone)); }

}  // namespace perseus::http
